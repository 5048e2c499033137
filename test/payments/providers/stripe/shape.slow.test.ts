// The Stripe adapter's requests against Stripe's own mock, and the simulator's responses against Stripe's OpenAPI document.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StripeProvider } from '../../../../src/payments/providers/stripe/stripe.ts'
import { openStripeSimulator, savedCard, stripeClient, TEST_KEY } from '../../../support/simulators.ts'
import { HandClock } from '../../../support/time.ts'
import { titled } from '../../../support/titled.ts'
import { chargeRequest, refundRequest } from '../charging.ts'
import { departures } from './openapi-shape.ts'
import { recordingProxy } from './recording-proxy.ts'
import { findStripeMock, findStripeOpenApi, startStripeMock } from './stripe-tools.ts'

const mock = findStripeMock()
const document = findStripeOpenApi()
const whyNot = (tool: object) => ('why' in tool ? String(tool.why) : undefined)

test(titled('stripe-mock accepts every request that the adapter forms', whyNot(mock)), {
  skip: 'why' in mock,
}, async (t) => {
  if ('why' in mock) return
  const server = await startStripeMock(mock.found)
  t.after(server.close)
  const proxy = await recordingProxy(server.url)
  t.after(proxy.close)
  await everyCall(provider(proxy.url))
  const rejected = proxy.calls.filter(({ status }) => status !== 200)
  assert.deepEqual(rejected, [])
  const paths = new Set(
    proxy.calls.map(({ method, path }) => `${method} ${path.replaceAll(/(pi|pm|cus|txn)_\w+/g, ':id')}`),
  )
  assert.deepEqual([...paths].sort(), CALLS)
})

/** What the adapter can ask for; a new call belongs here and into `everyCall`. */
const CALLS = [
  'DELETE /v1/customers/:id',
  'GET /v1/account',
  'GET /v1/balance',
  'GET /v1/balance_transactions',
  'GET /v1/balance_transactions/:id',
  'GET /v1/country_specs/US',
  'GET /v1/customers/:id',
  'GET /v1/customers/:id/payment_methods',
  'GET /v1/disputes',
  'GET /v1/payment_intents',
  'GET /v1/payment_intents/:id',
  'GET /v1/payment_methods/:id',
  'GET /v1/refunds',
  'POST /v1/customers/:id',
  'POST /v1/payment_intents',
  'POST /v1/payment_intents/:id/cancel',
  'POST /v1/payment_intents/:id/confirm',
  'POST /v1/payment_methods/:id/detach',
  'POST /v1/refunds',
]

test(titled("the simulator's responses have the shape of Stripe's OpenAPI document", whyNot(document)), {
  skip: 'why' in document,
}, async (t) => {
  if ('why' in document) return
  const simulator = await openStripeSimulator()
  t.after(simulator.cleanUp)
  const proxy = await recordingProxy(simulator.url)
  t.after(proxy.close)
  await everyCall(provider(proxy.url), simulator.client())
  await everyResponse(stripeClient(proxy.url, TEST_KEY), simulator.control)
  assert.ok(proxy.calls.length > 60 && proxy.calls.some(({ status }) => status === 402))
  assert.deepEqual([...new Set(proxy.calls.flatMap((call) => departures(document.found, call)))], [])
})

function provider(apiUrl: string): StripeProvider {
  const account = { secretKey: TEST_KEY, merchantId: 'acct_1', isSandbox: true }
  return new StripeProvider({ ...account, apiUrl, clock: new HandClock() })
}

/** Runs each method of the adapter, whatever it returns: at stripe-mock objects are samples. */
async function everyCall(adapter: StripeProvider, client?: Parameters<typeof savedCard>[0]): Promise<void> {
  const card = client ? await savedCard(client) : { customer: 'cus_1', payment_method: 'pm_1' }
  const request = chargeRequest(card.payment_method)
  const since = new Date(Date.now() - 60_000).toISOString()
  const prepared = await adapter.prepare(request)
  await adapter.prepare({ ...request, key: `${request.key}2`, providerCustomer: card.customer })
  const handle = prepared.outcome === 'prepared' ? prepared.handle : 'pi_1'
  const confirmed = await adapter.confirm({ ...request, handle })
  await adapter.lookUp({ ...request, handle })
  await adapter.refuse({ ...request, handle })
  await adapter.findByKey({ ...request, cards: [request] }, { since })
  const charge = confirmed.outcome === 'succeeded' ? confirmed : sampleCharge(handle)
  const refund = refundRequest(charge as never, 100n)
  await adapter.refund({ ...refund, currencyCode: 'USD' })
  await adapter.lookUpRefund(refund)
  await adapter.refundsOf({ chargeTransactionId: handle })
  await adapter.disputesOf({ chargeTransactionId: handle })
  // At stripe-mock the samples' times are of 2009.
  for await (const _movement of adapter.list(since));
  await adapter.describeAccount()
  await adapter.isReachable()
  for await (const _fees of adapter.feesSince(since));
  const entered = await client?.balanceTransactions.list({ limit: 1 })
  await adapter.feeOf(entered?.data[0]?.id ?? 'txn_1')
  await adapter.savedCard(card.payment_method)
  await adapter.eraseCustomer(card.customer, 'empty')
  await adapter.eraseCustomer(card.customer, 'delete')
  adapter.close()
}

function sampleCharge(id: string) {
  return { currencyCode: 'USD', details: { psp_transaction_id: id } }
}

/** States and errors that the adapter's own calls do not lead to. */
async function everyResponse(
  stripe: ReturnType<typeof stripeClient>,
  control: (path: string, body?: object) => Promise<Record<string, unknown>>,
): Promise<void> {
  const pay = async (token: string, more: object = { off_session: true, error_on_requires_action: true }) => {
    const card = await savedCard(stripe, token)
    const { id } = await stripe.paymentIntents.create({ amount: 1000, currency: 'usd', ...card })
    await stripe.paymentIntents.confirm(id, more).catch(() => {})
    return stripe.paymentIntents.retrieve(id, { expand: ['latest_charge', 'customer'] })
  }
  for (const token of ['pm_card_chargeDeclined', 'pm_card_authenticationRequired', 'pm_sim_processing_60000ms']) {
    await pay(token)
  }
  await pay('pm_card_threeDSecure2Required', {})
  const { latest_charge } = await pay('pm_card_visa')
  const charge = (latest_charge as { id: string }).id
  const refund = await stripe.refunds.create({ charge, amount: 100, reason: 'duplicate' })
  await control(`/refunds/${refund.id}/fail`)
  await stripe.refunds.retrieve(refund.id)
  const dispute = await control('/disputes', { charge })
  await control(`/disputes/${dispute['id']}/close`, { status: 'won' })
  await stripe.disputes.retrieve(String(dispute['id']))
  await stripe.charges.retrieve(charge)
  await stripe.charges.list({ limit: 3 })
  await stripe.balanceTransactions.list({ limit: 10, expand: ['data.source'] })
  await stripe.customers.list({ limit: 3 })
  await stripe.events.list({ limit: 100 })
  const endpoint = await stripe.webhookEndpoints.create({ url: 'http://127.0.0.1:9/', enabled_events: ['*'] })
  await stripe.webhookEndpoints.list()
  await stripe.webhookEndpoints.del(endpoint.id)
  await stripe.paymentIntents.retrieve('pi_none').catch(() => {})
  await stripe.paymentIntents.create({ amount: 1, currency: 'usd' }).catch(() => {})
}
