// Folds the e-mail addresses of billing customers that were stored without it, by earlier versions.
import type { Logger } from 'pino'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { repeat } from '../../lib/repeat.ts'
import { fold } from '../../lib/text.ts'

// While an older version still runs, it may add more.
const PAUSE_MS = 60_000
const BATCH = 1000

/** Starts to fold addresses in the background; returns a function that stops it. */
export function foldEmails(app: { db: Db; clock: Clock; log: Logger }): () => Promise<void> {
  const options = { pauseMs: PAUSE_MS, failure: 'Folding e-mail addresses of customers failed; it is tried again.' }
  return repeat(app, options, async () => ((await foldBatch(app.db)) < BATCH ? PAUSE_MS : 0))
}

/** Folds the next addresses; returns how many there were. An address that changes in between is left to the writer that changes it. */
export async function foldBatch(db: Db): Promise<number> {
  const rows = await db.query<{ organization_id: string; external_id: string; email: string }>(UNFOLDED, [BATCH])
  if (rows.length === 0) return 0
  await db.query(FOLD, [
    rows.map(({ organization_id }) => organization_id),
    rows.map(({ external_id }) => external_id),
    rows.map(({ email }) => email),
    rows.map(({ email }) => fold(email)),
  ])
  return rows.length
}

const UNFOLDED = `
  select organization_id, external_id, email from customers where email is not null and email_folded is null
  order by organization_id, external_id limit $1`

const FOLD = `
  update customers c set email_folded = given.folded
  from unnest($1::text[], $2::text[], $3::text[], $4::text[]) given (organization_id, external_id, email, folded)
  where c.organization_id = given.organization_id and c.external_id = given.external_id and c.email = given.email`
