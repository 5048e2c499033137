// The demo's other merchant accounts: their customers are charged through the adapters of Stripe and Primer, at their own simulators.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { prepareDemo } from '../../../src/cli/demo/demo.ts'
import { startDemoServer } from '../../operator/dashboard/demo-database.ts'
import { tundish } from '../../support/cli.ts'
import type { Json } from '../../support/server.ts'
import { openPrimerSimulator, openStripeSimulator } from '../../support/simulators.ts'
import { until } from '../../support/time.ts'

const simulator = await openStripeSimulator()
const primer = await openPrimerSimulator()
const server = await startDemoServer({ STRIPE_API_URL: simulator.url, PRIMER_API_URL: primer.url }, { worker: true })
const simulatorUrls = { stripe: () => simulator.url, primer: () => primer.url }
const app = { ...server.app, simulatorUrls }
const text = await prepareDemo(app, { url: server.url, adminUrl: undefined })
assert.equal(await prepareDemo(app, { url: server.url, adminUrl: undefined }), text)
const key = /service-secret-key +(secret_\S+)/.exec(text)![1]!
after(async () => {
  await server.stop()
  await simulator.cleanUp()
  await primer.cleanUp()
})

const call = async (path: string, body: object) =>
  (
    await server.call(`/demo/v1${path}`, {
      method: 'POST',
      body,
      headers: ['service-secret-key', key, 'Content-Type', 'application/json'],
    })
  ).body

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

test("hedy is charged through Primer's simulator: her attempts, a refund and a dispute are in the report", async () => {
  const charged = async (idempotency_key: string) => {
    const charge = { external_id: 'hedy', amount: '9.99', currency_code: 'USD', idempotency_key }
    const { checkout_status, order_id } = await call('/payment/one_off_charge', charge)
    assert.equal(checkout_status, 'succeeded')
    return String(order_id)
  }
  const rowsOf = async (more: object): Promise<Json[]> =>
    (await call('/transaction_report', { last_transaction_date: '2020-01-01T00:00:00Z', ...more })).transactions
  const brief = (row: Json) => [
    row.psp_transaction_type,
    row.status,
    row.is_fallback,
    row.is_cit,
    row.threeds_response_code,
  ]

  const [refunded, disputed] = [await charged('first'), await charged('second')]
  const refund = await call('/payment/refund', { external_id: 'hedy', order_id: refunded })
  assert.equal(refund.refund_status, 'succeeded')
  const rows = await rowsOf({ order_id: refunded })
  assert.deepEqual(rows.map(brief), [
    ['sale', 'failed', false, false, 'NOT_PERFORMED'],
    ['sale', 'succeeded', true, false, 'NOT_PERFORMED'],
    ['refund', 'refunded', false, false, 'NOT_PERFORMED'],
  ])
  assert.deepEqual([rows[1]!.network, rows[1]!.pm_data_bin_issuer_name], ['Visa', 'EXAMPLE BANK'])
  const payment = (await rowsOf({ order_id: disputed }))[1]!.psp_transaction_id
  await primer.control('/disputes', { id: payment, status: 'LOST' })
  await until('the chargeback', async () =>
    (await rowsOf({ order_id: disputed })).some((row) => row.psp_transaction_type === 'chargeback'),
  )
  // What she bought herself, when the card was saved.
  const imported = (await rowsOf({ last_transaction_date: new Date(Date.now() - 3_600_000).toISOString() })).filter(
    ({ psp, is_cit }) => psp === 'primer' && is_cit,
  )
  assert.deepEqual(imported.map(brief), [
    ['sale', 'failed', false, true, 'AUTH_SUCCESS'],
    ['sale', 'succeeded', true, true, 'AUTH_SUCCESS'],
  ])
})
