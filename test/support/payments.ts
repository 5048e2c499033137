// Requests to payment providers, each with its own key.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import type { Settled } from '../../src/payments/providers/outcomes.ts'
import type { ChargeRequest, RefundRequest } from '../../src/payments/providers/provider.ts'
import type { Charging } from './charging.ts'

export function chargeRequest(token: string, more: Partial<ChargeRequest> = {}): ChargeRequest {
  return {
    key: randomBytes(32).toString('hex'),
    reference: randomUUID(),
    amountMinor: 1050n,
    currencyCode: 'USD',
    token,
    merchantId: 'merchant-1',
    region: 'eu',
    handle: null,
    providerCustomer: null,
    ...more,
  }
}

export function refundRequest(charge: Settled, amountMinor: bigint, more: Partial<RefundRequest> = {}): RefundRequest {
  const {
    token: _card,
    providerCustomer: _customer,
    ...request
  } = chargeRequest('', { amountMinor, currencyCode: charge.currencyCode })
  const chargeTransactionId = charge.details.psp_transaction_id ?? assert.fail('A charge has an id.')
  return { ...request, chargeTransactionId, ...more }
}

export function assertSettled(response: { outcome: string }, outcome: Settled['outcome']): asserts response is Settled {
  assert.equal(
    response.outcome,
    outcome,
    JSON.stringify(response, (_k, v) => (typeof v === 'bigint' ? String(v) : v)),
  )
}

/** Charges a valid card, and returns the settled outcome. */
export async function charged(driver: Charging, token: string): Promise<Settled> {
  const response = await driver.charge(chargeRequest(token))
  assertSettled(response, 'succeeded')
  return response
}
