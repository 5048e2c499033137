// The demo's second merchant account: its customer is charged through the Stripe adapter, at a simulator of its own.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { prepareDemo } from '../../../src/cli/demo/demo.ts'
import { tundish } from '../../support/cli.ts'
import { until } from '../../support/cluster.ts'
import { type Json, startTestServer, type TestServer } from '../../support/server.ts'
import { openStripeSimulator, type StripeSimulator } from '../../support/stripe-simulator.ts'

let simulator: StripeSimulator
let server: TestServer
let key: string
before(async () => {
  simulator = await openStripeSimulator()
  server = await startTestServer({ STRIPE_API_URL: simulator.url })
  const app = { ...server.app, stripeSimulatorUrl: () => simulator.url }
  const text = await prepareDemo(app, { url: server.url, adminUrl: undefined })
  assert.equal(await prepareDemo(app, { url: server.url, adminUrl: undefined }), text)
  key = /service-secret-key +(secret_\S+)/.exec(text)![1]!
})
after(async () => {
  await server.stop()
  await simulator.cleanUp()
})

test("grace is charged through Stripe's simulator, once for a key, as the customer that she is there", async () => {
  const charge = () =>
    server.call('/demo/v1/payment/one_off_charge', {
      method: 'POST',
      body: { external_id: 'grace', amount: '9.99', currency_code: 'USD', idempotency_key: 'first' },
      headers: ['service-secret-key', key, 'Content-Type', 'application/json'],
    })
  assert.equal((await charge()).body.checkout_status, 'succeeded')
  assert.equal((await charge()).body.idempotent_replay, true)
  const charges = (await simulator.ledger()).filter(({ metadata }) => metadata['tundish_order'])
  assert.deepEqual(
    charges.map(({ amount, currency }) => [amount, currency]),
    [[999, 'usd']],
  )
  const customers = await simulator.client().customers.list({ limit: 100 })
  const grace = customers.data.find(({ email }) => email === 'grace@example.com')
  const intent = await simulator.client().paymentIntents.retrieve(charges[0]!.payment_intent!)
  assert.equal(intent.customer, grace!.id)
})

test('an import of her account reads the simulator: a key of the demo is never sent to Stripe', async () => {
  const asked: string[] = []
  const stripe = createServer((request, response) => {
    asked.push(request.url!)
    response.writeHead(401).end()
  }).listen(0, '127.0.0.1')
  await once(stripe, 'listening')
  try {
    const { port } = stripe.address() as AddressInfo
    await server.db.query(`insert into instance (name, value) values ('stripe simulator url', $1)`, [simulator.url])
    const words = ['import', 'stripe', '--org', 'demo', '--project', 'demo', '--dry-run', '--json']
    const env = { ...server.env, STRIPE_API_URL: `http://127.0.0.1:${port}` }
    const { code, stdout, stderr } = await tundish(words, env)
    assert.deepEqual([code, stderr, asked], [0, '', []])
    assert.ok(JSON.parse(stdout).read > 0)
  } finally {
    stripe.close()
  }
})

test('the finance report has the fee of her payment, and none of those at the simulator', async () => {
  const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10)
  const rows = async (...more: string[]): Promise<Json[]> => {
    const asked = ['report', '--org', 'demo', '--from', day(-40), '--to', day(2), '--rows', '--json', ...more]
    return JSON.parse((await tundish(asked, server.env)).stdout).rows
  }
  const hers = async () => (await rows('--test')).find(({ psp, amount }) => psp === 'stripe' && amount === 9.99)
  await until('the fee', async () => (await hers())?.fee === -0.59)
  const simulated = (await rows()).filter(({ psp }) => psp === 'simulator')
  assert.ok(simulated.length > 0)
  assert.deepEqual([...new Set(simulated.map(({ fee }) => fee))], [null])
})
