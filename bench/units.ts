// bin/bench units: the CPU time of everyday operations, one by one, with one organization and with ten thousand.
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createEndpoint } from '../src/core/events/endpoints.ts'
import { write } from '../src/core/events/outbox.ts'
import { importRecords } from '../src/data/ingest/load.ts'
import type { Db } from '../src/lib/pg/db.ts'
import { type ChargesRig, CUSTOMERS, openChargesRig } from './charges-rig.ts'
import { AMOUNT } from './charges-statements.ts'
import { ORGANIZATION, PROJECT } from './generate.ts'
import { median, type Result } from './measure.ts'
import type { Options } from './options.ts'
import { table } from './table.ts'

const ENV = { UNAUTHORIZED_RATE: '1000000', WEBHOOK_ALLOW_PRIVATE: 'true' }
const MANY_ORGANIZATIONS = 10_000
const FEW_UNITS = 200
const MANY_UNITS = 1000
const LANES = 8
const IDLE_WINDOWS = 5
const FEED_ROWS = 100
const MAX_WAIT_MS = 300_000

interface Bench {
  rig: ChargesRig
  /** Deliveries that have arrived. */
  delivered(): number
}

interface Unit {
  /** Performs this many of them. */
  run(bench: Bench, count: number): Promise<void>
  /** The CPU seconds so far of the process that performs them, if that is not the server. */
  seconds?(): number
}

const UNITS: Record<string, Unit> = {
  'a request with a wrong key': { run: (bench, count) => charges(bench, count, { key: 'secret_wrong' }, 401) },
  'a replayed charge': { run: (bench, count) => charges(bench, count, {}, 200) },
  'a webhook delivery': { run: deliveries },
  'a settled unknown': { run: unknowns },
  'an imported row, 100 a feed': {
    run: feeds,
    seconds: () => process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6,
  },
}

interface Cpu {
  server: number
  postgres: number
}

/** Measures the same units before and after the other organizations are added. */
export async function measureUnits({ quick, seconds }: Options, say: (text: string) => void): Promise<Result> {
  const rig = await openChargesRig({ workers: 1, organizations: 1 }, say, ENV)
  try {
    const bench = { rig, delivered: await startReceiver(rig) }
    const counts = [1, quick ? 100 : MANY_ORGANIZATIONS]
    const figures: Record<string, Record<string, Cpu>> = {}
    for (const organizations of counts) {
      await addOrganizations(rig.app.db, organizations)
      const idle = await idleUse(rig, seconds)
      const share = (of: number) => (of / idle.wallMs) * 100
      const beside = `${organizations.toLocaleString('en')} organizations`
      figures[beside] = { 'idle, % of a core': { server: share(idle.serverMs), postgres: share(idle.postgresMs) } }
      for (const [name, unit] of Object.entries(UNITS)) {
        say(`${name}, ${beside}…`)
        await unit.run(bench, FEW_UNITS)
        const count = quick ? FEW_UNITS : MANY_UNITS
        const spent = await used(rig, unit.seconds, () => unit.run(bench, count))
        // The background work continues during the measurement.
        const idleShare = spent.wallMs / idle.wallMs
        const server = spent.serverMs - (unit.seconds ? 0 : idle.serverMs * idleShare)
        figures[beside][name] = {
          server: server / count,
          postgres: (spent.postgresMs - idle.postgresMs * idleShare) / count,
        }
      }
    }
    show(figures)
    return { name: 'units', unit: 'units', contenders: {}, ratios: {}, figures }
  } finally {
    await rig.close()
  }
}

function show(figures: Record<string, Record<string, Cpu>>): void {
  const columns = Object.values(figures)
  const heads = Object.keys(figures).flatMap((beside) => [`server, ${beside}`, 'PostgreSQL'])
  const rows = Object.keys(columns[0]!).map((name) => [
    name,
    ...columns.flatMap((column) => [column[name]!.server.toFixed(3), column[name]!.postgres.toFixed(3)]),
  ])
  process.stdout.write(`${table(['CPU ms', ...heads], rows)}\n`)
}

async function used(rig: ChargesRig, seconds: Unit['seconds'], work: () => Promise<unknown>) {
  const now = async () =>
    [seconds ? seconds() : await rig.ours.cpuSeconds(), await rig.postgresSeconds(), performance.now() / 1000] as const
  const before = await now()
  await work()
  const after = await now()
  const [serverMs, postgresMs, wallMs] = after.map((value, n) => (value - before[n]!) * 1000)
  return { serverMs: serverMs!, postgresMs: postgresMs!, wallMs: wallMs! }
}

/** The CPU time of the idle process, after recent writes are on disk: the median, because some work runs once a minute. */
async function idleUse(rig: ChargesRig, seconds: number) {
  await rig.app.db.query('checkpoint')
  await sleep(seconds * 2000)
  const windows: Awaited<ReturnType<typeof used>>[] = []
  for (let n = 0; n < IDLE_WINDOWS; n += 1) windows.push(await used(rig, undefined, () => sleep(seconds * 2000)))
  const middle = (of: keyof (typeof windows)[number]) => median(windows.map((window) => window[of]))!
  return { serverMs: middle('serverMs'), postgresMs: middle('postgresMs'), wallMs: middle('wallMs') }
}

/** Adds organizations as in use: each with a project, a customer and an endpoint. */
async function addOrganizations(db: Db, count: number): Promise<void> {
  const each = (text: string) =>
    db.query(text.replaceAll(':n', "'other-' || n").concat(` from generate_series(2, $1::int) n`), [count])
  await each('insert into organizations (id, name) select :n, :n')
  await each('insert into organization_clocks (organization_id) select :n')
  await each('insert into projects (id, organization_id, name) select :n, :n, :n')
  await each('insert into project_clocks (project_id) select :n')
  await each(`insert into webhook_endpoints (project_id, id, url, created_at, updated_at)
    select :n, gen_random_uuid(), 'http://127.0.0.1:9/', db_clock(), db_clock()`)
  await each(`insert into customers (organization_id, external_id, project_id, created_at, updated_at)
    select :n, 'one', :n, db_clock(), db_clock()`)
  await db.query('vacuum analyze')
}

/** Creates an endpoint of the measured project, which responds at once; returns the number of deliveries so far. */
async function startReceiver({ app, closers }: ChargesRig): Promise<() => number> {
  let arrived = 0
  const server = createServer((delivery, response) => {
    arrived += 1
    delivery.resume().on('end', () => response.writeHead(204).end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  await app.db.tx((query) => createEndpoint(query, PROJECT, { url, kinds: [], enabled: true }, { allowPrivate: true }))
  return () => arrived
}

/** Repeats one charge: the first request makes it, the others get its stored outcome. */
async function charges({ rig }: Bench, count: number, { key = rig.organizationKey }, expected: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: LANES })
  const path = `/${ORGANIZATION}/v1/payment/one_off_charge`
  const body = JSON.stringify({
    external_id: 'pm_card_visa 1',
    amount: AMOUNT,
    currency_code: 'USD',
    idempotency_key: 'replayed',
  })
  const headers = { 'service-secret-key': key, 'content-type': 'application/json', 'content-length': body.length }
  const post = async () => {
    const sent = request(new URL(path, rig.ours.url), { method: 'POST', agent, headers }).end(body)
    const [response] = await once(sent, 'response')
    response.resume()
    await once(response, 'end')
    if (response.statusCode !== expected) throw new Error(`A charge has the status ${response.statusCode}.`)
  }
  await post()
  let left = count - 1
  const lane = async () => {
    while (left-- > 0) await post()
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  agent.destroy()
}

async function deliveries({ rig, delivered }: Bench, count: number): Promise<void> {
  const due = delivered() + count
  const event = (n: number) => ({
    type: 'charge.succeeded' as const,
    object_id: `order-${due}-${n}`,
    profile_id: null,
    data: {},
  })
  for (let n = 0; n < count; n += 1) await rig.app.db.tx((query) => write(query, PROJECT, [event(n)]))
  await until('Deliveries', async () => delivered() >= due)
}

/** Charges that the provider has never received: each is looked up there, refused and settled. */
async function unknowns({ rig }: Bench, count: number): Promise<void> {
  const { db } = rig.app
  await db.query(
    `insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, psp,
       psp_merchant_id, payment_method_token, source_trx_id, provider_key, created_at, next_look_at)
     select '${ORGANIZATION}', gen_random_uuid(), 'pm_card_visa ' || n, '${PROJECT}', gen_random_uuid(), 10, 'USD', 'simulator',
       'main', 'pm_card_visa', gen_random_uuid(), gen_random_uuid(), db_clock() - interval '1 day', db_clock()
     from generate_series(2, $1::int + 1) n`,
    [Math.min(count, CUSTOMERS - 1)],
  )
  await until('Unknown charges', async () => {
    const [row] = await db.query("select count(*) as n from orders where status = 'processing'")
    return row!.n === '0'
  })
}

let feed = 0

/** Imports feeds of some rows each. */
async function feeds({ rig }: Bench, count: number): Promise<void> {
  for (let n = 0; n < count; n += FEED_ROWS) {
    feed += 1
    const lines = Array.from({ length: FEED_ROWS }, (_, row) => {
      const data = { id: `fed_${feed}_${row}`, created_at: '2026-01-01T00:00:00Z', email: `${feed}.${row}@example.com` }
      return `${JSON.stringify({ record: 'profile', data })}\n`
    })
    const { written } = await importRecords(rig.app, { projectId: PROJECT }, [
      { name: 'feed', stream: () => Readable.from([Buffer.from(lines.join(''))]) },
    ])
    if (written !== FEED_ROWS) throw new Error(`${written} of ${FEED_ROWS} rows were written.`)
  }
}

async function until(what: string, done: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + MAX_WAIT_MS
  while (!(await done())) {
    if (performance.now() > endMs) throw new Error(`${what} are not done after ${MAX_WAIT_MS / 1000} s.`)
    await sleep(100)
  }
}
