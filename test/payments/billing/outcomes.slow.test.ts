// Unknown outcomes: a time-out is never a failure, and every charge and refund ends in the right state by itself.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Organization, settled, startBilling, startShop } from '../../support/billing.ts'

const { billing, shop } = await startShop({ PROVIDER_TIMEOUT_MS: '2000' })

/** The order of a charge that succeeded, if need be after a while: on a busy machine it may be late for this time-out too. */
async function paid(user: string): Promise<string> {
  const { body } = await settled(() => shop.charge(user, { idempotency_key: 'paid' }))
  assert.equal(body.checkout_status, 'succeeded')
  return body.order_id
}

/** A shop on a server that never looks for an outcome. */
async function withoutLooks(timeoutMs: string, work: (shop: Organization) => Promise<void>): Promise<void> {
  const unsettled = await startBilling({ PROVIDER_TIMEOUT_MS: timeoutMs }, { worker: false })
  try {
    await work(await unsettled.organization())
  } finally {
    await unsettled.stop()
  }
}

describe('charges', () => {
  const cases: [token: string, end: string, movements: number][] = [
    ['sim_charge_then_drop', 'succeeded', 1],
    ['sim_charge_then_500', 'succeeded', 1],
    ['sim_drop_no_charge', 'cancelled', 0],
    ['sim_error_500_then_ok', 'cancelled', 0],
    ['sim_slow_5000ms', 'succeeded', 1],
    ['sim_late_500ms', 'succeeded', 1],
    ['sim_late_9000ms', 'cancelled', 0],
  ]
  for (const [token, end, movements] of cases) {
    test(`${token}: processing, then ${end}, with ${movements} movements`, async () => {
      const user = await shop.customer({ token })
      const first = await shop.charge(user, { idempotency_key: 'k' })
      assert.deepEqual([first.status, first.body.checkout_status], [200, 'processing'])
      const last = await settled(() => shop.charge(user, { idempotency_key: 'k' }))
      assert.deepEqual(last.body, { ...first.body, checkout_status: end, idempotent_replay: true })
      if (token === 'sim_late_9000ms') await sleep(9_000)
      assert.equal((await billing.ledger(first.body.order_id)).length, movements)
      assert.equal((await shop.consumables(user)).length, end === 'succeeded' ? 1 : 0)
      assert.equal((await shop.report({ order_id: first.body.order_id })).length, end === 'succeeded' ? 1 : 0)
    })
  }

  test('processing keeps its place as the one charge of the customer, until a look finds the outcome', async () => {
    await withoutLooks('2000', async (shop) => {
      for (const [token] of cases) {
        const user = await shop.customer({ token })
        assert.equal((await shop.charge(user, { idempotency_key: 'k' })).body.checkout_status, 'processing', token)
        const { body } = await shop.charge(user, { idempotency_key: 'other' })
        assert.equal(body.message, 'Another charge of this customer is in progress.', token)
      }
    })
  })

  test('without the simulator charges are processing, all else works, and all are settled when it is back', async () => {
    const [user, other] = [await shop.customer(), await shop.customer()]
    const done = await paid(other)
    await billing.simulator.stop()
    try {
      const first = await shop.charge(user, { idempotency_key: 'k' })
      assert.deepEqual([first.status, first.body.checkout_status], [200, 'processing'])
      assert.equal((await shop.refund(other, done)).body.refund_status, 'processing')
      assert.equal((await shop.consumables(other)).length, 1)
      await sleep(2_000)
    } finally {
      await billing.simulator.start()
    }
    const last = await settled(() => shop.charge(user, { idempotency_key: 'k' }))
    assert.equal(last.body.checkout_status, 'cancelled')
    await paid(user)
  })
})

describe('refunds', () => {
  const cases: [token: string, end: string, movements: number][] = [
    ['sim_refund_then_drop', 'succeeded', 1],
    ['sim_refund_then_500', 'succeeded', 1],
    ['sim_refund_drop', 'failed', 0],
    ['sim_refund_error_500_then_ok', 'failed', 0],
    ['sim_refund_slow_5000ms', 'succeeded', 1],
    ['sim_refund_late_500ms', 'succeeded', 1],
  ]
  for (const [token, end, movements] of cases) {
    test(`${token}: processing, then ${end}, with ${movements} movements`, async () => {
      const user = await shop.customer({ token })
      const order = await paid(user)
      const ask = () => shop.refund(user, order, { idempotency_key: 'k' })
      const first = await ask()
      assert.deepEqual([first.status, first.body.refund_status], [200, 'processing'])
      const last = await settled(ask)
      assert.equal(last.body.refund_status, end)
      assert.equal(last.body.consumable_revoked, end === 'succeeded')
      assert.equal((await shop.consumables(user))[0].is_active, end !== 'succeeded')
      assert.equal((await billing.ledger(first.body.refund_id)).length, movements)
    })
  }

  test('processing keeps its place as the one refund of the order, until a look finds the outcome', async () => {
    await withoutLooks('4000', async (shop) => {
      for (const [token] of cases) {
        const user = await shop.customer({ token })
        const order = (await shop.charge(user)).body.order_id
        assert.equal((await shop.refund(user, order, { idempotency_key: 'k' })).body.refund_status, 'processing', token)
        assert.match((await shop.refund(user, order)).body.message, /in progress/, token)
      }
    })
  })
})
