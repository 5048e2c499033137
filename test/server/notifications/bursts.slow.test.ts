// Many notifications at once: they are stored first, each object is read once, and charges keep their part of the account's rate.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Stripe } from 'stripe'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { adapters } from '../../../src/payments/providers/adapters.ts'
import { handleTogether } from '../../../src/server/notifications/handle.ts'
import { signature } from '../../../src/simulators/stripe/events.ts'
import { holding } from '../../support/database.ts'
import { startTestServer } from '../../support/server.ts'
import { savedCard } from '../../support/simulators.ts'
import { NOTIFIED_MERCHANT } from '../../support/stripe-billing.ts'
import { until } from '../../support/time.ts'
import { setUpStripeShop } from './stripe-shop.ts'

const setup = setUpStripeShop()

const REFUNDS = 12

test('charges during a burst of refunds in Stripe’s dashboard are not refused, and all refunds arrive', async () => {
  const paid = await Promise.all(Array.from({ length: REFUNDS / 4 }, () => setup.charged()))
  const { user } = await setup.charged()
  const found = async () => {
    const [row] = await setup.billing.db.query(`select count(*) as n from refunds where origin = 'provider'`)
    return Number(row!.n)
  }
  const chargeUntilFound = async () => {
    for (let charges = 0; (await found()) < REFUNDS; charges += 1) {
      const { status, body, text } = await setup.shop.charge(user, { idempotency_key: `during ${charges}` })
      assert.deepEqual([status, body.checkout_status], [200, 'succeeded'], text)
    }
  }
  // Four refunds of each payment: two notifications each.
  const refund = async () => {
    for (const { charge } of paid)
      for (let n = 0; n < 4; n += 1) await setup.stripe.control('/refunds', { charge, amount: 100 })
  }
  await Promise.all([chargeUntilFound(), refund()])
  await until('the last refund', async () => (await found()) === REFUNDS)
})

const CUSTOMERS = 15
const CHANGES = 10

const send = (event: object) => sendTo(setup.account.eventsUrl, event)

async function sendTo(url: string, event: object, secret = setup.account.secret): Promise<number> {
  const body = JSON.stringify(event)
  const header = signature(body, [secret], Math.floor(Date.now() / 1000))
  const headers = { 'content-type': 'application/json', 'stripe-signature': header }
  return (await fetch(url, { method: 'POST', headers, body })).status
}

const UPDATED = 'customer.subscription.updated'
const eventOf = (id: string, type: string, object: object, created = 1) => ({
  id,
  object: 'event',
  type,
  created,
  data: { object },
})

/** Returns a function that subscribes a new customer to the same price. */
async function subscriber(client: Stripe) {
  const { id: product } = await client.products.create({ name: 'Monthly' })
  const recurring = { interval: 'month' } as const
  const { id: price } = await client.prices.create({ product, currency: 'usd', unit_amount: 900, recurring })
  return async () => {
    const { customer } = await savedCard(client)
    const { id } = await client.subscriptions.create({ customer, items: [{ price }] })
    return { id, customer }
  }
}

const handled = async (events: { id: string }[], { query } = setup.billing.db) => {
  const [row] = await query('select count(*) as n from provider_notifications where notification_id = any($1)', [
    events.map(({ id }) => id),
  ])
  return Number(row!.n)
}

const pending = async () => {
  const [row] = await setup.billing.db.query('select count(*) as n from pending_notifications')
  return Number(row!.n)
}

test('150 notifications of a followed account at once: 200 before they are handled, each object read once, and all applied', async () => {
  await setup.followByNotifications()
  await setup.stripe.control('/events', { isOff: true })
  const client = setup.stripe.client()
  const customers = await Promise.all(Array.from({ length: CUSTOMERS }, () => client.customers.create({})))
  for (let n = 1; n <= CHANGES; n += 1)
    await Promise.all(customers.map(({ id }) => client.customers.update(id, { phone: `+1555${n}` })))
  const events = await client.events.list({ type: 'customer.updated', limit: 100 }).autoPagingToArray({ limit: 500 })
  assert.equal(events.length, CUSTOMERS * CHANGES)
  await until('earlier ones to be handled', async () => (await pending()) === 0)
  const before = await setup.stripe.calls()
  // None is handled before the last one has come.
  const release = await holding(setup.billing.db, 'lock table provider_notifications in share mode', [])
  assert.deepEqual(new Set(await Promise.all(events.map(send))), new Set([200]))
  assert.equal(await handled(events), 0)
  await release()
  await until('all to be handled', async () => (await handled(events)) === events.length)
  const calls = (await setup.stripe.calls()) - before
  // The first few that come are handled together, and then the others.
  assert.ok(calls <= 3 * CUSTOMERS, `${calls} calls`)
  const rows = await setup.billing.db.query('select id, phone from profiles where project_id = $1 and id = any($2)', [
    setup.shop.projectId,
    customers.map(({ id }) => id),
  ])
  assert.deepEqual(new Set(rows.map(({ phone }) => phone)), new Set([`+1555${CHANGES}`]))
  assert.equal(rows.length, CUSTOMERS)
  assert.equal(await pending(), 0)
  assert.equal(await send(events[0]!), 200)
})

const naming: Record<string, (subscription: string, customer: string, invoice: string) => object> = {
  'an invoice': (subscription) => ({ object: 'invoice', parent: { subscription_details: { subscription } } }),
  'an invoice of an older version of the API': (subscription) => ({ object: 'invoice', subscription, charge: null }),
  'a part of an invoice that was paid': (_, _customer, invoice) => ({ object: 'invoice_payment', invoice }),
  'a coupon of the subscription': (subscription, customer) => ({ object: 'discount', customer, subscription }),
  'a coupon of the customer': (_, customer) => ({ object: 'discount', customer, subscription: null }),
}

test('a notification that names a subscription by another object has it read again', async () => {
  const client = setup.stripe.client()
  const subscribe = await subscriber(client)
  const made: Record<string, string> = {}
  for (const [n, [what, objectOf]] of Object.entries(naming).entries()) {
    const { id, customer } = await subscribe()
    const [invoice] = (await client.invoices.list({ customer })).data
    const object = { id: 'gone', ...objectOf(id, customer, invoice!.id) }
    assert.equal(await send(eventOf(`evt_naming${n}`, 'some.change', object, invoice!.created)), 200)
    made[id] = what
  }
  await until('all to be handled', async () => (await pending()) === 0)
  const rows = await setup.billing.db.query('select id from subscriptions where project_id = $1', [
    setup.shop.projectId,
  ])
  assert.deepEqual(rows.map(({ id }) => made[id!]).sort(), Object.values(made).sort())
})

test('an object that Stripe does not serve delays the other notifications of a followed account by seconds', async () => {
  const { user, charge } = await setup.charged()
  const client = setup.stripe.client()
  const subscribe = await subscriber(client)
  const path = '/v1/subscriptions/[^/]+'
  await setup.stripe.control('/faults', { method: 'GET', path, kind: 'error_before', times: 1000 })
  const { id } = await subscribe()
  assert.equal(await send(eventOf('evt_unserved', UPDATED, { id, object: 'subscription' })), 200)
  const failed = () =>
    setup.billing.server
      .logLines()
      .map((line) => JSON.parse(line))
      .find(({ msg }) => msg === 'Notifications were not handled.')
  await until('the failure', () => failed() !== undefined)
  // It was given up, not ended by the time limit of a minute.
  assert.equal(failed().why, 'returned status 500')
  await setup.stripe.control('/events', { isOff: false })
  await setup.stripe.control('/refunds', { charge })
  await until('the refund', async () => !(await setup.isActive(user)))
})

describe('several notifications that are handled together', () => {
  const alone = setUpStripeShop({ isFollowed: true, worker: false })

  /** Makes customers whose changes are not notified, and returns their ids and a function that handles a notification of each. */
  async function changedCustomers(count: number) {
    const { app } = alone.billing.server
    const { stripe, shop } = alone
    await stripe.control('/events', { isOff: true })
    const client = stripe.client()
    const ids: string[] = []
    for (let n = 0; n < count; n += 1) ids.push((await client.customers.create({ phone: '+15550' })).id)
    const name = { organizationId: shop.id, psp: 'stripe', merchantId: NOTIFIED_MERCHANT }
    const provider = (await app.providers.of(name.organizationId, name.psp, name.merchantId))!
    const notifications = ids.map(
      (id) =>
        adapters['stripe']!.readNotification(eventOf(`evt_${id}`, 'customer.updated', { id, object: 'customer' }))!,
    )
    const context = { ...billingContext(app), countNotification: app.metrics.countNotification }
    const signal = new AbortController().signal
    return {
      ids,
      /** Returns those that are to be handled again, and the number of calls. */
      async handle() {
        const before = await stripe.calls()
        const errors = await handleTogether(context, name, provider, notifications, signal)
        return { failed: ids.filter((_, n) => errors[n]), calls: (await stripe.calls()) - before }
      },
    }
  }

  const fail = (ids: string[], fault: object) =>
    alone.stripe.control('/faults', { method: 'GET', path: `/v1/customers/(${ids.join('|')})`, times: 1000, ...fault })

  const stored = async (ids: string[]) => {
    const text = 'select id from profiles where project_id = $1 and id = any($2)'
    const rows = await alone.billing.db.query(text, [alone.shop.projectId, ids])
    return ids.filter((id) => rows.some((row) => row.id === id))
  }

  test('after an outage in their midst only the others are read again', async () => {
    const { ids, handle } = await changedCustomers(6)
    await fail(ids.slice(3), { kind: 'busy' })
    const during = await handle()
    await alone.stripe.control('/faults/clear')
    assert.deepEqual(during.failed, ids.slice(3))
    assert.deepEqual(await stored(ids), ids.slice(0, 3))
    assert.deepEqual(await handle(), { failed: [], calls: 3 })
    assert.deepEqual(await stored(ids), ids)
  })

  for (const kind of ['error_before', 'forbidden'])
    test(`an object that Stripe does not serve (${kind}) is read again alone`, async () => {
      const { ids, handle } = await changedCustomers(6)
      await fail(ids.slice(1, 2), { kind })
      assert.deepEqual((await handle()).failed, ids.slice(1, 2))
      assert.deepEqual(await stored(ids), ids.toSpliced(1, 1))
      assert.deepEqual((await handle()).failed, ids.slice(1, 2))
      await alone.stripe.control('/faults/clear')
      assert.deepEqual(await handle(), { failed: [], calls: 1 })
      assert.deepEqual(await stored(ids), ids)
    })
})

const TAKEN = 'select from pending_notifications where lease_until is not null'

describe('a stop', () => {
  // Its server would handle what the one that stops has stored.
  const idle = setUpStripeShop({ isFollowed: true, worker: false })

  test('does not wait for an object that Stripe serves slowly, which is read again later', async () => {
    const { env, url } = idle.billing.server
    const { db } = idle.billing
    const first = await startTestServer(env)
    const path = '/v1/subscriptions/sub_slow'
    await idle.stripe.control('/faults', { method: 'GET', path, kind: 'slow', ms: 20_000 })
    const event = eventOf('evt_slow', UPDATED, { id: 'sub_slow', object: 'subscription' })
    assert.equal(await sendTo(idle.account.eventsUrl.replace(url, first.url), event, idle.account.secret), 200)
    await until('it to be taken', async () => (await db.query(TAKEN)).length > 0)
    await first.stop()
    assert.match(first.logLines().join('\n'), /Notifications were not handled\./)
    const second = await startTestServer(env)
    await until('it to be read again', async () => (await handled([event], db)) === 1)
    await second.stop()
  })
})
