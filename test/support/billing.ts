// The billing API with its own simulator: an organization that may charge, customers with cards, requests, the ledger.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after } from 'node:test'
import { createOrganization, createProject } from '../../src/core/tenants/tenants.ts'
import { DAY_MS } from '../../src/lib/days.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import type { ServerOptions } from '../../src/server/listeners/server.ts'
import { addRow } from './data.ts'
import { type ApiResponse, type Json, startTestServer, type TestServer } from './server.ts'
import { openSimulator } from './simulators.ts'

export interface Organization {
  id: string
  projectId: string
  key: string
  projectKey: string
  /** A call to the billing API of this organization. */
  post(path: string, body: object | string): Promise<ApiResponse>
  /** A charge of 10.50 USD under a new key, unless `more` says otherwise. */
  charge(externalId: string, more?: object): Promise<ApiResponse>
  refund(externalId: string, orderId: string, more?: object): Promise<ApiResponse>
  consumables(externalId: string): Promise<Json[]>
  report(more?: object): Promise<Json[]>
  /** A customer with a successful payment; `token: null` is a card that was not saved. */
  customer(given?: CustomerGiven): Promise<string>
  /** Sets a column of the organization. */
  set(column: string, value: string | boolean): Promise<unknown>
}

interface CustomerGiven {
  token?: string | null
  profileId?: string
  psp?: string
  /** null if the payment names no merchant account. */
  merchantId?: string | null
  status?: string
  type?: string
  at?: string
}

export interface Movement {
  reference: string
  type: 'charge' | 'refund'
  psp_transaction_id: string
  amount: number
  currency_code: string
  at: string
}

export interface Billing {
  server: TestServer
  db: Db
  simulator: Awaited<ReturnType<typeof openSimulator>>
  organization(id?: string): Promise<Organization>
  /** The simulator's ledger, all of it or of one order or refund. */
  ledger(reference?: string): Promise<Movement[]>
  stop(): Promise<void>
}

/**
 * Serves billing on a fresh database, wrapped by `view`. Unknown outcomes are looked up within a second or two. The provider's
 * timeout is so long that a busy machine does not reach it, unless `env` sets a short one.
 */
export async function startBilling(
  env: Record<string, string> = {},
  options: ServerOptions = {},
  view?: (db: Db) => Db,
): Promise<Billing> {
  const simulator = await openSimulator()
  const settings = { SIMULATOR_URL: simulator.url, PROVIDER_TIMEOUT_MS: '10000', ...env }
  const server = await startTestServer(settings, options, view)
  let made = 0
  return {
    server,
    db: server.db,
    simulator,
    organization: (id = `shop-${++made}`) => makeOrganization(server, id),
    async ledger(reference) {
      const movements = (await (await fetch(`${simulator.url}/ledger`)).json()) as Movement[]
      return reference === undefined ? movements : movements.filter((one) => one.reference === reference)
    },
    async stop() {
      await server.stop()
      await simulator.cleanUp()
    },
  }
}

/** For the tests of a file: billing with an organization, stopped after the last of them. */
export async function startShop(...given: Parameters<typeof startBilling>) {
  const billing = await startBilling(...given)
  after(() => billing.stop())
  return { billing, shop: await billing.organization() }
}

async function makeOrganization(server: TestServer, id: string): Promise<Organization> {
  const { app, db } = server
  const { secret_key: key } = await createOrganization(db, app.seal, { id })
  const project = await createProject(db, app.seal, { id: `${id}-app`, organization: id })
  await db.query('update organizations set one_off_charge_enabled = true where id = $1', [id])
  const post = (path: string, body: object | string) =>
    server.call(`/${id}/v1${path}`, {
      method: 'POST',
      body,
      headers: ['service-secret-key', key, 'Content-Type', 'application/json'],
    })
  return {
    id,
    projectId: project.id,
    key,
    projectKey: project.secret_key,
    post,
    charge: (external_id, more = {}) =>
      post('/payment/one_off_charge', {
        external_id,
        amount: '10.50',
        currency_code: 'USD',
        idempotency_key: randomUUID(),
        ...more,
      }),
    refund: (external_id, order_id, more = {}) => post('/payment/refund', { external_id, order_id, ...more }),
    consumables: async (external_id) => (await post('/my_assets', { external_id })).body.consumables,
    report: async (more = {}) =>
      (await post('/transaction_report', { last_transaction_date: '2000-01-01T00:00:00Z', ...more })).body.transactions,
    customer: (given) => addCustomer(db, id, project.id, given),
    set: (column, value) => db.query(`update organizations set ${column} = $2 where id = $1`, [id, value]),
  }
}

let customers = 0

async function addCustomer(db: Db, organization: string, project: string, given: CustomerGiven = {}): Promise<string> {
  const externalId = `user-${++customers}`
  const { profileId } = given
  if (profileId !== undefined) await addRow(db, 'profiles', { project_id: project, id: profileId })
  const names = { organization_id: organization, external_id: externalId, project_id: project }
  await addRow(db, 'customers', { ...names, profile_id: profileId })
  await addPayment(db, organization, externalId, given)
  return externalId
}

/** An imported payment, of some time in 2001 unless `given` has one. */
export async function addPayment(db: Db, organization: string, externalId: string, given: CustomerGiven) {
  const { token = 'pm_card_visa', psp = 'simulator', merchantId = 'merchant-1', status = 'succeeded' } = given
  const { type = 'sale', at = new Date(Date.UTC(2001, 0) + Math.random() * 300 * DAY_MS) } = given
  const orderId = randomUUID()
  await addRow(db, 'report_transactions', {
    ...{
      organization_id: organization,
      external_id: externalId,
      imported: true,
      order_id: orderId,
      trx_created_at: at,
    },
    ...{ amount: 5, currency_code: 'USD', status, psp, psp_merchant_id: merchantId, region: 'eu' },
    ...{ psp_transaction_type: type, payment_method_token: token },
  })
  return orderId
}

/** Asserts that the response is a 400 of the billing API with this message and code. */
export function refused(response: ApiResponse, message: RegExp, code?: string): void {
  assert.equal(response.status, 400, response.text)
  assert.match(response.body.message, message)
  assert.deepEqual(response.body, { message: response.body.message, ...(code && { code }) })
}

/** Repeats the request until the charge is no longer `processing`. */
export async function settled(ask: () => Promise<ApiResponse>, waitMs = 120_000): Promise<ApiResponse> {
  const until = performance.now() + waitMs
  for (;;) {
    const response = await ask()
    const { checkout_status, refund_status } = response.body
    if (![checkout_status, refund_status].includes('processing')) return response
    if (performance.now() > until) throw new Error(`Still processing: ${response.text}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
