// A support case through the API alone: find the person, see the charge and its timeline, refund it, send its event again.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createEndpoint } from '../../../src/core/events/endpoints.ts'
import { startBilling } from '../../support/billing.ts'
import { startReceiver } from '../../support/receiver.ts'
import { eventually } from '../../support/time.ts'

const billing = await startBilling({ WEBHOOK_ALLOW_PRIVATE: 'true' })
const receiver = await startReceiver()
after(async () => {
  await billing.stop()
  await receiver.close()
})
const organization = await billing.organization()
const settings = { url: receiver.url, kinds: [], enabled: true }
await billing.db.tx((query) => createEndpoint(query, organization.projectId, settings, { allowPrivate: true }))

const { admin } = billing.server
/** The ids of the events that arrived: one may come twice, when its receiver was too slow to say so. */
const arrivedIds = () => receiver.arrivals.map(({ headers }) => headers['webhook-id'])

test('find a person, see their charge and its timeline, refund it, send an event again', async () => {
  const customer = await organization.customer({ profileId: 'profile-ada' })
  await billing.db.query(`update profiles set email = 'Ada@Example.com', email_folded = 'ada@example.com'`)
  const { order_id } = (await organization.charge(customer)).body
  const found = await admin('/search?q=ada@example.COM')
  assert.deepEqual(
    found.body.results.map(({ kind, id }: { kind: string; id: string }) => `${kind} ${id}`),
    ['profile profile-ada', `customer ${customer}`, `order ${order_id}`],
  )
  for (const q of ['profile-ada', customer, order_id]) {
    const { body } = await admin(`/search?q=${encodeURIComponent(q)}`)
    assert.ok(
      body.results.some(({ id }: { id: string }) => id === q),
      q,
    )
  }
  assert.deepEqual((await admin('/search?q=nobody@example.com')).body, { results: [] })

  const path = `/organizations/${organization.id}/orders/${order_id}`
  assert.match((await admin(path)).text, /"amount_refunded":0\.00,/)
  const refunded = await admin(`${path}/refund`, { method: 'POST', body: { reason: 'asked' } })
  assert.deepEqual(
    [refunded.status, refunded.body.refund_status, refunded.body.consumable_revoked],
    [200, 'succeeded', true],
  )

  const kinds = ['charge.succeeded', 'consumable.granted', 'refund.succeeded', 'consumable.revoked']
  // The order's own events, not the transaction's, which is another object.
  assert.ok(await eventually(() => new Set(arrivedIds()).size === kinds.length + 1))
  let timeline: { what: string; detail: Record<string, string> }[] = []
  const complete = await eventually(async () => {
    const { body } = await admin(path)
    assert.equal(body.order.amount_refunded, 10.5)
    timeline = body.timeline
    const delivered = timeline.filter(({ what, detail }) => what === 'delivery' && detail.status === 'succeeded')
    // Calls are noted after the responses.
    const calls = timeline.filter(({ what }) => what === 'provider_called')
    return delivered.length === kinds.length && calls.length === 2
  })
  assert.ok(complete, JSON.stringify(timeline))
  const steps = timeline.filter(({ what }) => !['event', 'delivery'].includes(what))
  const names = steps.map(({ what, detail }) => [what, detail.call ?? detail.type ?? ''].join(' ').trim())
  const expected = ['claimed', 'provider_called charge', 'settled', 'payment sale']
  const refund = ['refund_begun', 'provider_called refund', 'refund_settled', 'payment refund']
  assert.deepEqual([names[0], names[1], names[4], names[5]], [expected[0], expected[1], refund[0], refund[1]])
  assert.deepEqual([...names].sort(), [...expected, ...refund].sort())
  const events = timeline.filter(({ what }) => what === 'event')
  assert.deepEqual(events.map(({ detail }) => detail.type).sort(), [...kinds].sort())

  const sent = events[0]!.detail.event_id!
  const arrivals = () => arrivedIds().filter((id) => id === sent).length
  const before = arrivals()
  const again = await admin(`/projects/${organization.projectId}/events/${sent}/send`, { method: 'POST' })
  assert.deepEqual(again.body, { endpoints: 1 })
  assert.ok(await eventually(() => arrivals() > before))
})

test('a charge with an unknown outcome is listed as stuck, with the calls that were made', async () => {
  const customer = await organization.customer({ token: 'sim_drop_no_charge' })
  const { order_id, checkout_status } = (await organization.charge(customer)).body
  assert.equal(checkout_status, 'processing')
  const stuck = await admin('/orders/stuck?minutes=0')
  assert.ok(stuck.body.data.some((one: { order_id: string }) => one.order_id === order_id) || (await settled(order_id)))
  assert.equal((await admin('/orders/stuck')).body.data.length, 0)
  assert.ok(await eventually(() => settled(order_id)))
  const readCalls = async () => {
    const { body } = await admin(`/organizations/${organization.id}/orders/${order_id}`)
    assert.equal(body.order.status, 'cancelled')
    return body.timeline.filter(({ what }: Step) => what === 'provider_called')
  }
  assert.ok(await eventually(async () => (await readCalls()).length === 3))
  assert.deepEqual((await readCalls()).map(({ detail }: Step) => `${detail.call} ${detail.outcome}`).sort(), [
    'charge unknown',
    'look_up not_found',
    'refuse refused',
  ])
})

test('a refund with an unknown outcome is listed as stuck, until it is known', async () => {
  const customer = await organization.customer({ token: 'sim_refund_drop' })
  const { order_id } = (await organization.charge(customer)).body
  const stuck = async (query = '?minutes=0') => (await admin(`/refunds/stuck${query}`)).body.data
  await billing.simulator.stop()
  try {
    const begun = (await organization.refund(customer, order_id, { amount: 4, idempotency_key: 'part' })).body
    assert.equal(begun.refund_status, 'processing')
    const [one, ...others] = await stuck()
    assert.deepEqual(others, [])
    const { organization_id, refund_id, external_id, idempotency_key, amount, currency_code, psp } = one
    assert.deepEqual(
      [organization_id, refund_id, one.order_id, external_id, idempotency_key, amount, currency_code, psp],
      [organization.id, begun.refund_id, order_id, customer, 'part', 4, 'USD', 'simulator'],
    )
    assert.deepEqual(await stuck(''), [])
  } finally {
    await billing.simulator.start()
  }
  assert.ok(await eventually(async () => (await stuck()).length === 0))
})

test('a timeline lists the calls to a provider in the order in which they were made, however late they are noted', async () => {
  const customer = await organization.customer({ token: 'sim_drop_no_charge' })
  const { query, release } = await billing.db.connect()
  await query('begin')
  await query('lock table order_log in share mode')
  try {
    const { order_id } = (await organization.charge(customer)).body
    assert.ok(await eventually(() => settled(order_id)))
    await query('commit')
    let names: string[] = []
    const complete = await eventually(async () => {
      const { body } = await admin(`/organizations/${organization.id}/orders/${order_id}`)
      const steps = body.timeline.filter(({ what }: Step) => !['event', 'delivery'].includes(what))
      names = steps.map(({ what, detail }: Step) => [what, detail.call ?? detail.status ?? ''].join(' ').trim())
      return names.length === 5
    })
    const calls = ['provider_called charge', 'provider_called look_up', 'provider_called refuse']
    assert.ok(complete, JSON.stringify(names))
    assert.deepEqual(names, ['claimed', ...calls, 'settled cancelled'])
  } finally {
    release(true)
  }
})

interface Step {
  what: string
  detail: Record<string, string>
}

const settled = async (orderId: string) =>
  (await billing.db.query(`select 1 from orders where order_id = $1 and status <> 'processing'`, [orderId])).length > 0
