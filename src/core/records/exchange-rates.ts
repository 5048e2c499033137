// Converts amounts to US dollars by an organization's exchange rates.
import { convertMinor, type Decimal, formatMinor, MAX_MINOR, readDecimal } from '../../lib/money.ts'

// An older rate is not used: banks are closed for some days, but never for a week.
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
