// Imports about an erased person: lines full of personal data, an erasure without a request, and the tables with remains.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { reapply } from '../../../src/core/erasure/erasure.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type Imports, type Line, line, openImports, type Project, T } from '../../support/imports.ts'

export const MARKER = 'marker'
export const personal = {
  profile: { email: MARKER, phone: MARKER, password_hash: MARKER, integrations: { id: MARKER }, country: 'DE' },
  session: {
    ip: MARKER,
    user_agent: MARKER,
    postal_code: MARKER,
    origin: `https://${MARKER}:pw@shop.example/a?mail=${MARKER}#x`,
    query_params: { mail: MARKER },
    tracking_cookies: { _ga: MARKER },
    city: 'Berlin',
  },
}
/** Lines about the person `profile`, each with personal data. */
export const about = (): Line[] => [
  line.profile(personal.profile),
  line.session(personal.session),
  line.reply({ value: MARKER }),
  line.customer({ email: MARKER, profile_id: 'profile' }),
]

export interface ErasedImports extends Imports {
  /** Erases as after a restored backup: the same work as for a request, but without one. */
  erase(project: Project, profileId: string): Promise<void>
  /** Erases again. */
  eraseAgain(project: Project, profileId: string): Promise<void>
  /** The tables that contain the marker. */
  found(project: Project): Promise<string[]>
}

export async function openErasedImports(): Promise<ErasedImports> {
  const imports = await openImports()
  const ledger = join(temporaryFolder(), 'erasures')
  const carryOut = ({ id }: Project, profileId: string) => reapplyErasure(imports.db, id, profileId, ledger)
  return {
    ...imports,
    async erase(project, profileId) {
      assert.equal((await carryOut(project, profileId)).erased, 1)
    },
    async eraseAgain(project, profileId) {
      assert.equal((await carryOut(project, profileId)).already_erased, 1)
    },
    found: (project) => tablesWithMarker(imports, project),
  }
}

/** Erases as after a restored backup. */
export function reapplyErasure(
  db: Db,
  project_id: string,
  profile_id: string,
  ledger = join(temporaryFolder(), 'ledger'),
) {
  return reapply(db, ledger, entries())
  async function* entries() {
    yield { project_id, profile_id, erased_at: T }
  }
}

async function tablesWithMarker(imports: Imports, project: Project): Promise<string[]> {
  const tables = ['profiles', 'sessions', 'replies', 'customers']
  const where = { customers: 't.organization_id = $2' } as Record<string, string>
  const rows = await imports.rows(
    tables
      .map(
        (table) =>
          `select '${table}' as name from ${table} t where ${where[table] ?? 't.project_id = $1'} and t::text like '%${MARKER}%' and $2 <> $1`,
      )
      .join(' union '),
    [project.id, project.organizationId],
  )
  return rows.map(({ name }) => name!).sort()
}
