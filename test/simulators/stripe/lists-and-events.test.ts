// Lists and events of the Stripe dialect, through Stripe's own client: pages, expansion, signed deliveries.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { column } from '../../support/rows.ts'
import { openStripeSimulator, savedCard } from '../../support/simulators.ts'
import { until } from '../../support/time.ts'

const simulator = await openStripeSimulator()
after(() => simulator.cleanUp())
const stripe = simulator.client()

test('a list goes back in time, page by page, and from a time on', async () => {
  const { customer, payment_method } = await savedCard(stripe)
  const made: string[] = []
  for (let n = 0; n < 7; n++) {
    const { id } = await stripe.paymentIntents.create({ amount: 100 + n, currency: 'usd', customer, payment_method })
    made.unshift(id)
  }
  const walked: string[] = []
  for await (const { id } of stripe.paymentIntents.list({ customer, limit: 3 })) walked.push(id)
  assert.deepEqual(walked, made)
  const back = await stripe.paymentIntents.list({ customer, limit: 2, ending_before: made[4]! })
  assert.deepEqual([back.data.map(({ id }) => id), back.has_more], [[made[2], made[3]], true])
  const { now_ms } = await simulator.control<{ now_ms: number }>('/clock', { advance_ms: 10_000 })
  const late = await stripe.paymentIntents.create({ amount: 999, currency: 'usd', customer, payment_method })
  const since = await stripe.paymentIntents.list({ customer, created: { gte: Math.floor(now_ms / 1000) } })
  assert.deepEqual(column(since.data, 'id'), [late.id])
  assert.equal((await stripe.paymentIntents.list({ customer, created: { lt: 1 } })).data.length, 0)
})

test('expansion reaches into a list; 400 for what cannot be expanded', async () => {
  const { customer } = await savedCard(stripe)
  const listed = await stripe.customers.listPaymentMethods(customer, { expand: ['data.customer'] })
  assert.equal((listed.data[0]!.customer as Stripe.Customer).email, 'grace@example.com')
  await assert.rejects(stripe.customers.retrieve(customer, { expand: ['email'] }), { param: 'expand' })
})

test('events are signed, come once each, and hold the object as it was', async () => {
  await withReceiver(async (received, endpoint) => {
    const customer = await stripe.customers.create({ name: 'Ada' })
    await stripe.customers.update(customer.id, { name: 'Ada L.' })
    await until('deliveries', () => received.length === 2)
    const events = received.map(({ body, signature }) =>
      stripe.webhooks.constructEvent(body, signature, endpoint.secret!),
    )
    assert.deepEqual(new Set(events.map(({ type }) => type)), new Set(['customer.created', 'customer.updated']))
    const created = events.find(({ type }) => type === 'customer.created')?.data.object as Stripe.Customer | undefined
    assert.equal(created?.name, 'Ada')
    assert.throws(() => stripe.webhooks.constructEvent(received[0]!.body, received[0]!.signature, 'whsec_other'))
  })
})

test('events come twice, late or never where that is ordered', async () => {
  await withReceiver(async (received) => {
    await simulator.control('/events', { copies: 2, delayMs: 50, shuffled: true })
    await stripe.customers.create({ name: 'Bea' })
    await until('deliveries', () => received.length === 2)
    await simulator.control('/events', { isOff: true })
    await stripe.customers.create({ name: 'Cia' })
    await simulator.control('/events', { isOff: false, copies: 1, delayMs: 0, shuffled: false })
    await stripe.customers.create({ name: 'Dia' })
    await until('deliveries', () => received.length === 3)
    assert.match(received[2]!.body, /Dia/)
  })
})

test('an event that was not taken is sent again', async () => {
  let refusals = 2
  await withReceiver(
    async (received) => {
      await stripe.customers.create({ name: 'Eva' })
      await until('deliveries', () => received.length === 3)
      assert.equal(new Set(received.map(({ body }) => body)).size, 1)
    },
    () => (refusals-- > 0 ? 500 : 200),
  )
})

interface Received {
  body: string
  signature: string
}

async function withReceiver(
  work: (received: Received[], endpoint: Stripe.WebhookEndpoint) => Promise<void>,
  status = () => 200,
) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      received.push({
        body: Buffer.concat(chunks).toString('utf8'),
        signature: String(request.headers['stripe-signature']),
      })
      response.writeHead(status()).end()
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`
  const endpoint = await stripe.webhookEndpoints.create({ url, enabled_events: ['*'] })
  try {
    await work(received, endpoint)
  } finally {
    await stripe.webhookEndpoints.del(endpoint.id)
    server.closeAllConnections()
    server.close()
  }
}
