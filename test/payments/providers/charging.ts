// Charges through a provider as billing does, in one step or two; requests, each with its own key; and the handles of prepared payments.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import type { Settled } from '../../../src/payments/providers/outcomes.ts'
import type { ChargeRequest, Provider, Reference, RefundRequest } from '../../../src/payments/providers/provider.ts'

export type Charging = ReturnType<typeof charging>

export function charging(provider: Provider) {
  const handles = new Map<string, string>()
  const withHandle = <Named extends Reference>(reference: Named): Named => ({
    ...reference,
    handle: handles.get(reference.key) ?? null,
  })
  async function inTwoSteps(request: ChargeRequest, giveUp?: () => AbortSignal) {
    const prepared = await provider.prepare!(request)
    if (prepared.outcome !== 'prepared') return prepared
    handles.set(request.key, prepared.handle)
    return provider.confirm!({ ...request, handle: prepared.handle }, giveUp?.())
  }
  /** In one step; a result that is withheld is looked up, and what is authorized is captured. */
  async function inOneStep(request: ChargeRequest, giveUp?: () => AbortSignal) {
    const response = await provider.charge!(request, giveUp?.())
    if (response.outcome !== 'withheld') return captured(request, response)
    const found = await captured(request, await provider.lookUp({ ...request, handle: response.handle ?? null }))
    const isOther = 'amountMinor' in found && (found.askedMinor ?? found.amountMinor) !== request.amountMinor
    const isForeign = 'currencyCode' in found && found.currencyCode !== request.currencyCode
    return isOther || isForeign ? ({ outcome: 'conflict' } as const) : found
  }
  const captured = async <T extends { outcome: string }>(request: Reference, response: T) =>
    response.outcome === 'authorized'
      ? provider.capture!({ ...request, handle: (response as unknown as { handle: string }).handle })
      : (response as Exclude<T, { outcome: 'authorized' }>)
  return {
    provider,
    /** `giveUp` returns the signal of the call that charges, when that begins. */
    charge: (request: ChargeRequest, giveUp?: () => AbortSignal) =>
      provider.charge ? inOneStep(request, giveUp) : inTwoSteps(request, giveUp),
    refund: async (request: RefundRequest) => {
      const response = await provider.refund(request)
      if (response.outcome !== 'withheld') return response
      const found = await provider.lookUpRefund(request)
      const isOther = 'amountMinor' in found && found.amountMinor !== request.amountMinor
      return isOther ? ({ outcome: 'conflict' } as const) : found
    },
    lookUp: (reference: Reference) => provider.lookUp(withHandle(reference)),
    refuse: (reference: Reference) => provider.refuse(withHandle(reference)),
    withHandle,
  }
}

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
