// What happens at Stripe reaches the report, consumables and webhooks: by notifications, and where these are lost by its list of events.
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { runOperation } from '../../../src/cli/commands/operations.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { readMissedNotifications } from '../../../src/server/notifications/missed.ts'
import { settled } from '../../support/billing.ts'
import type { Json } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { setUpStripeShop } from './stripe-shop.ts'

const setup = setUpStripeShop()
const { charged, isActive } = setup
afterEach(() => setup.stripe.control('/events', { copies: 1, delayMs: 0, shuffled: false, isOff: false }))

const rowsOf = async (orderId: string) =>
  (await setup.shop.report({ order_id: orderId })).map(
    (row) => `${row.psp_transaction_type} ${row.status} ${row.amount}`,
  )

const eventsOf = async (user: string) =>
  (
    await setup.billing.db.query(
      `select e.type from events e where e.project_id = $1 and e.data ->> 'order_id' in
         (select order_id::text from orders where external_id = $2) order by e.id`,
      [setup.shop.projectId, user],
    )
  ).map(({ type }) => type)

/**
 * Has the server read Stripe's list of events now, not minutes later. It waits until no account is being read, because the end of
 * a reading sets when the next one is due.
 */
const readNow = () =>
  until('a reading under way to end', async () => {
    const [row] = await setup.billing.db.query(`
      with made_due as (
        update merchant_accounts set notifications_due_at = null where notifications_lease_until is null returning 1)
      select (select count(*) from made_due) = (select count(*) from merchant_accounts) as done`)
    return row!.done === 't'
  })

/** Waits for the end of the reading that `readNow` began. */
const untilRead = () =>
  until('the list to be read', async () => {
    const [row] = await setup.billing.db.query('select notifications_due_at is not null as done from merchant_accounts')
    return row!.done === 't'
  })

/** Has another process read the list now: the server looks only every five seconds whether an account is due. */
async function readAtOnce(): Promise<void> {
  await readNow()
  const { app } = setup.billing.server
  const stop = readMissedNotifications({ ...billingContext(app), countNotification: app.metrics.countNotification })
  await untilRead()
  await stop()
}

describe('by notification', () => {
  test('a refund made at Stripe is a refund of the order, and a full one revokes the consumable', async () => {
    const { user, orderId, charge } = await charged()
    await setup.stripe.control('/refunds', { charge, amount: 300 })
    await until('the part to be refunded', async () => (await rowsOf(orderId)).length === 2)
    assert.equal(await isActive(user), true)
    await setup.stripe.control('/refunds', { charge })
    await until('the rest to be refunded', async () => !(await isActive(user)))
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'refund refunded 3', 'refund refunded 7.5'])
    const types = await eventsOf(user)
    assert.equal(types.filter((type) => type === 'refund.succeeded').length, 2, types.join())
    const refunds = await setup.billing.db.query('select origin, reason from refunds where order_id = $1', [orderId])
    const byCustomer = { origin: 'provider', reason: 'requested_by_customer' }
    assert.deepEqual(refunds, [byCustomer, byCustomer])
    const reasons = (await setup.shop.report({ order_id: orderId })).map((row) => row.psp_reason_code)
    assert.deepEqual(reasons, [null, 'requested_by_customer', 'requested_by_customer'])
  })

  test('notifications that come three times and out of order change nothing more', async () => {
    const { user, orderId, charge } = await charged()
    await setup.stripe.control('/events', { copies: 3, delayMs: 300, shuffled: true })
    await setup.stripe.control('/refunds', { charge, amount: 300 })
    await setup.stripe.control('/refunds', { charge })
    await until('all to be refunded', async () => !(await isActive(user)))
    assert.deepEqual((await rowsOf(orderId)).length, 3)
  })

  test('a dispute takes the consumable, and gives it back when it is won', async () => {
    const { user, orderId, charge } = await charged()
    const { id } = await setup.stripe.control<{ id: string }>('/disputes', { charge })
    await until('the chargeback', async () => (await rowsOf(orderId)).length === 2)
    assert.equal(await isActive(user), false)
    await setup.stripe.control(`/disputes/${id}/close`, { status: 'won' })
    await until('the reversal', async () => (await rowsOf(orderId)).length === 3)
    assert.deepEqual((await rowsOf(orderId)).slice(1), [
      'chargeback refunded 10.5',
      'chargeback_reversal succeeded 10.5',
    ])
    assert.equal(await isActive(user), true)
    const types = await eventsOf(user)
    assert.ok(types.includes('charge.disputed') && types.includes('charge.dispute_won'), types.join())
  })

  test('a dispute that is lost gives back what had been refunded before, and not the consumable', async () => {
    const { user, orderId, charge } = await charged()
    await setup.stripe.control('/refunds', { charge, amount: 300 })
    await until('the refund', async () => (await rowsOf(orderId)).length === 2)
    const { id } = await setup.stripe.control<{ id: string }>('/disputes', { charge })
    await until('the chargeback', async () => (await rowsOf(orderId)).length === 3)
    await setup.stripe.control(`/disputes/${id}/close`, { status: 'lost' })
    await until('the reversal', async () => (await rowsOf(orderId)).length === 4)
    assert.deepEqual((await rowsOf(orderId)).slice(2), ['chargeback refunded 10.5', 'chargeback_reversal succeeded 3'])
    assert.equal(await isActive(user), false)
  })

  test('a card that was detached at Stripe is no longer a saved card', async () => {
    const { external_id: user, ...card } = await setup.account.customerWithCard()
    await setup.stripe.client().paymentMethods.detach(card.payment_method)
    await until('the card to be gone', async () => {
      const { body } = await setup.shop.charge(user)
      return body.message === 'The customer has no saved card.'
    })
  })

  test('the cards of a customer who was deleted at Stripe are no longer saved cards', async () => {
    const { external_id: user, ...card } = await setup.account.customerWithCard()
    // By the first charge it is known whose card it is.
    assert.equal((await setup.shop.charge(user)).body.checkout_status, 'succeeded')
    await setup.stripe.client().customers.del(card.customer)
    await until('the card to be gone', async () => {
      const { body } = await setup.shop.charge(user)
      return body.message === 'The customer has no saved card.'
    })
  })

  test('a card that was detached while it was being charged does not come back when the charge settles', async () => {
    const { external_id: user, ...card } = await setup.account.customerWithCard('pm_sim_processing_600000ms')
    const charge = (idempotency_key: string) => setup.shop.charge(user, { idempotency_key })
    assert.equal((await charge('one')).body.checkout_status, 'processing')
    await setup.stripe.client().paymentMethods.detach(card.payment_method)
    const message = async (key: string) => (await charge(key)).body.message
    await until('the card to be gone', async () => (await message('two')) === 'The customer has no saved card.')
    await setup.stripe.control('/clock', { advance_ms: 600_000 })
    assert.equal((await settled(() => charge('one'))).body.checkout_status, 'succeeded')
    assert.equal(await message('three'), 'The customer has no saved card.')
  })

  test('a card that its bank or its owner has renewed is shown as it is now, and reported by the next charge', async () => {
    // In the list is the event of the saving.
    await setup.putOffReading()
    await setup.stripe.control('/events', { isOff: true })
    const { external_id: user, ...card } = await setup.account.customerWithCard('pm_card_visa', 'renewed')
    const shown = async () => {
      const params = { project_id: setup.shop.projectId, profile_id: 'renewed' }
      const { customers } = await runOperation('profile', 'getPerson', setup.billing.server.app, { params })
      const [{ card_network, card_last4, card_expires }] = customers as [Json]
      return [card_network, card_last4, card_expires].join(' ')
    }
    // The payment that saved it told nothing of it, and the event of the saving is not sent.
    assert.equal(await shown(), '  ')
    await setup.stripe.control('/events', { isOff: false })
    const renewed = { last4: '1881', exp_month: 3, exp_year: 2041 }
    await setup.stripe.control(`/payment_methods/${card.payment_method}/renew`, renewed)
    await until('the new card to be shown', async () => (await shown()) === 'visa 1881 03/2041')
    await setup.stripe.client().paymentMethods.update(card.payment_method, { card: { exp_month: 5, exp_year: 2044 } })
    await until('the new expiry to be shown', async () => (await shown()) === 'visa 1881 05/2044')
    const { body } = await setup.shop.charge(user)
    const [row] = await setup.shop.report({ order_id: body.order_id })
    assert.deepEqual([row.pm_data_last4, row.pm_data_expiration_date], ['1881', '05/2044'])
    await setup.stripe.client().paymentMethods.detach(card.payment_method)
    await until('the card to be gone', async () => (await shown()) === '  ')
    assert.deepEqual(
      await setup.billing.db.query('select 1 from saved_cards where token = $1', [card.payment_method]),
      [],
    )
  })

  test('a notification whose object cannot be read is handled when it can be', async () => {
    const { user, charge } = await charged()
    await setup.stripe.control('/faults', { method: 'GET', path: '/v1/refunds', kind: 'error_before', times: 2 })
    await setup.stripe.control('/refunds', { charge })
    await until('it to be sent again', async () => !(await isActive(user)))
  })
})

test('a change without a notification is found in the list of events', async () => {
  await setup.stripe.control('/events', { isOff: true })
  const { user, orderId, charge } = await charged()
  await setup.stripe.control('/refunds', { charge })
  await readNow()
  await until('the refund to be found', async () => !(await isActive(user)))
  assert.equal((await rowsOf(orderId)).length, 2)
  await readAtOnce()
  assert.equal((await rowsOf(orderId)).length, 2)
})

test('a notification that cannot be handled does not hold up older ones, and is handled when it can be', async () => {
  await setup.stripe.control('/events', { isOff: true })
  const refunded = await charged()
  const disputed = await charged()
  // So many that cannot be handled in a row would be an outage, if they failed for another reason.
  const more = [await charged(), await charged(), await charged(), await charged()]
  await setup.stripe.control('/refunds', { charge: refunded.charge })
  for (const { charge } of [disputed, ...more]) await setup.stripe.control('/disputes', { charge })
  // As for a restricted key without the permission to read disputes.
  await setup.stripe.control('/faults', { method: 'GET', path: '/v1/disputes', kind: 'forbidden', times: 1000 })
  await readAtOnce()
  assert.equal(await isActive(refunded.user), false)
  assert.equal(await isActive(disputed.user), true)
  await setup.stripe.control('/faults/clear')
  await readAtOnce()
  assert.equal(await isActive(disputed.user), false)
})

test('the list of events is not read again from a notification on that cannot be handled, which is kept', async () => {
  await setup.stripe.control('/events', { isOff: true })
  const disputed = await charged()
  await setup.stripe.control('/disputes', { charge: disputed.charge })
  await setup.stripe.control('/faults', { method: 'GET', path: '/v1/disputes', kind: 'forbidden', times: 1000 })
  // So that the next event has a later time in seconds.
  await setup.stripe.control('/clock', { advance_ms: 5_000 })
  await charged()
  await readAtOnce()
  const [newest] = (await setup.stripe.client().events.list({ limit: 1 })).data
  const [row] = await setup.billing.db.query(
    'select floor(extract(epoch from notifications_read_until)) as until_s from merchant_accounts',
  )
  assert.equal(Number(row!.until_s), newest!.created)
  assert.equal(await isActive(disputed.user), true)
  // Without a permission it is kept for longer than after an outage.
  const { db } = setup.billing
  await db.query(`update pending_notifications set received_at = received_at - interval '10 days', due_at = db_clock()`)
  await until('another try', async () => {
    const [tried] = await db.query('select max(attempts) as most from pending_notifications where due_at > db_clock()')
    return Number(tried!.most) > 1
  })
  await setup.stripe.control('/faults/clear')
  await until('the dispute to be handled', async () => !(await isActive(disputed.user)))
})

test('notifications of cards that the key may not read do not hold up older ones', async () => {
  await setup.stripe.control('/events', { isOff: true })
  const refunded = await charged()
  await setup.stripe.control('/refunds', { charge: refunded.charge })
  const forbidden = { kind: 'forbidden', permission: 'rak_payment_method_read', times: 1000 }
  const cards = await Promise.all(Array.from({ length: 6 }, () => setup.account.customerWithCard()))
  for (const { payment_method } of cards)
    await setup.stripe.control(`/payment_methods/${payment_method}/renew`, RENEWED)
  await setup.stripe.control('/faults', { method: 'GET', path: '/v1/payment_methods/.*', ...forbidden })
  await readAtOnce()
  assert.equal(await isActive(refunded.user), false)
  await setup.stripe.control('/faults/clear')
})

const RENEWED = { last4: '1881', exp_month: 3, exp_year: 2041 }

test('charges that cannot be settled do not hold up older notifications', async () => {
  await setup.stripe.control('/events', { isOff: true })
  const refunded = await charged()
  await setup.stripe.control('/refunds', { charge: refunded.charge })
  const { db } = setup.billing
  const handles: string[] = []
  for (let n = 0; n < 5; n++) {
    const { external_id: user } = await setup.account.customerWithCard('pm_sim_processing_60000ms')
    const { order_id } = (await setup.shop.charge(user)).body
    const [order] = await db.query('select provider_handle from orders where order_id = $1', [order_id])
    handles.push(order!.provider_handle!)
    // At Stripe it names the order of another payment, which an operator has to judge.
    const metadata = { tundish_order: refunded.orderId }
    await setup.stripe.client().paymentIntents.update(handles[n]!, { metadata })
  }
  await setup.stripe.control('/clock', { advance_ms: 120_000 })
  for (const handle of handles) {
    const { latest_charge } = await setup.stripe.client().paymentIntents.retrieve(handle)
    await setup.stripe.control('/refunds', { charge: latest_charge })
  }
  await readAtOnce()
  assert.equal(await isActive(refunded.user), false)
  const rows = await db.query('select from orders where status = $1 and provider_handle = any($2)', [
    'processing',
    handles,
  ])
  assert.equal(rows.length, 5)
})
