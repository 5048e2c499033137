// The demo's merchant account at Primer: charges go through the Primer adapter to a simulator with Primer's API.
import { randomUUID } from 'node:crypto'
import type { App } from '../../app.ts'
import { importPayments } from '../../data/ingest/primer/run.ts'
import { emptyTally } from '../../data/ingest/stripe/tally.ts'
import type { Db } from '../../lib/pg/db.ts'
import { PRIMER_SIMULATOR_KEY } from '../../payments/providers/adapters.ts'
import { connectAccount } from '../../payments/providers/connect.ts'
import { PrimerProvider } from '../../payments/providers/primer/primer.ts'

/** The customer whose card is saved there. The first processor declines it, and the second one approves it. */
const CUSTOMER = 'hedy'
const TOKEN = `tok_fallback~${CUSTOMER}`

const ID = 'demo'
const MERCHANT = 'primer-demo'
const KEY = `${PRIMER_SIMULATOR_KEY}demo-0001`
const HOUR_MS = 3_600_000

/**
 * Sells something to a customer at the simulator, as a checkout does, which saves the card; connects the account, which notifies the
 * server at `url`; and imports it, once. Without a simulator nothing is done.
 */
export async function addPrimerAccount(app: App, url: string): Promise<void> {
  const { db, seal, clock, config, simulatorUrls } = app
  const simulatorUrl = simulatorUrls['primer']?.()
  if (simulatorUrl === undefined || (await isThere(db))) return
  await buy(simulatorUrl)
  const webhookSecret = randomUUID()
  const eventsUrl = `${url}/${ID}/v1/providers/primer/${MERCHANT}/events`
  await post(`${simulatorUrl}/_control/webhook`, { url: eventsUrl, secret: webhookSecret })
  const { stripeApiUrl, apiUrls, providerTimeoutMs: deadlineMs } = config
  const name = { organizationId: ID, psp: 'primer', merchantId: MERCHANT }
  await connectAccount({ db, seal, clock, stripeApiUrl, simulatorUrls, apiUrls, deadlineMs }, name, {
    secretKey: KEY,
    webhookSecrets: [webhookSecret],
    isSandbox: true,
  })
  await importAccount(app)
}

async function isThere(db: Db): Promise<boolean> {
  const rows = await db.query('select 1 from customers where organization_id = $1 and external_id = $2', [ID, CUSTOMER])
  return rows.length > 0
}

async function buy(simulatorUrl: string): Promise<void> {
  const body = {
    ...{ orderId: 'checkout-1', amount: 1999, currencyCode: 'USD', customerId: CUSTOMER, paymentMethodToken: TOKEN },
    paymentMethod: { paymentType: 'FIRST_PAYMENT' },
  }
  // The same key at a start that follows an interrupted one buys nothing.
  await post(`${simulatorUrl}/payments`, body, [409])
}

async function importAccount(app: App): Promise<void> {
  const provider = await app.providers.of(ID, 'primer', MERCHANT)
  if (!(provider instanceof PrimerProvider)) throw new Error("Bug: the demo's account at Primer is not connected")
  const target = { organizationId: ID, projectId: ID, merchantId: MERCHANT, isSandbox: true }
  const reading = { app, provider, target, tally: emptyTally(), signal: new AbortController().signal, isDry: false }
  const onRejected = (line: string) => app.log.error({ line }, 'A payment of the demo was not imported.')
  const [since, until] = [-HOUR_MS, HOUR_MS].map((ms) => new Date(Date.now() + ms).toISOString())
  await importPayments({ ...reading, onProgress() {}, onRejected, async save() {} }, { since: since!, until: until! })
}

async function post(url: string, body: object, alsoFine: number[] = []): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    ...{ 'x-api-key': KEY, 'x-api-version': '2.4', 'x-idempotency-key': 'demo-checkout-1' },
  }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok && !alsoFine.includes(response.status))
    throw new Error(`The simulator responded with ${response.status}.`)
}
