// The keys that sign a project's webhooks: all valid ones, decrypted.
import type { Db } from '../../lib/pg/db.ts'
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { Statement } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'

/**
 * The valid keys of each of these projects, newest first. Read at every poll, so that a revoked key signs nothing. A project is
 * missing if it has keys and none can be decrypted.
 */
export async function signingKeys(
  { db, seal }: { db: Db; seal: Seal },
  projects: ReadonlySet<string>,
): Promise<Map<string, string[]>> {
  const rows = projects.size > 0 ? await db.query(LIVING_KEYS, [[...projects]]) : []
  const sealedKeys = Map.groupBy(rows, ({ project_id }) => project_id!)
  const keys = new Map<string, string[]>()
  for (const project of projects) {
    const sealed = sealedKeys.get(project) ?? []
    const readable = sealed.flatMap(({ id, sealed }) => openKey(seal, bytesFromPg(sealed!), id!) ?? [])
    if (readable.length > 0 || sealed.length === 0) keys.set(project, readable)
  }
  return keys
}

/** The text of a stored secret key; undefined under another master key. */
export function openKey(seal: Seal, sealed: Buffer, id: string): string | undefined {
  try {
    return seal.open(sealed, id)
  } catch {
    return undefined
  }
}

// The organization leads the index of keys.
const LIVING_KEYS: Statement = {
  name: 'find signing keys',
  text: `
  select p.id as project_id, k.id, k.sealed from projects p
  join secret_keys k on k.organization_id = p.organization_id and k.project_id = p.id
  where p.id = any($1) and k.scopes is null and (k.expires_at is null or k.expires_at > db_clock())
  order by k.created_at desc, k.id`,
}
