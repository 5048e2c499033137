// The keys that sign a project's webhooks: all valid ones, decrypted.
import type { Db } from '../lib/pg/db.ts'
import { bytesFromPg } from '../lib/pg/row-bytes.ts'
import type { Statement } from '../lib/pg/types.ts'
import type { Seal } from '../lib/secrets.ts'

/** The valid keys of each of these projects, newest first. Read at every poll, so that a revoked key signs nothing. */
export async function signingKeys(
  { db, seal }: { db: Db; seal: Seal },
  projects: ReadonlySet<string>,
): Promise<Map<string, string[]>> {
  const keys = new Map<string, string[]>()
  if (projects.size === 0) return keys
  const rows = await db.query(LIVING_KEYS, [[...projects]])
  for (const { project_id, id, sealed } of rows) {
    const key = seal.open(bytesFromPg(sealed!), id!)
    keys.set(project_id!, [...(keys.get(project_id!) ?? []), key])
  }
  return keys
}

// The organization leads the index of keys.
const LIVING_KEYS: Statement = {
  name: 'find signing keys',
  text: `
  select p.id as project_id, k.id, k.sealed from projects p
  join secret_keys k on k.organization_id = p.organization_id and k.project_id = p.id
  where p.id = any($1) and (k.expires_at is null or k.expires_at > db_clock())
  order by k.created_at desc, k.id`,
}
