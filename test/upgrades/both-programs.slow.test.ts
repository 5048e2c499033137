// The first program of this schema and this one side by side under charges, refunds, reads, records that are written, imports, webhooks, a
// sync, credits, caps, a closed month and an alert, then the first one alone again: no request fails, nothing is charged, refunded or told
// twice or lost, every counter is exact, and the sync misses nothing.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { Tundish } from '../../clients/js/src/client.ts'
import type * as Demo from '../../src/cli/demo/records.ts'
import { freePort, PROGRAM_ENV } from '../support/cli.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freshDatabase, runStatement } from '../support/postgres.ts'
import { startReceiver } from '../support/receiver.ts'
import { setNoon, until } from '../support/time.ts'
import { titled } from '../support/titled.ts'
import { awaitAlert, CUSTOMER, useSideBySide } from './side-by-side.ts'

const ROOT = join(import.meta.dirname, '../..')
const CUSTOMERS = 6
const BESIDE_MS = 8000
const ALONE_MS = 4000
// Between two requests of a client: there are many of each kind, and time for what else the programs do.
const PAUSE_MS = 60
const folder = temporaryFolder()
const server = await freshDatabase()
const receiver = await startReceiver()
const database = `tundish_beside_${process.pid}`
const children: ChildProcess[] = []
let load: ReturnType<typeof openLoad> | undefined
after(async () => {
  for (const child of children) child.kill('SIGKILL')
  await load?.stop()
  await receiver.close()
  await runStatement(server.url, `drop database if exists ${database} with (force)`)
  await server.drop()
})

/** A checkout of the commit that begins the schema of 1.0; undefined without the history. */
const OLD = (() => {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, maxBuffer: 1 << 30 })
    const commit = git('log', '--diff-filter=A', '--format=%H', '-1', '--', 'migrations/0001_tenants.sql')
      .toString()
      .trim()
    if (commit === '') return undefined
    const old = join(folder, 'old')
    mkdirSync(old)
    execFileSync('tar', ['x', '-C', old], {
      input: git('archive', commit, 'src', 'migrations', 'clients', 'package.json', 'docs'),
    })
    symlinkSync(join(ROOT, 'node_modules'), join(old, 'node_modules'))
    return old
  } catch {
    return undefined
  }
})()
const skip = OLD ? undefined : 'the history of the repository is not there'

test(titled('old and new program at the same time, then the old one alone', skip), {
  skip,
  timeout: 600_000,
}, async () => {
  await runStatement(server.url, `create database ${database} template template0`)
  const url = Object.assign(new URL(server.url), { pathname: `/${database}` }).href
  // A cap of a day is reached, and an alert is about the day before.
  await setNoon(url)
  const simulatorPort = await freePort()
  const env = {
    ...PROGRAM_ENV,
    DATABASE_URL: url,
    DATA_DIR: join(folder, 'data'),
    MASTER_KEY: randomBytes(32).toString('base64'),
    SIMULATOR_URL: `http://127.0.0.1:${simulatorPort}`,
    RATE_LIMIT: '0',
    WEBHOOK_ALLOW_PRIVATE: 'true',
  }
  mkdirSync(env.DATA_DIR, { recursive: true })
  start(ROOT, env, 'simulator', '--port', String(simulatorPort))
  const old = (...args: string[]) => command(OLD!, env, ...args)
  const { secret_key: organizationKey } = JSON.parse(await old('org', 'create', 'acme', '--json'))
  await old('org', 'set', 'acme', '--one-off-charge', 'on')
  const { secret_key: projectKey } = JSON.parse(await old('project', 'create', 'shop', '--org', 'acme', '--json'))
  await old('import', '--project', 'shop', await writeRecords())
  await old('webhook', 'create', '--project', 'shop', '--url', receiver.url)

  const first = await serve(OLD!, env)
  const targets = [first.url]
  load = openLoad(targets, organizationKey, projectKey)
  await sleep(1500)
  const second = await serve(ROOT, env)
  targets.push(second.url)
  await Promise.all([sleep(BESIDE_MS), ...[OLD!, ROOT].map((root, n) => importBeside(root, env, n))])
  const present = (...args: string[]) => command(ROOT, env, ...args)
  const orders = await useSideBySide({
    ...{ old: first.url, new: second.url, command: present, organizationKey, projectKey },
    importByOld: (lines) => old('import', '--project', 'shop', writeLines('late.ndjson', lines)),
  })
  await awaitAlert(present)
  targets.pop()
  // Requests on their way to it are finished.
  await load.idle()
  await second.stop()
  await sleep(ALONE_MS)
  const { failures, keys, refunds, written } = await load.stop()
  for (const order of orders) keys.add(order)

  assert.deepEqual(failures, [])
  assert.ok(keys.size > 50, `${keys.size} charges`)
  const ledger = (await (await fetch(`${env.SIMULATOR_URL}/ledger`)).json()) as { reference: string; type: string }[]
  const charges = ledger.filter(({ type }) => type === 'charge').map(({ reference }) => reference)
  assert.equal(new Set(charges).size, charges.length, 'charged twice')
  assert.deepEqual(charges.toSorted(), [...keys].toSorted())
  assert.equal(ledger.length - charges.length, refunds.size)
  await assertTold(url, { 'charge.succeeded': keys.size, 'refund.succeeded': refunds.size })
  await sleep(1200)
  await load.sync()
  const tundish = new Tundish({ url: first.url, projectKey })
  let profiles = 0
  for await (const { id, updated_at, country } of tundish.profiles.list({ limit: 500 })) {
    assert.deepEqual(load.copy.get(id), { updated_at, country }, id)
    profiles += 1
  }
  assert.equal(load.copy.size, profiles)
  assert.ok(written > 20, `${written} records`)
  await first.stop()
  // As the upgrade from this program asks: it has computed days again without what it does not know.
  await present('figures', 'rebuild', '--project', 'shop')
  const { findings } = JSON.parse(await findingsOf(env)) as { findings: Record<string, string>[] }
  assert.deepEqual(
    findings.filter(({ level }) => level === 'failed'),
    [],
  )
})

const MAIN = 'src/main.ts'
const argsOf = (root: string, args: string[]) => ['--disable-warning=ExperimentalWarning', join(root, MAIN), ...args]

/** Runs a command; without blocking this process, whose receiver of webhooks would else be too slow and get them twice. */
async function command(root: string, env: Record<string, string>, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, argsOf(root, args), { env, timeout: 120_000 })).stdout
}

/** The output of the doctor, which fails if something is wrong. */
const findingsOf = (env: Record<string, string>): Promise<string> =>
  command(ROOT, env, 'doctor', '--json').catch((error) => String(error.stdout))

function start(root: string, env: Record<string, string>, ...args: string[]): ChildProcess {
  const child = spawn(process.execPath, argsOf(root, args), { env, stdio: ['ignore', 'ignore', 'inherit'] })
  children.push(child)
  return child
}

async function serve(root: string, env: Record<string, string>) {
  const port = await freePort()
  const adminPort = await freePort()
  const child = start(root, { ...env, PORT: String(port), ADMIN_PORT: String(adminPort), LOG_LEVEL: 'error' }, 'serve')
  const url = `http://127.0.0.1:${port}`
  while (!(await fetch(`${url}/health/ready`).catch(() => undefined))?.ok) {
    assert.equal(child.exitCode, null, 'the server ended')
    await sleep(50)
  }
  return {
    url,
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      assert.deepEqual(await ended, [0, null])
    },
  }
}

/** Imports records that the other program imports too, and changes a setting, with an entry in the audit log. */
async function importBeside(root: string, env: Record<string, string>, n: number): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    const lines = Array.from({ length: 200 }, (_, k) => {
      const data = { id: `imported-${k + turn * 50}`, created_at: '2026-01-02T03:04:05Z', country: ['DE', 'FR'][n] }
      return JSON.stringify({ record: 'profile', data })
    })
    const file = join(folder, `imported-${n}.ndjson`)
    writeFileSync(file, lines.join('\n'))
    for (const words of [
      ['import', '--project', 'shop', file],
      ['org', 'set', 'acme', '--one-off-charge', 'on'],
    ])
      assert.deepEqual(await once(start(root, env, ...words), 'exit'), [0, null], words[0])
  }
}

/** Every event has come once, and there are as many of these kinds. */
async function assertTold(url: string, kinds: Record<string, number>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const rows = async (text: string) => (await client.query(text)).rows
  try {
    const left = `select from events where pending union all select from webhook_deliveries where status = 'pending'`
    await until('every delivery', async () => (await rows(left)).length === 0)
    const ids = (await rows('select id::text from events')).map(({ id }) => id)
    assert.deepEqual(receiver.arrivals.map(({ headers }) => headers['webhook-id']).toSorted(), ids.toSorted())
    const told = await rows(
      `select type, count(*)::int as n from events where type in ('charge.succeeded', 'refund.succeeded') group by 1`,
    )
    assert.deepEqual(Object.fromEntries(told.map(({ type, n }) => [type, n])), kinds)
  } finally {
    await client.end()
  }
}

/** Some people of the first program's demo, and customers with a card. */
async function writeRecords(): Promise<string> {
  const { demoRecords } = (await import(join(OLD!, 'src/cli/demo/records.ts'))) as typeof Demo
  const lines: object[] = []
  for (const line of demoRecords(Date.now() - 2 * 86_400_000)) {
    if (line.record === 'customer' || line.record === 'payment') continue
    if (lines.length > 1500 && line.record === 'profile') break
    lines.push(line)
  }
  for (let n = 0; n <= CUSTOMERS; n += 1) {
    const ids = { order_id: uuid(n), trx_id: uuid(100 + n), trx_created_at: '2026-01-02T03:04:05Z' }
    const card = { psp: 'simulator', psp_merchant_id: 'main', payment_method_token: 'pm_card_visa' }
    const paid = { amount: 1, currency_code: 'USD', status: 'succeeded', psp_transaction_type: 'sale' }
    const external_id = n < CUSTOMERS ? `customer-${n}` : CUSTOMER
    lines.push({ record: 'payment', data: { external_id, ...ids, ...card, ...paid } })
  }
  lines.push({ record: 'merchant_account', data: { psp: 'simulator', psp_merchant_id: 'main', currencies: [] } })
  return writeLines('records.ndjson', lines)
}

function writeLines(name: string, lines: object[]): string {
  const file = join(folder, name)
  writeFileSync(file, lines.map((line) => JSON.stringify(line)).join('\n'))
  return file
}

const uuid = (n: number) => `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** Charges, reads, writes and syncs against the targets in turn, until it is stopped. */
function openLoad(targets: string[], organizationKey: string, projectKey: string) {
  const failures: string[] = []
  const keys = new Set<string>()
  const refunds = new Set<string>()
  const copy = new Map<string, { updated_at: string; country: string | null }>()
  let since: string | undefined
  let written = 0
  let stopped = false
  let turn = 0
  const underWay = new Set<Promise<unknown>>()
  const target = () => targets[turn++ % targets.length]!

  async function post(path: string, header: Record<string, string>, body: object) {
    const response = await fetch(`${target()}${path}`, {
      method: 'POST',
      headers: { ...header, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    const json = (await response.json()) as Record<string, unknown>
    if (!response.ok) failures.push(`${path}: ${response.status} ${JSON.stringify(json)}`)
    return json
  }

  async function charge(customer: number, n: number): Promise<void> {
    const body = {
      external_id: `customer-${customer}`,
      amount: '1.50',
      currency_code: 'USD',
      idempotency_key: `key-${n}`,
    }
    const header = { 'service-secret-key': organizationKey }
    const one = await post('/acme/v1/payment/one_off_charge', header, body)
    // The same key at the next program.
    const other = await post('/acme/v1/payment/one_off_charge', header, body)
    if (one.checkout_status !== 'succeeded' || other.order_id !== one.order_id || other.idempotent_replay !== true)
      failures.push(JSON.stringify([one, other]))
    keys.add(String(one.order_id))
    if (n % 5 > 0) return
    const refund = {
      external_id: body.external_id,
      order_id: one.order_id,
      amount: '0.50',
      idempotency_key: `refund-${n}`,
    }
    const [first, second] = await Promise.all([0, 1].map(() => post('/acme/v1/payment/refund', header, refund)))
    if (first!.refund_id !== second!.refund_id) failures.push(JSON.stringify([first, second]))
    refunds.add(String(first!.refund_id))
  }

  async function sync(): Promise<void> {
    const tundish = new Tundish({ url: target(), projectKey })
    for await (const change of tundish.changes({ since })) {
      if (change.horizon !== undefined) since = change.horizon
      else if (change.list === 'profiles') {
        const { id, updated_at, country } = change.item
        copy.set(id, { updated_at, country })
      }
    }
  }

  async function read(): Promise<void> {
    const list = await fetch(`${target()}/public/v1/subscriptions?limit=50`, {
      headers: { 'Service-Secret': projectKey },
    })
    if (!list.ok) failures.push(`subscriptions: ${list.status}`)
    await list.arrayBuffer()
  }

  async function write(n: number): Promise<void> {
    const country = n % 2 === 0 ? 'DE' : 'FR'
    const data = { id: `written-${n % 40}`, created_at: '2026-01-02T03:04:05Z', country }
    await post('/public/v1/records', { 'Service-Secret': projectKey }, { records: [{ record: 'profile', data }] })
    written += 1
  }

  const repeated = async (work: (n: number) => Promise<void>, pauseMs: number) => {
    for (let n = 0; !stopped; n += 1) {
      const one = work(n).catch((error) => void failures.push(String(error)))
      underWay.add(one)
      await one
      underWay.delete(one)
      await sleep(pauseMs)
    }
  }
  const all = [
    ...Array.from({ length: CUSTOMERS }, (_, customer) =>
      repeated((n) => charge(customer, customer * 1_000_000 + n), PAUSE_MS),
    ),
    repeated(read, PAUSE_MS),
    repeated(write, PAUSE_MS),
    repeated(sync, 300),
  ]
  return {
    copy,
    sync,
    idle: () => Promise.all(underWay),
    async stop() {
      stopped = true
      await Promise.all(all)
      return { failures, keys, refunds, written }
    },
  }
}
