// The ledgers of erasures, from which they are repeated after a restore: the table of the database, and a file outside of it.
import { appendLines } from '../../lib/files.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query } from '../../lib/pg/types.ts'
import { instantFromPg } from '../../lib/time.ts'

/** One line of the ledger: the id of the profile and the time, no personal data. */
export interface Erasure {
  project_id: string
  profile_id: string
  erased_at: string
}

/** Every erasure of the database's ledger, oldest first. */
export async function listErasures(db: Db): Promise<Erasure[]> {
  const rows = await db.query(
    'select project_id, profile_id, erased_at from erasures order by erased_at, project_id, profile_id',
  )
  return rows.map((row) => ({
    project_id: row.project_id!,
    profile_id: row.profile_id!,
    erased_at: instantFromPg(row.erased_at!),
  }))
}

/**
 * Enters the erasures that the database's ledger lacks into both ledgers. Call it last, right before the commit: the file
 * may have more entries than the database, never fewer.
 */
export async function enterInLedgers(query: Query, ledgerPath: string, erasures: Erasure[]): Promise<void> {
  const rows = await query<{ profile_id: string }>(
    `insert into erasures (project_id, profile_id, erased_at)
     select project_id, profile_id, erased_at from json_populate_recordset(null::erasures, $1)
     on conflict (project_id, profile_id) do nothing returning profile_id`,
    [JSON.stringify(erasures)],
  )
  const entered = new Set(rows.map(({ profile_id }) => profile_id))
  const lines = erasures
    .filter(({ profile_id }) => entered.has(profile_id))
    .map((entry) => `${JSON.stringify(entry)}\n`)
  if (lines.length > 0) await appendLines(ledgerPath, lines.join(''))
}
