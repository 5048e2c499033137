// Many notifications at once: charges keep their part of the account's rate.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/cluster.ts'
import { setUpStripeShop } from '../../support/connected-stripe.ts'

const setup = setUpStripeShop()

const REFUNDS = 60

test('charges during a burst of refunds in Stripe’s dashboard are not refused, and all refunds arrive', async () => {
  const paid = await Promise.all(Array.from({ length: REFUNDS / 4 }, () => setup.charged()))
  const { user } = await setup.charged()
  // Four refunds of each payment: two notifications each.
  for (const { charge } of paid)
    for (let n = 0; n < 4; n += 1) await setup.stripe.control('/refunds', { charge, amount: 100 })
  const found = async () => {
    const [row] = await setup.billing.db.query(`select count(*) as n from refunds where origin = 'provider'`)
    return Number(row!.n)
  }
  let charges = 0
  for (; (await found()) < REFUNDS; charges += 1) {
    const { status, body, text } = await setup.shop.charge(user, { idempotency_key: `during ${charges}` })
    assert.deepEqual([status, body.checkout_status], [200, 'succeeded'], text)
  }
  assert.ok(charges > 0)
  await until('the last refund', async () => (await found()) === REFUNDS)
})
