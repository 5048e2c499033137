// The demo's merchant account at Stripe: charges go through the Stripe adapter to a simulator with Stripe's API.
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { App } from '../../app.ts'
import { importRecords } from '../../data/ingest/load.ts'
import { FIRST_STEP } from '../../data/ingest/stripe/run.ts'
import { beginState, findState } from '../../data/ingest/stripe/state.ts'
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

/**
 * Connects the account and saves a card there, once; it notifies the server at `url`. Then visitors of the demo buy there, and the
 * server imports the account and follows it. Without a simulator nothing is done.
 */
export async function addStripeAccount(app: App, url: string): Promise<void> {
  const { db } = app
  const simulatorUrl = app.simulatorUrls['stripe']?.()
  if (simulatorUrl === undefined) return
  if (!(await isConnected(db))) await connect(app, simulatorUrl, url)
  const name = { organizationId: ID, projectId: ID, merchantId: MERCHANT }
  if (await findState(db.query, name)) return
  const agos = await sellToVisitors(db, simulatorUrl)
  if (agos.length > 0) await payOut(simulatorUrl, agos)
  await beginState(db.query, name, { follow: true }, { background: true, firstStep: FIRST_STEP })
}

async function connect(app: App, simulatorUrl: string, url: string): Promise<void> {
  const { db, seal, clock, config, simulatorUrls } = app
  const card = await saveCard(simulatorUrl)
  const webhookSecret = await registerForEvents(simulatorUrl, url)
  const stream = () => Readable.from([paymentLine(card)])
  const { rejects } = await importRecords(app, { projectId: ID }, [{ name: 'the demo', stream }])
  if (rejects.length > 0) throw new Error(`Bug: the demo's payment is refused: ${JSON.stringify(rejects[0])}`)
  const { stripeApiUrl, providerTimeoutMs: deadlineMs } = config
  const name = { organizationId: ID, psp: 'stripe', merchantId: MERCHANT }
  await connectAccount({ db, seal, clock, stripeApiUrl, simulatorUrls, deadlineMs }, name, {
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

/** Returns how many seconds ago each bought, the first one first. Visitors of the last weeks who bought nothing buy a plan; the metadata of their checkout names the profile and the session. */
async function sellToVisitors(db: Db, url: string): Promise<number[]> {
  const visitors = await db.query(VISITORS, [ID])
  const product = await post(`${url}/v1/products`, { name: 'Monthly plan (Stripe)' })
  const recurring = { interval: 'month' }
  const price = await post(`${url}/v1/prices`, { product: product.id, currency: 'usd', unit_amount: 1999, recurring })
  for (const { session, profile, email, ago_s } of visitors) {
    const { id } = await post(`${url}/v1/checkout/sessions`, {
      mode: 'subscription',
      line_items: [{ price: price.id, quantity: 1 }],
      metadata: { tundish_session: session!, tundish_profile: profile! },
      success_url: 'https://quiz.example.com/thanks',
    })
    await control(`${url}/_control/checkout/sessions/${id}/pay`, { email: email!, ago_s: Number(ago_s) })
  }
  return visitors.map(({ ago_s }) => Number(ago_s)).sort((a, b) => b - a)
}

// A subscription that began in the last weeks is in its first month: the simulator does not renew it.
const VISITORS = `
  select s.id as session, p.id as profile, p.email, extract(epoch from db_clock() - s.created_at)::integer - 240 as ago_s
  from profiles p cross join lateral (
    select id, created_at from sessions s where s.project_id = $1 and s.profile_id = p.id
    order by created_at desc limit 1) s
  where p.project_id = $1 and p.email is not null and p.anonymized_at is null and not p.preview
    and s.created_at between db_clock() - interval '25 days' and db_clock() - interval '1 hour'
    and not exists (select from subscriptions u where u.project_id = $1 and u.profile_id = p.id)
  order by s.created_at desc limit 20`

/** Three payouts: in the second one a fee of the account and a correction; the third failed at the bank. */
async function payOut(url: string, agos: readonly number[]): Promise<void> {
  const past = (path: string, ago_s: number, more: object = {}) =>
    control(`${url}/_control/${path}`, { ago_s, ...more })
  // Some seconds after a sale, so that it is in the balance.
  const [first, second, third] = [1, 2, 3].map((n) => agos[Math.ceil((agos.length * n) / 3) - 1]! - 60)
  await past('payouts/past', first!)
  await past('adjustments', first! - 1, { amount: -750, type: 'stripe_fee' })
  await past('adjustments', first! - 1, { amount: 125, type: 'adjustment' })
  await past('payouts/past', second!)
  const { id } = await past('payouts/past', third!)
  if (id) await control(`${url}/_control/payouts/${id}/fail`, {})
}

async function control(url: string, body: object): Promise<{ id?: string }> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`The simulator responded with ${response.status}.`)
  return (await response.json()) as { id?: string }
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
