// Amounts of credits: exact, in millionths of a unit, from a request's text to the database's and back.
import { ApiError } from '../../../lib/errors.ts'
import { JsonNumber } from '../../../lib/json/read.ts'
import { MoneyError, readAmount } from '../../../lib/money.ts'
import { shorten } from '../../../lib/text.ts'

/** Millionths of a unit, the most decimals that a unit may have. */
export type Credits = bigint

export type SentAmount = string | number | JsonNumber

const SCALE = 6
// A million amounts of this size fit into the columns.
const MAX_WHOLE_DIGITS = 12
const NOT_AN_AMOUNT = `must be a decimal number with at most ${MAX_WHOLE_DIGITS} digits before the point and ${SCALE} behind it`
const MAX = 10n ** BigInt(MAX_WHOLE_DIGITS + SCALE)

/**
 * Reads an amount that was sent, judged on its text; `field` names it in the refusal. Throws a 400 unless it is above zero, or with
 * `signed` not zero, with the decimals that some unit may have; `checkDecimals` judges those of the unit.
 */
export function readCredits(sent: SentAmount, { field = 'amount', signed = false } = {}): Credits {
  const refuse = (rule: string) => refused(`${field} ${rule}, got ${shorten(JSON.stringify(sent), 64)}.`)
  const amount = read(sent, refuse)
  if (amount.digits === 0n || (!signed && amount.digits < 0n))
    throw refuse(signed ? 'must not be 0' : 'must be greater than 0')
  if (amount.scale > SCALE) throw refuse(`must have at most ${SCALE} decimal places`)
  const credits = amount.digits * 10n ** BigInt(SCALE - amount.scale)
  if (credits >= MAX || credits <= -MAX) throw refuse(`must have at most ${MAX_WHOLE_DIGITS} digits before the point`)
  return credits
}

/** Throws a 400 if the amount has more decimals than its unit. */
export function checkDecimals(
  credits: Credits,
  { unit, decimals, field = 'amount' }: { unit: string; decimals: number; field?: string },
): void {
  if (credits % 10n ** BigInt(SCALE - decimals) === 0n) return
  const most = decimals === 0 ? 'no' : `at most ${decimals}`
  throw refused(`${field} must have ${most} decimal places in ${unit}, got ${formatCredits(credits)}.`)
}

const refused = (sentence: string) => new ApiError(400, 'invalid_credit_amount', sentence)

function read(sent: SentAmount, refuse: (rule: string) => ApiError) {
  try {
    // A text has no sign there; here it may have one, like a number.
    if (typeof sent !== 'string' || !sent.startsWith('-')) return readAmount(sent)
    const { digits, scale } = readAmount(sent.slice(1))
    return { digits: -digits, scale }
  } catch (error) {
    // The sentence about texts names more digits than credits have.
    if (error instanceof MoneyError) throw refuse(typeof sent === 'string' ? NOT_AN_AMOUNT : error.message)
    throw error
  }
}

/** Reads a value of a column, which always has six decimals. */
export function creditsFromDatabase(text: string): Credits {
  if (!/^-?[0-9]+\.[0-9]{6}$/.test(text)) throw new Error(`Bug: the database wrote the credits "${text}"`)
  return BigInt(text.replace('.', ''))
}

/** Reads an amount that `formatCredits` wrote. */
export function creditsFromText(text: string): Credits {
  const [whole, fraction = ''] = text.split('.')
  return creditsFromDatabase(`${whole}.${fraction.padEnd(SCALE, '0')}`)
}

/** Writes an amount without needless zeros: `10`, `0.5`, `-3.25`. */
export function formatCredits(credits: Credits): string {
  const digits = String(credits < 0n ? -credits : credits).padStart(SCALE + 1, '0')
  const fraction = digits.slice(-SCALE).replace(/0+$/, '')
  return `${credits < 0n ? '-' : ''}${digits.slice(0, -SCALE)}${fraction && `.${fraction}`}`
}

/** An amount for a response. */
export const jsonCredits = (credits: Credits): JsonNumber => new JsonNumber(formatCredits(credits))

/** The share `part / whole` of an amount, rounded down to the decimals of the unit. */
export function shareOf(credits: Credits, part: bigint, whole: bigint, decimals: number): Credits {
  const step = 10n ** BigInt(SCALE - decimals)
  return ((credits * part) / whole / step) * step
}
