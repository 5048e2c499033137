// Compares and writes amounts of money: exact values on the way in, database text on the way out.
import { JsonNumber } from '../../lib/json/read.ts'
import { type Decimal, readDecimal, toMinor } from '../../lib/money.ts'

/** Reads an amount in the database's form. */
export function fromDatabase(text: string): Decimal {
  const amount = readDecimal(text)
  if (!amount) throw new Error(`Bug: the database wrote the amount "${text}"`)
  return amount
}

/** The same in minor units. */
export function minorFromDatabase(text: string, currency: string): bigint {
  const minor = toMinor(fromDatabase(text), currency)
  if (minor === undefined) throw new Error(`Bug: the database wrote the amount "${text}" in ${currency}`)
  return minor
}

/** Negative, zero or positive, as `one` is less than, equal to or greater than `other`. */
export function compare(one: Decimal, other: Decimal): number {
  const scale = Math.max(one.scale, other.scale)
  const difference = one.digits * 10n ** BigInt(scale - one.scale) - other.digits * 10n ** BigInt(scale - other.scale)
  return difference === 0n ? 0 : difference < 0n ? -1 : 1
}

/** An amount for a response: a JSON number with all decimals of the text. */
export function jsonAmount(text: string): JsonNumber {
  return new JsonNumber(text)
}

/** SQL: the most that one charge may have in a currency, as text in major units, of the organization in this alias. */
export const maximumOf = (organization: string, currency: string): string =>
  `coalesce(${organization}.one_off_charge_max_amount ->> ${currency}, ${organization}.one_off_charge_max_amount ->> '*', '0')`
