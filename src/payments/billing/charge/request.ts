// The body of a custom charge, read exactly: its shape, and the rules that hold whatever the organization allows.
import { findCardNumber } from '../../../lib/card-data.ts'
import { ApiError } from '../../../lib/errors.ts'
import type { JsonNumber, JsonObject } from '../../../lib/json/read.ts'
import { type Decimal, readCurrency } from '../../../lib/money.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { amountIn, externalId, idempotencyKey, readAmountField } from '../body.ts'

// Enough for references of an order; larger data belongs in the caller's database.
const MAX_METADATA_BYTES = 16 * 1024

export const oneOffChargeIn = Type.Object(
  {
    external_id: externalId,
    amount: amountIn(
      'Amount in major units (`10.5` with USD is $10.50): greater than 0, with no more decimals than the currency has, and not above the organization’s maximum. A number or a text without exponent; its digits are checked as they were sent.',
    ),
    currency_code: Type.String({
      description: 'ISO 4217 code, in any case.',
      minLength: 3,
      maxLength: 3,
      examples: ['USD'],
    }),
    idempotency_key: idempotencyKey,
    client_metadata: Type.Optional({
      type: 'object',
      additionalProperties: true,
      description: 'Any data of your own, up to 16 KiB; never card data.',
      examples: [{ pack: 'tokens-100' }],
    }),
  },
  { title: 'OneOffChargeIn', additionalProperties: false },
)

export interface ChargeRequest {
  externalId: string
  idempotencyKey: string
  amount: Decimal
  /** As it was sent, for sentences about it. */
  amountSent: string | number | JsonNumber
  /** In capitals; known or not. */
  currencyCode: string
  clientMetadata: string | null
}

/** Reads a body that is valid for `oneOffChargeIn`, with the text of its numbers. Throws a 400. */
export function readChargeRequest(body: JsonObject): ChargeRequest {
  const { external_id, idempotency_key, currency_code } = body as Record<string, string>
  const amountSent = body.amount as string | number | JsonNumber
  return {
    externalId: external_id!,
    idempotencyKey: idempotency_key!,
    amount: readAmountField(amountSent),
    amountSent,
    currencyCode: readCurrency(currency_code!) ?? currency_code!,
    clientMetadata: readMetadata(body.client_metadata as JsonObject | undefined),
  }
}

function readMetadata(metadata: JsonObject | undefined): string | null {
  if (metadata === undefined) return null
  const text = JSON.stringify(metadata)
  if (Buffer.byteLength(text) > MAX_METADATA_BYTES) {
    throw new ApiError(
      400,
      'metadata_too_large',
      `client_metadata must have at most ${MAX_METADATA_BYTES} bytes of JSON.`,
    )
  }
  const place = findCardNumber(metadata)
  if (place !== undefined) {
    throw new ApiError(
      400,
      'card_data_in_metadata',
      `client_metadata must not hold card data: the value at "${place}" looks like a card number.`,
    )
  }
  return text
}
