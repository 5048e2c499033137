// A payment provider in memory that prepares and confirms, as Stripe does; a test can let any call fail before or after its effect.
import { randomUUID } from 'node:crypto'
import type { Settled } from '../../../src/payments/providers/outcomes.ts'
import { noDetails, type Provider, type Traits } from '../../../src/payments/providers/provider.ts'
import { scriptedProvider } from './scripted-provider.ts'

export const twoSteps: Traits = {
  prepares: true,
  lookUp: 'handle',
  keyLifeMs: 24 * 3_600_000,
  refuse: 'cancel',
  refunds: 'may_fail_later',
  refuseRefund: 'wait_out',
}

interface Payment {
  handle: string
  key: string
  state: 'prepared' | 'succeeded' | 'failed' | 'cancelled' | 'pending'
  settled: Settled
  /** Whether its key was used so long ago that the provider makes another payment under it. */
  isForgotten?: boolean
}

/** What becomes of the next call of a name: `lost` never arrives, `no_response` is carried out without a response. */
export type Fault = 'lost' | 'no_response' | 'not_begun' | 'declined' | 'pending' | 'rejected'

export function twoStepProvider(more: Partial<Provider> = {}) {
  const payments = new Map<string, Payment>()
  const calls: string[] = []
  const faults = new Map<string, Fault>()
  const unknown = { outcome: 'unknown', why: 'no response' } as const

  async function call<T>(name: string, work: () => T): Promise<T | typeof unknown> {
    calls.push(name)
    const fault = faults.get(name)
    if (fault === 'lost') return unknown
    const response = work()
    return fault === 'no_response' ? unknown : response
  }
  const verdict = (payment: Payment) => {
    const { handle, state } = payment
    if (state === 'succeeded' || state === 'failed') return payment.settled
    if (state === 'cancelled') return { outcome: 'refused' } as const
    if (state === 'pending') return { outcome: 'pending', why: 'the bank decides' } as const
    return { outcome: 'prepared', handle } as const
  }
  const settledAs = (payment: Payment, outcome: Settled['outcome']): Settled => ({ ...payment.settled, outcome })

  const provider = scriptedProvider({
    name: 'simulator',
    traits: twoSteps,
    charge: undefined as never,
    refuseRefund: undefined as never,
    prepare: (request) =>
      call('prepare', () => {
        if (faults.get('prepare') === 'not_begun')
          return { outcome: 'not_begun', why: 'returned status 429', cause: 'busy' } as const
        const { key, reference, amountMinor, currencyCode } = request
        const known = [...payments.values()].find((one) => one.key === key && !one.isForgotten)
        const handle = known?.handle ?? `pi_${randomUUID()}`
        const details = { ...noDetails, psp_transaction_id: handle }
        const settled: Settled = { outcome: 'succeeded', reference, amountMinor, currencyCode, details }
        if (faults.get('prepare') === 'rejected') return { ...settled, outcome: 'failed' } as const
        if (!known) payments.set(handle, { handle, key, state: 'prepared', settled })
        return { outcome: 'prepared', handle, providerCustomer: 'cus_1' } as const
      }),
    confirm: ({ handle }) =>
      call('confirm', () => {
        const payment = payments.get(handle)!
        if (payment.state === 'prepared') {
          const fault = faults.get('confirm')
          payment.state = fault === 'declined' ? 'failed' : fault === 'pending' ? 'pending' : 'succeeded'
          if (payment.state === 'failed') payment.settled = settledAs(payment, 'failed')
        }
        return verdict(payment) as Exclude<ReturnType<typeof verdict>, { outcome: 'prepared' }>
      }),
    lookUp: ({ handle }) =>
      call('lookUp', () => {
        const payment = payments.get(handle ?? '')
        if (!payment) return { outcome: 'not_found' } as const
        const response = verdict(payment)
        return response.outcome === 'prepared' ? ({ outcome: 'unconfirmed' } as const) : response
      }),
    refuse: ({ handle }) =>
      call('refuse', () => {
        const payment = payments.get(handle ?? '')!
        if (payment.state === 'prepared') payment.state = 'cancelled'
        return verdict(payment) as Exclude<ReturnType<typeof verdict>, { outcome: 'prepared' }>
      }),
    async *list() {
      for (const { handle, key, state, settled } of payments.values()) {
        const { reference, amountMinor, currencyCode } = settled
        const at = new Date().toISOString()
        const movement = {
          type: 'charge',
          key,
          reference,
          amountMinor,
          currencyCode,
          transactionId: handle,
          at,
        } as const
        if (state === 'succeeded') yield movement
        else if (state === 'pending') yield { ...movement, isPending: true }
        else if (state === 'failed') yield { ...movement, hasFailed: true }
      }
    },
    findByKey: ({ key }) =>
      call('findByKey', () => {
        const payment = [...payments.values()].find((one) => one.key === key)
        return payment ? (verdict(payment) as never) : ({ outcome: 'not_found' } as const)
      }),
    ...more,
  })
  const charged = () => [...payments.values()].filter(({ state }) => state === 'succeeded')
  /** The bank has decided what was pending. */
  const decide = (state: 'succeeded' | 'failed') => {
    for (const one of payments.values()) if (one.state === 'pending') one.state = state
  }
  return { provider, payments, calls, faults, charged, decide }
}
