// Exact fractions, for amounts that are multiplied and divided often and rounded once.
import { divideHalfEven, readDecimal } from './money.ts'

/** `over / under`, reduced; `under` is positive. */
export interface Fraction {
  readonly over: bigint
  readonly under: bigint
}

export function fraction(over: bigint, under = 1n): Fraction {
  if (under === 0n) throw new Error('Bug: a fraction cannot be divided by 0')
  const sign = under < 0n ? -1n : 1n
  const common = greatestCommonDivisor(over < 0n ? -over : over, under * sign)
  return { over: (over * sign) / common, under: (under * sign) / common }
}

export const ZERO = fraction(0n)

/** Reads a decimal number without an exponent; undefined for any other text. */
export function fractionOf(text: string): Fraction | undefined {
  const decimal = readDecimal(text)
  return decimal && fraction(decimal.digits, 10n ** BigInt(decimal.scale))
}

export const plus = (a: Fraction, b: Fraction): Fraction =>
  fraction(a.over * b.under + b.over * a.under, a.under * b.under)

export const times = (a: Fraction, b: Fraction): Fraction => fraction(a.over * b.over, a.under * b.under)

/** The nearest integer; a half goes to the even one. */
export const roundHalfEven = ({ over, under }: Fraction): bigint => divideHalfEven(over, under)

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b)
}
