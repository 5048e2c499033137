// Converts amounts to US dollars by the organization's exchange rates.

import { convertMinor, formatMinor, MOST_MINOR } from '../../lib/money.ts'
import type { Db } from '../../lib/pg/db.ts'
import { fromDatabase } from '../amount.ts'
import type { Rate } from './rate-files.ts'

// A rate older than this says nothing of the day: banks are closed for some days, never for a week.
const OLDEST_RATE_DAYS = 7

/** Units of each currency for one euro, on the day that counts; both null when there is no rate. */
export type Rates = { currency_per_euro: string | null; usd_per_euro: string | null }

/**
 * Joins `Rates` to a statement: the latest day on or before `day`, at most seven days before it, that knows both the
 * currency and the US dollar. The three are SQL expressions.
 */
export function joinRates(organization: string, currency: string, day: string): string {
  return `left join lateral (
      select c.per_euro as currency_per_euro, u.per_euro as usd_per_euro
      from exchange_rates c
      join exchange_rates u
        on u.organization_id = c.organization_id and u.day = c.day and u.currency_code = 'USD'
      where c.organization_id = ${organization} and c.currency_code = ${currency}
        and c.day between (${day})::date - ${OLDEST_RATE_DAYS} and (${day})::date
      order by c.day desc limit 1) rates on true`
}

/** The amount in US cents, rounded half-even; null without a rate, and with one that makes it more than a price can be. */
export function toUsdMinor(minor: bigint, currency: string, rates: Rates): bigint | null {
  if (currency === 'USD') return minor
  if (rates.currency_per_euro === null || rates.usd_per_euro === null) return null
  const { currency_per_euro, usd_per_euro } = rates
  const cents = convertMinor(minor, currency, fromDatabase(currency_per_euro), 'USD', fromDatabase(usd_per_euro))
  return cents > MOST_MINOR ? null : cents
}

/** US cents in dollars, as text. */
export function writeUsd(minor: bigint | null): string | null {
  return minor === null ? null : formatMinor(minor, 'USD')
}

// Few enough that a statement stays small and far from its timeout, many enough that the ECB's whole history is a hundred
// statements for one organization. Rates of many organizations are the product of both.
const BATCH = 2_500
const ROWS = 5_000

/** Keeps these rates for one organization or for all there are, all or none; a rate that is there already is replaced. */
export async function storeRates(db: Db, rates: Rate[], organization: string | null): Promise<void> {
  const euros = rates.map(({ day }): Rate => ({ day, currencyCode: 'EUR', perEuro: '1' }))
  // Of a rate that is given twice the last one counts: a statement cannot write one row twice.
  const all = [...new Map([...euros, ...rates].map((rate) => [`${rate.day} ${rate.currencyCode}`, rate])).values()]
  await db.tx(async (query) => {
    const found = await query(ORGANIZATIONS, [organization])
    const organizations = found.map(({ id }) => id!)
    for (const batch of piecesOf(all, BATCH)) {
      const columns = [
        batch.map((rate) => rate.day),
        batch.map((rate) => rate.currencyCode),
        batch.map((rate) => rate.perEuro),
      ]
      for (const some of piecesOf(organizations, Math.floor(ROWS / batch.length)))
        await query(STORE, [...columns, some])
    }
  })
}

function* piecesOf<T>(all: T[], size: number): Iterable<T[]> {
  for (let from = 0; from < all.length; from += size) yield all.slice(from, from + size)
}

const ORGANIZATIONS = 'select id from organizations where $1::text is null or id = $1 order by id'

const STORE = `
  insert into exchange_rates (organization_id, day, currency_code, per_euro)
  select g.id, r.day, r.currency_code, r.per_euro
  from unnest($4::text[]) g (id), unnest($1::date[], $2::text[], $3::numeric[]) r (day, currency_code, per_euro)
  order by 1, 3, 2
  on conflict (organization_id, currency_code, day) do update set per_euro = excluded.per_euro`
