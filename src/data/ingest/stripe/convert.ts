// Shared by the conversions of Stripe's objects: lines of an import, ids, times and amounts.
import { hash } from 'node:crypto'
import { formatMinor } from '../../../lib/money.ts'
import { isId } from '../../../lib/text.ts'
import { fromStripeAmount } from '../../../payments/providers/stripe/money.ts'
import type { Line as PlainLine } from '../line-import.ts'
import type { MetadataFields, Names } from './names.ts'

/** One line of an import. */
export interface Line extends PlainLine {
  /** What the metadata of its objects names. */
  names?: Names
  /** Of a billing customer: the customer's id at Stripe. */
  customer?: string
}

/** The id at Stripe of a line's object. */
export function idIn({ data }: PlainLine): string {
  return String(data.psp_transaction_id ?? data.id ?? data.profile_id ?? data.external_id)
}

/** Why an object cannot be imported; the message completes the sentence "ID …". */
export class Inconvertible extends Error {}

/** The parameters of a conversion besides the object. */
export interface Target {
  organizationId: string
  projectId: string
  /** The merchant account that payments are attributed to. */
  merchantId: string
  /** The name in a customer's metadata that holds the client's id of the customer. */
  externalIdKey: string | undefined
  /** Other names of the metadata that names records. */
  metadata?: MetadataFields | undefined
  /** Whether a customer is also recognized by the e-mail address. */
  matchEmail?: boolean | undefined
}

/** A number that `JSON.stringify` writes with exactly these digits. */
export const { rawJSON: rawNumber } = JSON as unknown as { rawJSON: (text: string) => unknown }

/** Stripe's id as the id of a record; ids that are invalid here (those of products are free) are hashed. */
export function recordId(stripeId: string): string {
  return isId(stripeId) ? stripeId : `stripe_${hash('sha256', stripeId, 'hex').slice(0, 40)}`
}

/** The UUID of a Stripe object, the same at every import: version 8 of RFC 9562, from a hash. */
export function uuidOf(purpose: 'order' | 'payment' | 'failure', stripeId: string): string {
  const digits = hash('sha256', `${purpose} ${stripeId}`, 'hex')
  const variant = ((Number.parseInt(digits[16]!, 16) & 0x3) | 0x8).toString(16)
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `${variant}${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ].join('-')
}

/** Stripe's seconds since 1970 as a date-time; null for none. Throws `Inconvertible` for no time. */
export function time(seconds: number | null | undefined): string | null {
  if (seconds === null || seconds === undefined) return null
  // Years of more than four digits have another form.
  if (Number.isSafeInteger(seconds) && Math.abs(seconds) <= LAST_SECOND) return new Date(seconds * 1000).toISOString()
  throw new Inconvertible(`has a time that cannot be stored: ${seconds}`)
}

const LAST_SECOND = Date.UTC(9999, 11, 31) / 1000

/** The month of Stripe's seconds, as `2026-10`. */
export const monthOf = (seconds: number): string => time(seconds)!.slice(0, 7)

/** Stripe's amount in minor units of ISO 4217. */
export function minorUnits(amount: number, currency: string): bigint {
  const code = currency.toUpperCase()
  const minor = Number.isSafeInteger(amount) ? fromStripeAmount(BigInt(amount), code) : undefined
  if (minor === undefined) throw new Inconvertible(`has an amount that cannot be converted: ${amount} ${code}`)
  return minor
}

/** A JSON number in minor units, for prices of the data API. */
export function minorNumber(amount: number, currency: string): number {
  return Number(minorUnits(amount, currency))
}

/** A JSON number in major units with all decimals, for amounts of payments. */
export function majorNumber(amount: number, currency: string): unknown {
  return rawNumber(formatMinor(minorUnits(amount, currency), currency.toUpperCase()))
}

/** The id of an object that may have been expanded. */
export function idOf(value: string | { id: string } | null | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.id
}

/** A text that is not empty. */
export const textOr = (value: string | null | undefined): string | null => value || null
