// Converts amounts by an organization's exchange rates.
import { convertMinor, type Decimal, formatMinor, MAX_MINOR, readDecimal } from '../../lib/money.ts'

// An older rate is not used: banks are closed for some days, but never for a week.
export const OLDEST_RATE_DAYS = 7

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

/**
 * SQL: a query of one value or none, `value` of the units of two currencies for one euro, by the same rates. The first four are SQL
 * expressions.
 */
export const convertedBy = (
  organization: string,
  from: string,
  to: string,
  day: string,
  value: (from: string, to: string) => string,
) => `
  select ${value('known.per_euro', 'wanted.per_euro')}
  from exchange_rates known
  join exchange_rates wanted
    on wanted.organization_id = known.organization_id and wanted.day = known.day and wanted.currency_code = ${to}
  where known.organization_id = ${organization} and known.currency_code = ${from}
    and known.day between ${day} - ${OLDEST_RATE_DAYS} and ${day}
  order by known.day desc limit 1`

/** The amount in US cents, rounded half-even; null without a rate, and with one that makes it more than a price can be. */
export function toUsdMinor(minor: bigint, currency: string, rates: Rates): bigint | null {
  if (currency === 'USD') return minor
  if (rates.currency_per_euro === null || rates.usd_per_euro === null) return null
  const { currency_per_euro, usd_per_euro } = rates
  const cents = convertMinor(minor, currency, rateOf(currency_per_euro), 'USD', rateOf(usd_per_euro))
  return cents > MAX_MINOR ? null : cents
}

/** US cents in dollars, as text. */
export function writeUsd(minor: bigint | null): string | null {
  return minor === null ? null : formatMinor(minor, 'USD')
}

function rateOf(text: string): Decimal {
  const rate = readDecimal(text)
  if (!rate) throw new Error(`Bug: the database wrote the rate "${text}"`)
  return rate
}
