// The parts that the bodies of billing requests share: customer, key and amount, with their rules beyond JSON Schema.
import { findCardNumber } from '../../lib/card-data.ts'
import { ApiError } from '../../lib/errors.ts'
import { DECLARED_ONLY, NO_CONTROL_CHARACTERS, UUID } from '../../lib/http/rule-phrases.ts'
import type { JsonNumber, JsonObject } from '../../lib/json/read.ts'
import { type Decimal, MoneyError, readAmount } from '../../lib/money.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { shorten } from '../../lib/text.ts'

export const externalId = Type.String({
  description: 'Your own unique identifier of the user.',
  minLength: 1,
  maxLength: 256,
  pattern: NO_CONTROL_CHARACTERS,
  examples: ['ada'],
})

export const idempotencyKey = Type.String({
  description: 'One key for each purchase intent, unique for the customer. Send the same key with every retry.',
  minLength: 1,
  maxLength: 128,
  pattern: NO_CONTROL_CHARACTERS,
  examples: ['topup-2026-01-31-7f3a'],
})

/** An amount in major units: a number, or a text for callers whose numbers are floats. */
export function amountIn(description: string): Schema {
  const declared = { exclusiveMinimum: 0, pattern: '^[0-9]{1,15}([.][0-9]{1,9})?$' }
  return { type: ['number', 'string'], description, examples: ['10.50'], [DECLARED_ONLY]: declared }
}

/** A UUID in its usual form. The keyword `format` alone accepts other forms, which the database refuses. */
export function uuidIn(description: string, { nullable = false } = {}): Schema {
  return {
    type: nullable ? ['string', 'null'] : 'string',
    format: 'uuid',
    pattern: UUID,
    description,
    examples: ['0198c1de-6a3c-7cc1-a9d4-3f1b7e5a9c20'],
  }
}

/** Reads an amount of any size and sign, exactly, or throws a 400 if it is not an amount. */
export function readAmountField(value: string | number | JsonNumber): Decimal {
  // The form of a text has no sign; the sentence about the sign is more useful than one about the form.
  if (typeof value === 'string' && /^-[0-9]/.test(value)) throw notPositive(value)
  try {
    return readAmount(value)
  } catch (error) {
    if (error instanceof MoneyError) throw amountRefused('invalid_amount', error.message, value)
    throw error
  }
}

/** `amount must be greater than 0, got 0.` */
export function notPositive(value: unknown): ApiError {
  return amountRefused('amount_not_positive', 'must be greater than 0', value)
}

/** The refusal of an amount that breaks a rule; `value` is what was sent. */
export function amountRefused(code: string, rule: string, value: unknown, field = 'amount'): ApiError {
  return new ApiError(400, code, amountRule(rule, value, field))
}

/** The sentence of `amountRefused`. */
export function amountRule(rule: string, value: unknown, field = 'amount'): string {
  return `${field} ${rule}, got ${shorten(JSON.stringify(value), 64)}.`
}

// Enough for references of an order; larger data belongs in the caller's database.
const MAX_METADATA_BYTES = 16 * 1024

/** Metadata of a request, which is stored with what the request made. */
export const clientMetadata = {
  type: 'object',
  additionalProperties: true,
  description: 'Any data of your own, up to 16 KiB; never card data.',
  examples: [{ pack: 'tokens-100' }],
}

/** Throws a 400 for metadata that is too large or contains card data. `field` names it. */
export function readMetadata(field: string, metadata: JsonObject | undefined): string | null {
  if (metadata === undefined) return null
  const text = JSON.stringify(metadata)
  if (Buffer.byteLength(text) > MAX_METADATA_BYTES) {
    throw new ApiError(400, 'metadata_too_large', `${field} must have at most ${MAX_METADATA_BYTES} bytes of JSON.`)
  }
  const place = findCardNumber(metadata)
  if (place !== undefined) {
    throw new ApiError(
      400,
      'card_data_in_metadata',
      `${field} must not hold card data: the value at "${place}" looks like a card number.`,
    )
  }
  return text
}
