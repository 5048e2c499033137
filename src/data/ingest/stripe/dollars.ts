// Gives imported amounts of other currencies their amount in US dollars, by the organization's exchange rates.
import type { App } from '../../../app.ts'
import { joinRates, type Rates, toUsdMinor, writeUsd } from '../../../core/records/exchange-rates.ts'
import { minorUnits, readDecimal, toMinor } from '../../../lib/money.ts'
import { type Line, rawNumber, type Target } from './convert.ts'

/** Fills `amount_usd` of payments and `price_usd` of transactions and subscriptions where a rate of the day is known. */
export async function addDollars(
  { db }: Pick<App, 'db'>,
  { organizationId }: Pick<Target, 'organizationId'>,
  lines: Line[],
): Promise<void> {
  const foreign = lines.flatMap((line) => sumOf(line) ?? [])
  if (foreign.length === 0) return
  const rates = await readRates(db, organizationId, foreign)
  for (const { data, minor, currency, day, isPayment } of foreign) {
    const found = rates.get(`${currency} ${day}`)
    const cents = found ? toUsdMinor(minor, currency, found) : null
    if (cents === null) continue
    if (isPayment) data.amount_usd = rawNumber(writeUsd(cents)!)
    else data.price_usd = Number(cents)
  }
}

interface Foreign {
  data: Line['data']
  minor: bigint
  currency: string
  /** The UTC day whose rate counts: that of the payment, or the one on which the record was made. */
  day: string
  isPayment: boolean
}

const PRICED = ['transaction', 'subscription']

/** The amount of a line that is not in US dollars; undefined if it has none. */
function sumOf({ record, data }: Line): Foreign | undefined {
  const isPayment = record === 'payment'
  if (!isPayment && !PRICED.includes(record)) return undefined
  const currency = String(isPayment ? data.currency_code : data.currency).toUpperCase()
  if (currency === 'USD' || minorUnits(currency) === undefined) return undefined
  const minor = isPayment ? toMinor(readDecimal(JSON.stringify(data.amount))!, currency)! : BigInt(Number(data.price))
  const day = String(isPayment ? data.trx_created_at : data.created_at).slice(0, 10)
  return { data, minor, currency, day, isPayment }
}

async function readRates(db: App['db'], organizationId: string, foreign: Foreign[]): Promise<Map<string, Rates>> {
  const distinct = [...new Map(foreign.map((one) => [`${one.currency} ${one.day}`, one])).values()]
  const rows = await db.query<Rates & { currency: string; day: string }>(
    `select p.currency, p.day, rates.currency_per_euro, rates.usd_per_euro
     from unnest($2::text[], $3::text[]) as p (currency, day) ${joinRates('$1', 'p.currency', 'p.day')}`,
    [organizationId, distinct.map(({ currency }) => currency), distinct.map(({ day }) => day)],
  )
  return new Map(rows.map((row) => [`${row.currency} ${row.day}`, row]))
}
