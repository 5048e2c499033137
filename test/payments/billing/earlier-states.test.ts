// A key that is sent again, whatever became of what it stands for: replayed when it is the same, refused when it is not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settled, startShop } from '../../support/billing.ts'
import type { ApiResponse } from '../../support/server.ts'

const { billing, shop } = await startShop()

const allow = (isEnabled: boolean, most: string) =>
  billing.db.query(
    'update organizations set one_off_charge_enabled = $2, one_off_charge_max_amount = $3 where id = $1',
    [shop.id, isEnabled, JSON.stringify({ '*': most })],
  )

function reused({ status, body, text }: ApiResponse): void {
  assert.deepEqual([status, body.code], [400, 'idempotency_key_reused'], text)
}

/** The charge is in this state: the same request returns it whatever else holds, and another one is refused. */
async function judgeCharge(user: string, first: ApiResponse, checkout_status: string): Promise<void> {
  const movements = (await billing.ledger()).length
  const key = { idempotency_key: 'k' }
  const present = { ...first.body, checkout_status, idempotent_replay: true }
  assert.deepEqual((await shop.charge(user, key)).body, present)
  await allow(false, '1')
  assert.deepEqual((await shop.charge(user, { ...key, amount: 10.5, currency_code: 'usd' })).body, present)
  for (const other of [{ amount: '10.51' }, { currency_code: 'EUR' }, { amount: 0 }, { currency_code: 'XXX' }])
    reused(await shop.charge(user, { ...key, ...other }))
  await allow(true, '1000')
  assert.deepEqual((await shop.charge(user, key)).body, present)
  assert.equal((await billing.ledger()).length, movements)
}

for (const [token, state] of [
  ['pm_card_visa', 'succeeded'],
  ['pm_card_chargeDeclined', 'failed'],
] as const) {
  test(`the key of a charge that ${state}`, async () => {
    const user = await shop.customer({ token })
    await judgeCharge(user, await shop.charge(user, { idempotency_key: 'k' }), state)
  })
}

test('the key of a charge that succeeded, and was refunded since', async () => {
  const user = await shop.customer()
  const first = await shop.charge(user, { idempotency_key: 'k' })
  assert.equal((await shop.refund(user, first.body.order_id)).body.consumable_revoked, true)
  await judgeCharge(user, first, 'succeeded')
})

test('the key of a charge in progress, and then cancelled', async () => {
  const user = await shop.customer()
  await billing.simulator.stop()
  const first = await shop.charge(user, { idempotency_key: 'k' })
  const again = shop.charge.bind(shop, user, { idempotency_key: 'k' })
  try {
    const present = { ...first.body, checkout_status: 'processing', idempotent_replay: true }
    assert.deepEqual((await again()).body, present)
    for (const other of [{ amount: '10.51' }, { currency_code: 'EUR' }, { amount: 0 }])
      reused(await shop.charge(user, { idempotency_key: 'k', ...other }))
    await allow(false, '1')
    assert.deepEqual((await again()).body, present)
  } finally {
    await allow(true, '1000')
    await billing.simulator.start()
  }
  await settled(again)
  await judgeCharge(user, first, 'cancelled')
})

/** The refund is in this state, and was sent as `same`: other requests under its key are refused. */
async function judgeRefund(user: string, order: string, same: object, first: ApiResponse, refund_status: string) {
  const again = await shop.refund(user, order, { ...same, idempotency_key: 'k' })
  assert.deepEqual(
    [again.body.refund_id, again.body.refund_status, again.body.idempotent_replay],
    [first.body.refund_id, refund_status, true],
    again.text,
  )
  for (const other of [{ amount: '4.01' }, { soft_refund: true }, { amount: undefined }, { amount: '0.001' }])
    reused(await shop.refund(user, order, { ...same, ...other, idempotency_key: 'k' }))
}

test('the key of a refund in progress, and then as it ended', async () => {
  const user = await shop.customer()
  const order = (await shop.charge(user)).body.order_id
  await billing.simulator.stop()
  const same = { amount: 4 }
  const ask = () => shop.refund(user, order, { ...same, idempotency_key: 'k' })
  const first = await ask()
  try {
    await judgeRefund(user, order, same, first, 'processing')
    assert.match((await shop.refund(user, order)).body.message, /Another refund of this order is in progress/)
  } finally {
    await billing.simulator.start()
  }
  const { refund_status } = (await settled(ask)).body
  await judgeRefund(user, order, same, first, refund_status)
})

for (const [token, state] of [
  ['pm_card_visa', 'succeeded'],
  ['sim_refund_fails', 'failed'],
] as const) {
  test(`the key of a refund that ${state}, after all is paid back`, async () => {
    const user = await shop.customer({ token })
    const order = (await shop.charge(user)).body.order_id
    const same = { amount: '4.00' }
    const first = await shop.refund(user, order, { ...same, idempotency_key: 'k' })
    await shop.refund(user, order)
    const movements = (await billing.ledger()).length
    await judgeRefund(user, order, same, first, state)
    assert.equal((await billing.ledger()).length, movements)
  })
}
