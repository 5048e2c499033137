// Closes a month of the finance report: its rows are kept as they are, and later changes are corrections in the first open month.
import { IMPORT_TURN } from '../../../core/tenants/import-turn.ts'
import type { Clock } from '../../../lib/clock.ts'
import { addMonths } from '../../../lib/days.ts'
import { Refusal } from '../../../lib/errors.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { booleanFromPg } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { instantFromPg } from '../../../lib/time.ts'
import { booked, KEPT_COLUMNS, WITH_CLOSED } from './booked.ts'

const TRIES = 50
const PAUSE_MS = 100

/** Closes the month that begins on this day; returns how many rows it has. Throws a `Refusal` for one that cannot be closed. */
export async function closeMonth(
  { db, clock }: { db: Db; clock: Clock },
  organizationId: string,
  first: string,
): Promise<{ rows: number; closed_at: string }> {
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const closed = await db.tx((query) => closeNow(query, organizationId, first))
    if (closed) return closed
    await clock.sleep(PAUSE_MS)
  }
  throw new Refusal(
    'An import is writing records of the organization. Nothing was closed: try again when it has ended.',
  )
}

/** undefined while an import writes: what it adds would be neither kept nor found as a change. */
async function closeNow(query: Query, organizationId: string, first: string) {
  const [turn] = await query(`select pg_try_advisory_xact_lock${IMPORT_TURN} as mine`, [organizationId])
  if (turn!.mine !== 't') return undefined
  // Charges that are being settled have their stamp, and are committed before this returns. Two closings wait for each other here.
  await query('select from organization_clocks where organization_id = $1 for update', [organizationId])
  await requireClosable(query, organizationId, first)
  const [row] = await query(CLOSE, [organizationId, first, addMonths(first, 1), null])
  return { rows: Number(row!.rows), closed_at: instantFromPg(row!.closed_at!) }
}

/** Throws a `Refusal` unless the month is over, and follows the last closed one. */
export async function requireClosable(query: Query, organizationId: string, first: string): Promise<void> {
  const [state] = await query(
    `select to_char(max(month), 'YYYY-MM') as last, to_char(max(month) + interval '1 month', 'YYYY-MM') as next,
       day_begins(($2::date + interval '1 month')::date, finance_zone($1)) > db_clock() as runs, finance_zone($1) as zone
     from finance_months where organization_id = $1`,
    [organizationId, first],
  )
  const month = first.slice(0, 7)
  if (booleanFromPg(state!.runs!))
    throw new Refusal(
      `${month} is not over: it can be closed from the first day of the next month on (${state!.zone}).`,
    )
  if (state!.last === null) return
  if (month <= state!.last!) {
    const [own] = await query('select 1 from finance_months where organization_id = $1 and month = $2::date', [
      organizationId,
      first,
    ])
    throw new Refusal(
      own ? `${month} is closed already.` : `${month} is before the first closed month: it stays as it is.`,
    )
  }
  if (month !== state!.next) throw new Refusal(`Months are closed one after the other: close ${state!.next} first.`)
}

const CLOSE: Statement = {
  name: 'close a month',
  text: `
  with ${WITH_CLOSED},
  month as (insert into finance_months (organization_id, month, closed_at, time_zone, currency)
    values ($1, $2::date, db_clock(), finance_zone($1), finance_currency($1)) returning closed_at),
  kept as (
    insert into finance_rows (organization_id, month, part, ${KEPT_COLUMNS})
    select $1, $2::date, part, ${KEPT_COLUMNS} from (${booked()}) b returning 1)
  select closed_at, (select count(*) from kept) as rows from month`,
}
