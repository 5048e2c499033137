// A notification about a charge or refund that another process is looking at: the next look is at once, not hours later.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ordersInProgress } from '../../../src/payments/billing/charge/row.ts'
import { refundsInProgress } from '../../../src/payments/billing/refund/row.ts'
import { scrape } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { setUpStripeShop } from './stripe-shop.ts'

const setup = setUpStripeShop()

const MINUTE_MS = 60_000
const DAY_S = 86_400

/** Waits until every event of the account was handled. */
const untilHandled = () =>
  until('the notifications to be handled', async () => {
    const { data } = await setup.stripe.client().events.list({ limit: 100 })
    const ids = data.map(({ id }) => id)
    const [row] = await setup.billing.db.query(
      'select count(*) as n from provider_notifications where notification_id = any($1)',
      [ids],
    )
    return Number(row!.n) === ids.length
  })

describe('a notification that arrives during a look-up', () => {
  test('at a pending refund has it looked at again as soon as that look ends', async () => {
    const { external_id: user } = await setup.account.customerWithCard(`pm_sim_refund_pending_${MINUTE_MS}ms`)
    const { order_id } = (await setup.shop.charge(user)).body
    const { refund_id, refund_status } = (await setup.shop.refund(user, order_id)).body
    assert.equal(refund_status, 'processing')
    await untilHandled()
    // Another process is looking. Stripe tells it that the refund is pending, and a moment later it is not.
    const { db } = setup.billing
    let taken: Awaited<ReturnType<typeof refundsInProgress.take>>
    await until('no look to be under way', async () => {
      const found = await refundsInProgress.find(db.query, refund_id)
      taken = await refundsInProgress.take(db, found!, DAY_S * 1000)
      return taken !== undefined
    })
    await setup.stripe.control('/clock', { advance_ms: 2 * MINUTE_MS })
    await untilHandled()
    assert.equal((await refundsInProgress.find(db.query, refund_id))!.status, 'processing')
    await refundsInProgress.handOver(db, taken!, { pauseS: DAY_S, isPending: true })
    await until('the refund to be settled', async () => {
      const row = await refundsInProgress.find(db.query, refund_id)
      return row!.status === 'succeeded'
    })
  })

  test('at a charge that Stripe is processing, too', async () => {
    const { external_id: user } = await setup.account.customerWithCard(`pm_sim_processing_${MINUTE_MS}ms`)
    const { order_id, checkout_status } = (await setup.shop.charge(user)).body
    assert.equal(checkout_status, 'processing')
    await untilHandled()
    const { db } = setup.billing
    let taken: Awaited<ReturnType<typeof ordersInProgress.take>>
    await until('no look to be under way', async () => {
      const found = await ordersInProgress.find(db.query, order_id)
      taken = await ordersInProgress.take(db, found!, DAY_S * 1000)
      return taken !== undefined
    })
    await setup.stripe.control('/clock', { advance_ms: 2 * MINUTE_MS })
    await untilHandled()
    await ordersInProgress.handOver(db, taken!, { pauseS: DAY_S, isPending: true })
    await until('the charge to be settled', async () => {
      const row = await ordersInProgress.find(db.query, order_id)
      return row!.status === 'succeeded'
    })
  })
})

test('a dispute of a charge whose outcome cannot be looked up yet is sent again', async () => {
  const { external_id: user } = await setup.account.customerWithCard('pm_sim_confirm_drop_after')
  await setup.stripe.control('/faults', {
    method: 'GET',
    path: '/v1/payment_intents/[^/]+',
    kind: 'error_before',
    times: 1000,
  })
  const { order_id, checkout_status } = (await setup.shop.charge(user)).body
  assert.equal(checkout_status, 'processing')
  const movement = (await setup.stripe.ledger()).find(({ metadata }) => metadata['tundish_order'] === order_id)
  await setup.stripe.control('/disputes', { charge: movement!.id })
  await until('the response to the notification of the dispute', async () =>
    /^tundish_provider_notifications_total\{[^}]*about="dispute"/m.test(await scrape(setup.billing.server)),
  )
  await setup.stripe.control('/faults/clear')
  await until('the dispute to be recorded', async () => {
    const rows = await setup.billing.db.query('select 1 from disputes where order_id = $1', [order_id])
    return rows.length === 1
  })
})

test('a payment whose metadata was removed is known by its id', async () => {
  const { external_id: user } = await setup.account.customerWithCard(`pm_sim_processing_${MINUTE_MS}ms`)
  const { order_id, checkout_status } = (await setup.shop.charge(user)).body
  assert.equal(checkout_status, 'processing')
  const { db } = setup.billing
  const [order] = await db.query('select provider_handle from orders where order_id = $1', [order_id])
  await setup.stripe.client().paymentIntents.update(order!.provider_handle!, { metadata: '' })
  await untilHandled()
  await until('no look to be under way, and none soon', async () => {
    const rows = await db.query(
      `update orders set next_look_at = db_clock() + interval '1 day' where order_id = $1 and lease_until is null returning 1`,
      [order_id],
    )
    return rows.length === 1
  })
  await setup.stripe.control('/clock', { advance_ms: 2 * MINUTE_MS })
  await until('the charge to be settled', async () => {
    const row = await ordersInProgress.find(db.query, order_id)
    return row!.status === 'succeeded'
  })
})

test('a dispute of another program’s payment is not looked up', async () => {
  await untilHandled()
  const card = await setup.account.customerWithCard()
  await setup.stripe.control('/faults', { method: 'GET', path: '/v1/disputes', kind: 'error_before', times: 1000 })
  const foreign = await setup.stripe.client().paymentIntents.create({
    ...{ amount: 500, currency: 'usd', confirm: true },
    ...{ customer: card.customer, payment_method: card.payment_method },
  })
  await setup.stripe.control('/disputes', { charge: foreign.latest_charge })
  await untilHandled()
  await setup.stripe.control('/faults/clear')
})
