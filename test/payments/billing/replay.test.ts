// Charges and refunds at a provider that can only be asked by making the same call again, and forgets its keys.
import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { ordersInProgress } from '../../../src/payments/billing/charge/row.ts'
import type { BillingContext } from '../../../src/payments/billing/context.ts'
import { CHARGE, oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { REFUND } from '../../../src/payments/billing/refund/check.ts'
import { refundsInProgress } from '../../../src/payments/billing/refund/row.ts'
import type { Settled } from '../../../src/payments/providers/outcomes.ts'
import { noDetails } from '../../../src/payments/providers/provider.ts'
import { startShop } from '../../support/billing.ts'
import { chargeOf, contextOf } from './in-process.ts'
import { oneStep, scriptedProvider } from './scripted-provider.ts'

const DAY_MS = 86_400_000
const KEY_LIFE_DAYS = 7

let user: string
let there: ReturnType<typeof replayedProvider>
// Only the tests look into what is unknown.
const { billing, shop } = await startShop({}, { worker: false })
beforeEach(async () => {
  user = await shop.customer()
  there = replayedProvider()
})

type Asked = { key: string; reference: string; amountMinor: bigint; currencyCode: string }

/** Keeps the outcome of each key; `fault` disturbs the next call, on its way there or back. */
function replayedProvider() {
  const outcomes = new Map<string, Settled>()
  const calls: string[] = []
  const state = { fault: undefined as 'lost' | 'no_response' | 'busy' | undefined, moved: 0 }
  const call = async ({ key, reference, amountMinor, currencyCode }: Asked) => {
    const { fault } = state
    state.fault = undefined
    calls.push(`${key} ${reference} ${amountMinor} ${currencyCode}`)
    if (fault === 'busy') return { outcome: 'not_begun', why: 'returned status 429', cause: 'busy' } as const
    if (fault === 'lost') return { outcome: 'unknown', why: 'no response' } as const
    const known = outcomes.get(key)
    if (known && known.amountMinor !== amountMinor) return { outcome: 'conflict' } as const
    if (!known) {
      const details = { ...noDetails, psp_transaction_id: `there-${key}` }
      outcomes.set(key, { outcome: 'succeeded', reference, amountMinor, currencyCode, details })
      state.moved++
    }
    return fault === 'no_response' ? ({ outcome: 'unknown', why: 'no response' } as const) : outcomes.get(key)!
  }
  const impossible = async () => assert.fail('the provider has no look-up')
  const provider = scriptedProvider({
    traits: {
      ...oneStep,
      lookUp: 'replay',
      keyLifeMs: KEY_LIFE_DAYS * DAY_MS,
      refuse: 'wait_out',
      refuseRefund: 'wait_out',
    },
    charge: call,
    refund: call,
    lookUp: impossible,
    lookUpRefund: impossible,
    refuse: impossible,
    refuseRefund: undefined as never,
  })
  return { provider, outcomes, calls, state }
}

const context = (): BillingContext => contextOf(billing.db, there.provider)
const charge = () => oneOffCharge(context(), shop.id, chargeOf(user))

async function lookAtOrder(ageDays = 0) {
  const { query } = billing.db
  await query(
    `update orders set lease_until = null, begun_at = db_clock() - make_interval(secs => $2) where external_id = $1`,
    [user, ageDays * 86_400],
  )
  const [row] = await query('select order_id from orders where external_id = $1', [user])
  const order = (await ordersInProgress.find(query, row!.order_id!))!
  const taken = await ordersInProgress.take(billing.db, order, 5_000)
  return checkStatus(context(), CHARGE, taken!)
}

for (const fault of ['no_response', 'lost'] as const) {
  test(`a charge whose ${fault === 'lost' ? 'call' : 'response'} was lost is found by the same call`, async () => {
    there.state.fault = fault
    assert.equal((await charge()).checkout_status, 'processing')
    assert.equal((await lookAtOrder()).status, 'succeeded')
    assert.equal(there.state.moved, 1)
    assert.equal(there.calls.length, 2)
    assert.equal(there.calls[0], there.calls[1], 'the very same call')
    assert.equal((await charge()).idempotent_replay, true)
    assert.equal(there.calls.length, 2)
  })
}

test('a call is repeated while the key surely lives, and never after that', async () => {
  there.state.fault = 'lost'
  await charge()
  there.state.fault = 'lost'
  assert.equal((await lookAtOrder(KEY_LIFE_DAYS - 0.5)).status, 'processing')
  assert.equal(there.calls.length, 2)
  // Less than a twenty-fourth of its life is left of the key.
  assert.equal((await lookAtOrder(KEY_LIFE_DAYS - 0.2)).status, 'processing')
  assert.equal((await lookAtOrder(KEY_LIFE_DAYS * 30)).status, 'processing')
  assert.equal(there.calls.length, 2)
  assert.equal(there.state.moved, 0)
})

describe('an order stays in progress', () => {
  test('when the provider is too busy for the repeated call', async () => {
    there.state.fault = 'lost'
    await charge()
    there.state.fault = 'busy'
    assert.equal((await lookAtOrder()).status, 'processing')
    assert.equal((await lookAtOrder()).status, 'succeeded')
    assert.equal(there.state.moved, 1)
  })

  test('when the provider has another call under its key', async () => {
    there.state.fault = 'lost'
    await charge()
    const [key] = there.calls[0]!.split(' ')
    const other = { outcome: 'succeeded', reference: 'other', amountMinor: 1n, currencyCode: 'USD' } as const
    there.outcomes.set(key!, { ...other, details: noDetails })
    assert.equal((await lookAtOrder()).status, 'processing')
    assert.equal(there.calls.length, 2)
  })
})

test('a reconciliation makes no call for what the provider does not list', async () => {
  await charge()
  const { findings } = await reconcile(context(), new Date(Date.now() - DAY_MS).toISOString())
  assert.ok(findings.some(({ difference }) => difference === 'missing_there'))
  assert.equal(there.calls.length, 1)
})

test('a refund whose response was lost is found by the same call', async () => {
  const { order_id } = await charge()
  const { query } = billing.db
  const [{ refund_id }] = (await query(
    `insert into refunds (organization_id, refund_id, order_id, external_id, amount, currency_code, provider_key, created_at,
       next_look_at)
     values ($1, gen_random_uuid(), $2, $3, 10.50, 'USD', 'refund of ' || $3, db_clock(), db_clock()) returning refund_id`,
    [shop.id, order_id, user],
  )) as [{ refund_id: string }]
  const lookAtRefund = async () => {
    await query('update refunds set lease_until = null where refund_id = $1', [refund_id])
    const refund = (await refundsInProgress.find(query, refund_id))!
    const taken = await refundsInProgress.take(billing.db, refund, 5_000)
    return checkStatus(context(), REFUND, taken!)
  }
  there.state.fault = 'no_response'
  assert.equal((await lookAtRefund()).status, 'processing')
  assert.equal((await lookAtRefund()).status, 'succeeded')
  assert.equal(there.calls[1], there.calls[2])
  assert.equal(there.state.moved, 2, 'the charge and one refund')
})
