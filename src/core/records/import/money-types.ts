// The types of import fields that hold money: minor units in the data API, exact major units in the payment report.
import { JsonNumber, type JsonObject, type JsonValue } from '../../../lib/json/read.ts'
import { formatMinor, MoneyError, readAmount, readAnyCurrency, toMinor } from '../../../lib/money.ts'
import { shorten } from '../../../lib/text.ts'
import { BadLine, type Type } from './fields.ts'
import { readText } from './types.ts'

/** Minor units, limited to the integers that every JSON reader keeps exact. */
export const minor: Type = {
  read(value) {
    const isWhole = typeof value === 'number' && Number.isInteger(value)
    if (isWhole && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value
    throw new BadLine(
      ` must be a whole number in the minor unit of the currency, such as 1999 for $19.99, from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`,
    )
  },
}

export const currency: Type = { read: (value) => readCode(readText(value)) }

/** The code of a currency, in capitals; historic ones are accepted in history, not for new charges. */
export function readCode(given: string): string {
  const code = readAnyCurrency(given)
  if (code === undefined) throw new BadLine(` must be a currency of ISO 4217, got ${JSON.stringify(shorten(given, 8))}`)
  return code
}

/** An amount in US dollars. */
export const usd: Type = { read: (value) => readMajor(value, 'USD') }

/** An amount in the currency of `currency_code` in the same object, which is read first. */
export const amount: Type = {
  read: (value, _, siblings: JsonObject) => readMajor(value, readCode(siblings.currency_code as string)),
}

/** Zero or more, written with all decimals of the currency: `10.5` dollars are stored as `10.50`. */
function readMajor(value: JsonValue, code: string): string {
  if (typeof value !== 'number' && !(value instanceof JsonNumber)) throw new BadLine(' must be a number')
  const exact = readExact(value)
  if (exact.digits < 0n) throw new BadLine(' must not be below 0')
  const units = toMinor(exact, code)
  if (units === undefined) throw new BadLine(` has more decimal places than ${code} allows`)
  return formatMinor(units, code)
}

function readExact(value: number | JsonNumber) {
  try {
    return readAmount(value)
  } catch (error) {
    throw error instanceof MoneyError ? new BadLine(` ${error.message}`) : error
  }
}
