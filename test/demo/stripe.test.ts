// The demo's second merchant account: its customer is charged through the Stripe adapter, at a simulator of its own.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { prepareDemo } from '../../src/demo/demo.ts'
import { startTestServer, type TestServer } from '../support/server.ts'
import { openStripeSimulator, type StripeSimulator } from '../support/stripe-simulator.ts'

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

test('grace is charged by Stripe adapter and simulator, once for her key, with her customer there', async () => {
  const charge = () =>
    server.call('/demo/v1/payment/one_off_charge', {
      method: 'POST',
      body: { external_id: 'grace', amount: '9.99', currency_code: 'USD', idempotency_key: 'first' },
      headers: ['service-secret-key', key, 'Content-Type', 'application/json'],
    })
  assert.equal((await charge()).body.checkout_status, 'succeeded')
  assert.equal((await charge()).body.idempotent_replay, true)
  const charges = (await simulator.ledger()).filter(({ type }) => type === 'charge')
  assert.deepEqual(
    charges.map(({ amount, currency }) => [amount, currency]),
    [[999, 'usd']],
  )
  const customers = await simulator.client().customers.list()
  assert.deepEqual(
    customers.data.map(({ email }) => email),
    ['grace@example.com'],
  )
  const intent = await simulator.client().paymentIntents.retrieve(charges[0]!.payment_intent!)
  assert.equal(intent.customer, customers.data[0]!.id)
})
