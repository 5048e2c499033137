// The demo's merchant account at Stripe: charges go through the Stripe adapter to a simulator with Stripe's API.
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { App } from '../../app.ts'
import { importRecords } from '../../data/ingest/load.ts'
import { DAY_MS } from '../../lib/days.ts'
import { encodeForm } from '../../lib/http/form.ts'
import type { Db } from '../../lib/pg/db.ts'
import { STRIPE_SIMULATOR_KEY } from '../../payments/providers/adapters.ts'
import { connectAccount } from '../../payments/providers/connect.ts'

/** The customer whose card is saved there. */
const STRIPE_CUSTOMER = 'grace'

const ID = 'demo'
const MERCHANT = 'stripe-demo'
const SECRET_KEY = `${STRIPE_SIMULATOR_KEY}Demo0001`

/** Connects the account and saves a card there, once; it notifies the server at `url`. Without a simulator nothing is done. */
export async function addStripeAccount(app: App, url: string): Promise<void> {
  const { db, seal, clock, config, stripeSimulatorUrl } = app
  if (!stripeSimulatorUrl || (await isConnected(db))) return
  const card = await saveCard(stripeSimulatorUrl())
  const webhookSecret = await registerForEvents(stripeSimulatorUrl(), url)
  const stream = () => Readable.from([paymentLine(card)])
  const { rejects } = await importRecords(app, { projectId: ID }, [{ name: 'the demo', stream }])
  if (rejects.length > 0) throw new Error(`Bug: the demo's payment is refused: ${JSON.stringify(rejects[0])}`)
  const { stripeApiUrl, providerTimeoutMs: deadlineMs } = config
  const name = { organizationId: ID, psp: 'stripe', merchantId: MERCHANT }
  await connectAccount({ db, seal, clock, stripeApiUrl, stripeSimulatorUrl, deadlineMs }, name, {
    secretKey: SECRET_KEY,
    webhookSecrets: [webhookSecret],
    isSandbox: true,
  })
}

async function isConnected(db: Db): Promise<boolean> {
  const rows = await db.query(
    `select 1 from merchant_accounts
     where organization_id = $1 and psp = 'stripe' and psp_merchant_id = $2 and credentials is not null`,
    [ID, MERCHANT],
  )
  return rows.length > 0
}

/** A customer with a saved card at the simulator, as a checkout leaves it. */
async function saveCard(url: string): Promise<{ customer: string; token: string }> {
  const customer = await post(`${url}/v1/customers`, { email: `${STRIPE_CUSTOMER}@example.com`, name: 'Grace' })
  const method = await post(`${url}/v1/payment_methods/pm_card_mastercard/attach`, { customer: customer.id })
  return { customer: customer.id, token: method.id }
}

/** Makes the simulator send its events to the server, as an endpoint in Stripe's dashboard does; returns their signing secret. */
async function registerForEvents(url: string, serverUrl: string): Promise<string> {
  const path = `/${ID}/v1/providers/stripe/${MERCHANT}/events`
  const endpoint = { url: serverUrl + path, enabled_events: ['*'] }
  return (await post(`${url}/v1/webhook_endpoints`, endpoint)).secret!
}

async function post(url: string, fields: Parameters<typeof encodeForm>[0]): Promise<{ id: string; secret?: string }> {
  const headers = { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/x-www-form-urlencoded' }
  const response = await fetch(url, { method: 'POST', headers, body: encodeForm(fields) })
  if (!response.ok) throw new Error(`The simulator responded with ${response.status}.`)
  return (await response.json()) as { id: string; secret?: string }
}

/** Yesterday's payment, so that it is the customer's latest one with a saved card. */
function paymentLine({ customer, token }: { customer: string; token: string }): string {
  const data = {
    external_id: STRIPE_CUSTOMER,
    order_id: randomUUID(),
    trx_id: randomUUID(),
    amount: 19.99,
    currency_code: 'USD',
    status: 'succeeded',
    psp: 'stripe',
    psp_merchant_id: MERCHANT,
    psp_transaction_type: 'sale',
    psp_customer_id: customer,
    payment_method_token: token,
    trx_created_at: new Date(Date.now() - DAY_MS).toISOString(),
  }
  return `${JSON.stringify({ record: 'payment', data })}\n`
}
