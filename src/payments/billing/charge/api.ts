// The route of a custom charge.
import type { FastifyInstance } from 'fastify'
import type { JsonObject } from '../../../lib/json/read.ts'
import type { BillingContext } from '../context.ts'
import type { Checked } from '../movement/kind-of-movement.ts'
import { describe, ok } from '../route.ts'
import { oneOffCharge } from './charge.ts'
import { oneOffChargeIn, readChargeRequest } from './request.ts'
import { oneOffChargeOut } from './response.ts'
import type { Order } from './row.ts'

export function mountCharges(app: FastifyInstance, context: BillingContext, kind: Checked<Order>): void {
  const schema = {
    ...describe({
      operationId: 'createOneOffCharge',
      summary: 'Charge a saved card',
      description:
        'Charges any amount to the customer’s saved card, at most once for each `idempotency_key`, and grants one consumable. Send the same key with every retry: it returns the outcome of the first charge.',
    }),
    body: oneOffChargeIn,
    ...ok('The outcome of the charge.', oneOffChargeOut, {
      coded: ['one_off_charge_disabled', 'idempotency_key_reused'],
    }),
  }
  app.post(
    '/payment/one_off_charge',
    { schema, config: { scope: 'charge' } },
    async ({ exactBody, organizationId, trace: { traceparent } }) =>
      oneOffCharge({ ...context, traceparent }, kind, organizationId, readChargeRequest(exactBody as JsonObject)),
  )
}
