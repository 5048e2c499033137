// Stores exchange rates, by which amounts are converted.
import { addDays } from '../../../lib/days.ts'
import { Refusal } from '../../../lib/errors.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Query } from '../../../lib/pg/types.ts'
import type { Rate } from './rate-files.ts'

// Few enough that a statement stays small and far from its timeout, many enough that the ECB's whole history is a hundred
// statements for one organization. Rates of many organizations are the product of both.
const BATCH = 2_500
const ROWS = 5_000

/** Called in the transaction that stores rates, with the first and the last of their days. */
export type OnStored = (query: Query, organization: string | null, from: string, to: string) => Promise<void>

/**
 * Stores these rates for one organization, or for all there are and those created later, all or none; a rate that is there
 * already is replaced.
 */
export async function storeRates(
  db: Db,
  rates: Rate[],
  organization: string | null,
  onStored?: OnStored,
): Promise<void> {
  const euros = rates.map(({ day }): Rate => ({ day, currencyCode: 'EUR', perEuro: '1' }))
  // Of a rate that is given twice the last one counts: a statement cannot write one row twice.
  const all = [...new Map([...euros, ...rates].map((rate) => [`${rate.day} ${rate.currencyCode}`, rate])).values()]
  await db.tx(async (query) => {
    await endWhenStalled(query)
    // Before the organizations are read: the creation of one waits for this, or this for the creation.
    if (organization === null) for (const batch of piecesOf(all, BATCH)) await query(SHARE, columnsOf(batch))
    const found = await query(ORGANIZATIONS, [organization])
    const organizations = found.map(({ id }) => id!)
    for (const batch of piecesOf(all, BATCH)) {
      const columns = columnsOf(batch)
      for (const some of piecesOf(organizations, Math.floor(ROWS / batch.length)))
        await query(STORE, [...columns, some])
    }
    const days = all.map(({ day }) => day).sort()
    if (days.length > 0) await onStored?.(query, organization, days[0]!, days.at(-1)!)
  })
}

/** Refuses rates of the future: they would be taken for the newest ones, and hide that the others are old. */
export async function refuseFuture(db: Db, lastDay: string, name: string): Promise<void> {
  const [now] = await db.query(`select to_char(db_clock() at time zone 'UTC', 'YYYY-MM-DD') as today`)
  // It is tomorrow already in some time zones.
  if (lastDay > addDays(now!.today!, 1)) throw new Refusal(`${name} has rates of ${lastDay}, which is to come.`)
}

const columnsOf = (rates: Rate[]) => [
  rates.map((rate) => rate.day),
  rates.map((rate) => rate.currencyCode),
  rates.map((rate) => rate.perEuro),
]

function* piecesOf<T>(all: T[], size: number): Iterable<T[]> {
  for (let from = 0; from < all.length; from += size) yield all.slice(from, from + size)
}

const ORGANIZATIONS = 'select id from organizations where $1::text is null or id = $1 order by id'

// In one order, as below, so that two loads wait for one another without a deadlock.
const SHARE = `
  insert into shared_exchange_rates (day, currency_code, per_euro)
  select r.day, r.currency_code, r.per_euro
  from unnest($1::date[], $2::text[], $3::numeric[]) r (day, currency_code, per_euro)
  order by 2, 1
  on conflict (currency_code, day) do update set per_euro = excluded.per_euro`

const STORE = `
  insert into exchange_rates (organization_id, day, currency_code, per_euro)
  select g.id, r.day, r.currency_code, r.per_euro
  from unnest($4::text[]) g (id), unnest($1::date[], $2::text[], $3::numeric[]) r (day, currency_code, per_euro)
  order by 1, 3, 2
  on conflict (organization_id, currency_code, day) do update set per_euro = excluded.per_euro`
