// Amounts of money, exact from text to minor units and back, without floating point.
import { allCurrencies, currencies } from './currencies.ts'
import { type JsonNumber, numberText } from './json/read.ts'

/** The message is the phrase after the field's name: `must be greater than 0`. */
export class MoneyError extends Error {}

/** The exact value `digits / 10^scale`, without zeros at the end: 10.50 is `{ digits: 105n, scale: 1 }`. */
export type Decimal = { readonly digits: bigint; readonly scale: number }

// 15 digits keep every amount, in the smallest unit of any currency, below 10^19.
const AMOUNT_TEXT = /^[0-9]{1,15}(?:\.[0-9]{1,9})?$/
const DECIMAL = /^(-?)([0-9]+)(?:\.([0-9]+))?$/
const MAX_WHOLE_DIGITS = 15
/** The largest price of the data API in minor units, which other databases can store, too. */
export const MAX_MINOR = 2n ** 63n - 1n

/** The code of a currency that is in use, in capitals, from a text in any case. */
export function readCurrency(text: string): string | undefined {
  const code = capitals(text)
  return currencies.has(code) ? code : undefined
}

/** The same of a stored amount, which may also be in a currency that is no longer in use. */
export function readAnyCurrency(text: string): string | undefined {
  const code = capitals(text)
  return allCurrencies.has(code) ? code : undefined
}

// Only ASCII letters: in Unicode "uſd" becomes "USD" in capitals.
const capitals = (text: string) => (/^[A-Za-z]{3}$/.test(text) ? text.toUpperCase() : '')

/** How many decimals an amount in this currency may have, also in a historic one; undefined for an unknown currency. */
export function minorUnits(currency: string): number | undefined {
  return allCurrencies.get(currency)
}

/**
 * Reads an amount in major units, a string or a number read with `exact`, whatever its currency and sign.
 * Throws a `MoneyError` where the text has no such form: an exponent, a sign in a string, too many digits.
 */
export function readAmount(value: string | number | JsonNumber): Decimal {
  if (typeof value === 'string' && !AMOUNT_TEXT.test(value)) {
    throw new MoneyError('must be a decimal number with at most 15 digits before the point and 9 behind it')
  }
  const text = numberText(value)
  if (/e/i.test(text)) throw new MoneyError('must be written without an exponent')
  const amount = readDecimal(text)
  if (amount === undefined) throw new MoneyError('must be a decimal number')
  if (String(wholePart(amount)).length > MAX_WHOLE_DIGITS) {
    throw new MoneyError(`must have at most ${MAX_WHOLE_DIGITS} digits before the point`)
  }
  return amount
}

/** Reads a decimal number of any length, without an exponent. */
export function readDecimal(text: string): Decimal | undefined {
  const match = DECIMAL.exec(text)
  if (!match) return undefined
  const [, sign, whole, fraction = ''] = match as unknown as [string, string, string, string?]
  const significant = fraction.replace(/0+$/, '')
  return { digits: BigInt(`${sign}${whole}${significant}`), scale: significant.length }
}

/** The amount in minor units; undefined if it has more decimals than the currency allows. Zeros at the end do not count. */
export function toMinor(amount: Decimal, currency: string): bigint | undefined {
  const missing = knownMinorUnits(currency) - amount.scale
  return missing < 0 ? undefined : amount.digits * tenTo(missing)
}

/** Reads an amount to be paid, in major units of a known currency, into minor units, or throws a `MoneyError`. */
export function readMinor(value: string | number | JsonNumber, currency: string): bigint {
  const amount = readAmount(value)
  if (amount.digits <= 0n) throw new MoneyError('must be greater than 0')
  const minor = toMinor(amount, currency)
  if (minor === undefined) throw new MoneyError(tooManyDecimals(currency))
  return minor
}

/** The phrase for an amount that `toMinor` cannot convert: `must have no decimal places in JPY`. */
export function tooManyDecimals(currency: string): string {
  const most = knownMinorUnits(currency)
  return `must have ${most === 0 ? 'no' : `at most ${most}`} decimal places in ${currency}`
}

/** Writes minor units as major units with all decimals of the currency: 1050 USD is `10.50`, 500 JPY is `500`. */
export function formatMinor(minor: bigint, currency: string): string {
  const units = knownMinorUnits(currency)
  const digits = String(minor < 0n ? -minor : minor).padStart(units + 1, '0')
  const sign = minor < 0n ? '-' : ''
  const point = digits.length - units
  return units === 0 ? sign + digits : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`
}

/**
 * Converts minor units of one currency into minor units of another, rounded half-even. The rates say how many units of
 * each are worth the same, as in the European Central Bank's tables (units for one euro), and must be positive.
 */
export function convertMinor(minor: bigint, from: string, fromRate: Decimal, to: string, toRate: Decimal): bigint {
  if (fromRate.digits <= 0n || toRate.digits <= 0n) throw new Error('Bug: an exchange rate must be positive')
  const dividend = minor * toRate.digits * tenTo(fromRate.scale + knownMinorUnits(to))
  const divisor = fromRate.digits * tenTo(toRate.scale + knownMinorUnits(from))
  return divideHalfEven(dividend, divisor)
}

/** Rounds to the nearest integer, and a half to the even one; `divisor` must be positive. */
export function divideHalfEven(dividend: bigint, divisor: bigint): bigint {
  const size = dividend < 0n ? -dividend : dividend
  const quotient = size / divisor
  const twice = (size % divisor) * 2n
  const up = twice > divisor || (twice === divisor && quotient % 2n === 1n)
  const rounded = up ? quotient + 1n : quotient
  return dividend < 0n ? -rounded : rounded
}

function wholePart({ digits, scale }: Decimal): bigint {
  const whole = digits / tenTo(scale)
  return whole < 0n ? -whole : whole
}

function knownMinorUnits(currency: string): number {
  const units = allCurrencies.get(currency)
  if (units === undefined) throw new Error(`Bug: the currency "${currency}" was not checked`)
  return units
}

function tenTo(power: number): bigint {
  return 10n ** BigInt(power)
}
