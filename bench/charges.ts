// npm run bench -- charges: charges of distinct customers, beside pgbench with the same statements in the same transactions.
import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { type App, openApp, openLog } from '../src/app.ts'
import { readChargeRequest } from '../src/billing/charge-request.ts'
import type { BillingContext } from '../src/billing/context.ts'
import { oneOffCharge } from '../src/billing/one-off-charge.ts'
import { readConfig } from '../src/config.ts'
import type { Db, Query } from '../src/lib/db.ts'
import { openEmbedded } from '../src/lib/embedded.ts'
import { createOrganization, createProject } from '../src/tenants.ts'
import { repeatable } from './repeat.ts'
import { makeFolder, startProgram } from './rig.ts'
import { limit, type Recorded, type Tools } from './tools.ts'

interface Rig {
  databaseUrl: string
  key: string
  url: string
  simulatorUrl: string
  app: App
  close(): Promise<void>
}

/** What a client knows of one charge. */
interface Entry {
  orderId: string
  status: string
  ms: number
}

const ORGANIZATION = 'bench'
const CUSTOMERS = 5000
const AMOUNT = '10.50'
/** Tokens of saved cards, and the time the provider takes for them. */
const CARDS = { instant: { token: 'pm_card_visa', ms: 0 }, 'after 50 ms': { token: 'sim_slow_50ms', ms: 50 } }

/** Measures both providers, joins the clients' log with orders and ledger, and answers rows for a table. */
export async function measureCharges(tools: Tools, seconds: number, say: (text: string) => void) {
  const rig = await openRig(say)
  try {
    const log: Entry[] = []
    const results: Record<string, object> = {}
    const statements = await recordCharge(rig.app)
    await fire(rig, 'instant', 64, 2, log)
    for (const card of Object.keys(CARDS) as (keyof typeof CARDS)[]) {
      say(`Charges, a provider that answers ${card === 'instant' ? 'at once' : card}…`)
      const most = await fire(rig, card, card === 'instant' ? 32 : 128, seconds, log)
      const half = await fire(rig, card, card === 'instant' ? 32 : 128, seconds, log, most.perSecond / 2)
      results[`charge ${card}`] = {
        'per second': Math.round(most.perSecond),
        'p50 ms at half load': round(half.p50 - CARDS[card].ms),
        'p99 ms at half load': round(half.p99 - CARDS[card].ms),
      }
    }
    results.join = await join3(rig, log)
    // Last, for what pgbench writes are orders that nobody charged.
    if (tools.pgbench) {
      say('The same statements by pgbench…')
      const most = await fire(rig, 'instant', 32, seconds, log)
      const script = repeatable(statements, CUSTOMERS)
      const reference = await limit(tools.pgbench, rig.databaseUrl, [], seconds, 32, script)
      results.limit = {
        'per second': Math.round(reference.perSecond),
        'ours of it': round(most.perSecond / reference.perSecond),
      }
    }
    return results
  } finally {
    await rig.close()
  }
}

async function openRig(say: (text: string) => void): Promise<Rig> {
  const closers: (() => Promise<unknown>)[] = []
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    const folder = await makeFolder(closers)
    // With fsync: what a charge costs is to a good part what the disk costs.
    const embedded = await openEmbedded({ dataDir: folder, log: { info: () => {}, warn: say } })
    closers.push(() => embedded.close())
    const base = { DATABASE_URL: embedded.url, MASTER_KEY: randomBytes(32).toString('base64'), DATA_DIR: folder }
    const simulator = await startProgram(['simulator', '--port', '0'], base, closers)
    const env = { ...base, PORT: '0', ADMIN_PORT: '0', RATE_LIMIT: '0', SIMULATOR_URL: simulator.url }
    const app = await openApp(readConfig(env), { log: openLog('error', 2) })
    closers.push(() => app.close())
    const { secret_key: key } = await createOrganization(app.db, app.seal, { id: ORGANIZATION })
    await createProject(app.db, app.seal, { id: ORGANIZATION, organization: ORGANIZATION })
    await makeCustomers(app.db)
    const server = await startProgram(['serve'], env, closers)
    return { databaseUrl: embedded.url, key, url: server.url, simulatorUrl: simulator.url, app, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function makeCustomers(db: Db): Promise<void> {
  const people = `from generate_series(1, ${CUSTOMERS}) n, unnest($1::text[]) with ordinality as card (token, k)`
  const tokens = Object.values(CARDS).map(({ token }) => token)
  await db.query('update organizations set one_off_charge_enabled = true')
  await db.query(
    `insert into profiles (project_id, id, created_at, updated_at)
     select '${ORGANIZATION}', 'pro_' || k || '_' || n, db_clock(), db_clock() ${people}`,
    [tokens],
  )
  await db.query(
    `insert into customers (organization_id, external_id, project_id, profile_id, created_at, updated_at)
     select '${ORGANIZATION}', token || ' ' || n, '${ORGANIZATION}', 'pro_' || k || '_' || n, db_clock(), db_clock() ${people}`,
    [tokens],
  )
  await db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
       amount, currency_code, status, psp, psp_merchant_id, psp_transaction_type, payment_method_token)
     select '${ORGANIZATION}', token || ' ' || n, true, db_clock(), gen_random_uuid(), gen_random_uuid(),
       timestamptz '2026-01-01' + (n * 2 + k) * interval '1 second', 10, 'USD', 'succeeded', 'simulator', 'main', 'sale', token
     ${people}`,
    [tokens],
  )
  await db.query('analyze')
}

/** Charges over this many connections, as fast as answers come or at a steady rate; every answer goes into the log. */
async function fire(
  rig: Rig,
  card: keyof typeof CARDS,
  connections: number,
  seconds: number,
  log: Entry[],
  rate?: number,
) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const begun = performance.now()
  const until = begun + seconds * 1000
  const entries: Entry[] = []
  // Each connection has customers of its own, so that no customer has two charges at once.
  const work = Array.from({ length: connections }, async (_, worker) => {
    for (let n = 0; performance.now() < until; n += 1) {
      if (rate) {
        const due = begun + ((n * connections + worker) * 1000) / rate
        if (due >= until) break
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
      }
      const customer = 1 + ((worker + n * connections) % CUSTOMERS)
      const sent = performance.now()
      const answer = await charge(rig, agent, `${CARDS[card].token} ${customer}`)
      entries.push({ orderId: answer.order_id, status: answer.checkout_status, ms: performance.now() - sent })
    }
  })
  await Promise.all(work)
  agent.destroy()
  log.push(...entries)
  const times = entries.map(({ ms }) => ms).sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor((times.length - 1) * share)]!
  return { perSecond: entries.length / ((performance.now() - begun) / 1000), p50: at(0.5), p99: at(0.99) }
}

function charge(
  { url, key }: Rig,
  agent: Agent,
  externalId: string,
): Promise<Record<'order_id' | 'checkout_status', string>> {
  const idempotencyKey = randomBytes(12).toString('hex')
  const body = JSON.stringify({
    external_id: externalId,
    amount: AMOUNT,
    currency_code: 'USD',
    idempotency_key: idempotencyKey,
  })
  return new Promise((resolve, reject) => {
    const headers = { 'service-secret-key': key, 'content-type': 'application/json', 'content-length': body.length }
    const sending = request(
      `${url}/${ORGANIZATION}/v1/payment/one_off_charge`,
      { method: 'POST', agent, headers },
      (answer) => {
        let text = ''
        answer.on('data', (chunk) => {
          text += chunk
        })
        answer.on('end', () => (answer.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(text))))
      },
    )
    sending.on('error', reject)
    sending.end(body)
  })
}

/** Joins what the clients heard, what the orders say and what the provider did: every row must have its two others. */
async function join3({ app, simulatorUrl }: Rig, log: Entry[]) {
  const movements = (await (await fetch(`${simulatorUrl}/ledger`)).json()) as { reference: string }[]
  const orders = await app.db.query<{ order_id: string; status: string }>('select order_id, status from orders')
  const heard = new Set(log.filter(({ status }) => status === 'succeeded').map(({ orderId }) => orderId))
  const settled = new Set(orders.filter(({ status }) => status === 'succeeded').map(({ order_id }) => order_id))
  const moved = new Set(movements.map(({ reference }) => reference))
  // Two orders are not the clients': the recorded one, which is charged before.
  const wrong = [...settled].filter((id) => !moved.has(id)).length + [...heard].filter((id) => !settled.has(id)).length
  const double = movements.length - moved.size
  if (wrong + double > 0) throw new Error(`${wrong} charges do not match, ${double} are in the ledger twice.`)
  return { charges: heard.size, orders: settled.size, ledger: movements.length, mismatches: 0 }
}

/** One charge in this process over a database that remembers every statement and where its transactions begin and end. */
async function recordCharge(app: App): Promise<Recorded[]> {
  const recorded: Recorded[] = []
  const watch =
    (query: Query): Query =>
    (statement, params = []) => {
      // The note of the provider's call is written beside the charge.
      const { text } = typeof statement === 'string' ? { text: statement } : statement
      if (!text.includes('order_log')) recorded.push({ text, params })
      return query(statement, params)
    }
  const db: Db = {
    ...app.db,
    query: watch(app.db.query),
    async tx(work) {
      recorded.push({ text: 'begin', params: [] })
      const result = await app.db.tx((query) => work(watch(query)))
      recorded.push({ text: 'commit', params: [] })
      return result
    },
  }
  const context: BillingContext = { ...app, db, providerTimeoutMs: app.config.providerTimeoutMs }
  const body = { external_id: 'pm_card_visa 1', amount: AMOUNT, currency_code: 'USD', idempotency_key: 'recorded' }
  const answer = await oneOffCharge(context, ORGANIZATION, readChargeRequest(Buffer.from(JSON.stringify(body))))
  await addTypes(app.db, recorded)
  if (answer.checkout_status !== 'succeeded') throw new Error(`The recorded charge is ${answer.checkout_status}.`)
  return recorded
}

/** Asks the database what it takes the parameters for. */
async function addTypes(db: Db, statements: Recorded[]): Promise<void> {
  const { query, release } = await db.connect()
  for (const statement of statements.filter(({ params }) => params.length > 0)) {
    await query(`prepare recorded as ${statement.text}`)
    const rows = await query(
      "select unnest(parameter_types)::text as type from pg_prepared_statements where name = 'recorded'",
    )
    await query('deallocate recorded')
    statement.types = rows.map(({ type }) => type!)
  }
  release()
}

const round = (value: number) => Math.round(value * 100) / 100
