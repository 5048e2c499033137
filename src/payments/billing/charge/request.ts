// The body of a custom charge, read exactly: its shape, and the rules that hold whatever the organization allows.
import type { JsonNumber, JsonObject } from '../../../lib/json/read.ts'
import { type Decimal, readCurrency } from '../../../lib/money.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { amountIn, clientMetadata, externalId, idempotencyKey, readAmountField, readMetadata } from '../body.ts'
import { grantsIn, readGrants } from '../credits/grants.ts'

export const oneOffChargeIn = Type.Named('OneOffChargeIn', {
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
  client_metadata: Type.Optional(clientMetadata),
  grants: Type.Optional(grantsIn),
})

export interface ChargeRequest {
  externalId: string
  idempotencyKey: string
  amount: Decimal
  /** As it was sent, for sentences about it. */
  amountSent: string | number | JsonNumber
  /** In capitals; known or not. */
  currencyCode: string
  clientMetadata: string | null
  /** The credits that it grants, in the form of the order; null: what the rules of the organization grant. */
  grants: string | null
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
    clientMetadata: readMetadata('client_metadata', body.client_metadata as JsonObject | undefined),
    grants: readGrants(body.grants),
  }
}
