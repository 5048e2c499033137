// Sets up a measurement of charges: a database that waits for the disk, a server, the simulator, customers with saved cards.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createOrganization, createProject } from '../src/core/tenants/tenants.ts'
import type { Db } from '../src/lib/pg/db.ts'
import type { Tenant } from './charges-clients.ts'
import { ORGANIZATION } from './generate.ts'
import { type Closers, openRig, type Program, type Rig, startLogged, startProgram } from './rig.ts'

export const CUSTOMERS = 5000
const CHARGES_BEFORE = 5
const LOG_MIB = 900
/** Tokens of saved cards, by when the provider responds. */
export const CARDS = { 'at once': 'pm_card_visa', 'after 50 ms': 'sim_slow_50ms' }

/** Milliseconds by trace. */
type Times = Map<string, number>

export interface ChargesRig extends Rig {
  ours: Program
  organizations: Tenant[]
  simulatorUrl: string
  /** The time that the simulator took for each of these charges. */
  providerTimes(traces: string[]): Promise<Times>
  /** The time that the server took for each of these requests, from its log. */
  serverTimes(traces: string[]): Promise<Times>
  /** The times that the disk took for the probe's pages since the last call. */
  diskTimes(): Promise<number[]>
}

/** With fsync and the background work, because the disk is a large part of the cost of a charge. */
export async function openChargesRig(
  { workers, organizations: count }: { workers: number; organizations: number },
  say: (text: string) => void,
  env: Record<string, string> = {},
): Promise<ChargesRig> {
  const rig = await openRig({ say, durable: true })
  try {
    const organizations = await makeOrganizations(rig, count)
    await makeCustomers(rig.app.db, organizations)
    const simulator = await startTimedSimulator(join(rig.folder, 'simulator.ndjson'), rig.closers)
    const several = workers > 1 ? ['--workers', String(workers)] : []
    const log = join(rig.folder, 'server.log')
    const ours = await startLogged(
      ['serve', ...several],
      { ...rig.env, SIMULATOR_URL: simulator.url, ...env },
      rig.closers,
      log,
    )
    const serverTimes = await timesOfLog(log, rig.closers)
    const diskTimes = await startDiskProbe(join(rig.folder, 'probe'), rig.closers)
    return {
      ...rig,
      ours,
      organizations,
      simulatorUrl: simulator.url,
      providerTimes: simulator.times,
      serverTimes,
      diskTimes,
    }
  } catch (error) {
    await rig.close()
    throw error
  }
}

/** Starts the plain server with its own simulator, so that its charges are not compared with our orders. */
export async function startPlainCharges({ folder, databaseUrl, closers }: Rig): Promise<Program> {
  const simulator = await startTimedSimulator(join(folder, 'plain-simulator.ndjson'), closers)
  const env = { DATABASE_URL: databaseUrl, SIMULATOR_URL: simulator.url }
  return startProgram([], env, closers, 'references/charges.ts')
}

/** The first exists already. Each has one project of the same name. */
async function makeOrganizations({ app, organizationKey }: Rig, count: number): Promise<Tenant[]> {
  const all: Tenant[] = [{ id: ORGANIZATION, key: organizationKey }]
  while (all.length < count) {
    const id = `${ORGANIZATION}-${all.length}`
    const { secret_key: key } = await createOrganization(app.db, app.seal, { id })
    await createProject(app.db, app.seal, { id, organization: id })
    all.push({ id, key })
  }
  return all
}

async function makeCustomers(db: Db, organizations: Tenant[]): Promise<void> {
  const people = `from generate_series(1, ${CUSTOMERS}) n, unnest($1::text[]) with ordinality as card (token, k),
    lateral (select ($2::text[])[1 + (n - 1) % cardinality($2::text[])] as id) tenant`
  const given = [Object.values(CARDS), organizations.map(({ id }) => id)]
  await db.query('update organizations set one_off_charge_enabled = true')
  await db.query(
    `insert into profiles (project_id, id, created_at, updated_at)
     select tenant.id, 'pro_' || k || '_' || n, db_clock(), db_clock() ${people}`,
    given,
  )
  await db.query(
    `insert into customers (organization_id, external_id, project_id, profile_id, created_at, updated_at)
     select tenant.id, token || ' ' || n, tenant.id, 'pro_' || k || '_' || n, db_clock(), db_clock() ${people}`,
    given,
  )
  await db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
       amount, currency_code, status, psp, psp_merchant_id, psp_transaction_type, payment_method_token)
     select tenant.id, token || ' ' || n, true, db_clock(), gen_random_uuid(), gen_random_uuid(),
       timestamptz '2026-01-01' + (n * 2 + k) * interval '1 second', 10, 'USD', 'succeeded', 'simulator', 'main', 'sale', token
     ${people}`,
    given,
  )
  await makeHistory(db)
  await makeLogFiles(db)
}

/**
 * Creates some charges of the day before for each customer. Without them the first statements would be planned for empty
 * tables, and those plans stay until PostgreSQL analyzes the tables, up to a minute later.
 */
async function makeHistory(db: Db): Promise<void> {
  await db.query(
    `insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, status,
       psp, psp_merchant_id, payment_method_token, source_trx_id, provider_key, created_at, settled_at)
     select c.organization_id, gen_random_uuid(), c.external_id, c.project_id, 'old ' || n, 10, 'USD', 'succeeded',
       'simulator', 'main', 'gone', gen_random_uuid(), gen_random_uuid()::text, t.at, t.at
     from customers c, generate_series(1, ${CHARGES_BEFORE}) n, (select db_clock() - interval '1 day' as at) t`,
  )
  await db.query(
    `insert into consumables (organization_id, consumable_id, order_id, external_id, amount, currency_code, granted_at,
       updated_at)
     select organization_id, gen_random_uuid(), order_id, external_id, amount, currency_code, settled_at, settled_at
     from orders`,
  )
  await db.query(
    `insert into transactions (project_id, id, created_at, updated_at, profile_id, currency, price, price_usd, sandbox)
     select o.project_id, 'trn_' || o.order_id, o.settled_at, o.settled_at, c.profile_id, o.currency_code, 1000, 1000, true
     from orders o join customers c using (organization_id, external_id)`,
  )
  await db.query(
    `insert into events (project_id, id, type, object_id, sequence, created_at, data, pending)
     select project_id, gen_random_uuid(), 'charge.succeeded', order_id, 1, settled_at, '{}', false from orders`,
  )
  await db.query(
    `insert into order_log (organization_id, order_id, call, outcome, duration_ms, at)
     select organization_id, order_id, 'charge', 'succeeded', 1, settled_at from orders`,
  )
  await db.query('vacuum analyze')
}

/**
 * Creates the files of the write-ahead log in advance, as after some days of use. A new database creates each file when it is
 * needed, and then every commit waits for 16 MiB of zeros.
 */
async function makeLogFiles(db: Db): Promise<void> {
  await db.query("alter system set min_wal_size = '1GB'")
  await db.query('select pg_reload_conf(), pg_sleep(1)')
  for (let mib = 0; mib < LOG_MIB; mib += 50) {
    await db.query(
      "select pg_logical_emit_message(false, 'bench', repeat('x', 1024 * 1024)) from generate_series(1, 50)",
    )
  }
  // The first makes the files reusable, the second renames them for use.
  await db.query('checkpoint')
  await db.query('checkpoint')
}

async function startTimedSimulator(ledger: string, closers: Closers) {
  const { first, ask } = await startHelper<{ url: string }, { times: [string, number][] }>(
    'timed-simulator.ts',
    ledger,
    closers,
  )
  const known: Times = new Map()
  const times = awaitAll(known, async () => {
    for (const [trace, ms] of (await ask()).times) known.set(trace, ms)
  })
  return { url: first.url, times }
}

async function startDiskProbe(file: string, closers: Closers): Promise<() => Promise<number[]>> {
  const { ask } = await startHelper<object, { times: number[] }>('disk-probe.ts', file, closers)
  return async () => (await ask()).times
}

/**
 * Starts a helper process with the V8 settings of this one. Its first message says that it is ready; each call of `ask` returns
 * its next one.
 */
export async function startHelper<First, Response>(program: string, argument: string, closers: Closers) {
  const child = fork(new URL(program, import.meta.url), [argument], {
    execArgv: [...process.execArgv, '--disable-warning=ExperimentalWarning'],
  })
  closers.push(async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  const nextMessage = async <T>() => ((await once(child, 'message')) as [T])[0]
  const first = await nextMessage<First>()
  const ask = () => {
    child.send('times')
    return nextMessage<Response>()
  }
  return { first, ask }
}

/** Reads the durations from a server's log while it is written. */
async function timesOfLog(logFile: string, closers: Closers): Promise<ChargesRig['serverTimes']> {
  const known: Times = new Map()
  const log = await open(logFile)
  closers.push(() => log.close())
  const piece = Buffer.alloc(1024 * 1024)
  let rest = ''
  let place = 0
  return awaitAll(known, async () => {
    const { bytesRead } = await log.read(piece, 0, piece.length, place)
    if (bytesRead === 0) return sleep(50)
    place += bytesRead
    const lines = (rest + piece.toString('utf8', 0, bytesRead)).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const [, trace, ms] = /"trace_id":"([0-9a-f]{32})".*"duration_ms":([0-9.]+)/.exec(line) ?? []
      if (trace) known.set(trace, Number(ms))
    }
  })
}

// The last lines of a log are written with a delay.
const MAX_DELAY_MS = 3000

/** Calls `update` until the times of all traces are known, for 3 s at most. */
function awaitAll(known: Times, update: () => Promise<void>): (traces: string[]) => Promise<Times> {
  return async (traces) => {
    const until = performance.now() + MAX_DELAY_MS
    while (traces.some((trace) => !known.has(trace)) && performance.now() < until) await update()
    return known
  }
}
