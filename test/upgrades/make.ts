// Makes the file of a version that later programs are tried on: its schema with data. In the checkout of that version, with an empty
// database on PostgreSQL 15 and pg_dump of it on the PATH:
//   DATABASE_URL=postgresql://… bin/pinned-node --dev test/upgrades/make.ts
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { demoRecords } from '../../src/cli/demo/records.ts'
import { freePort, PROGRAM_ENV, spawnTundish, tundish } from '../support/cli.ts'
import { type Kept, MASTER_KEY } from './kept.ts'

const VERSION = '1.0.0'
const PEOPLE = 12
const url = process.env['DATABASE_URL']!
const folder = mkdtempSync(join(tmpdir(), 'tundish-upgrades-'))
const port = await freePort()
const adminPort = await freePort()
const simulatorPort = await freePort()
const env = {
  ...PROGRAM_ENV,
  DATABASE_URL: url,
  DATA_DIR: folder,
  MASTER_KEY,
  PORT: String(port),
  ADMIN_PORT: String(adminPort),
  SIMULATOR_URL: `http://127.0.0.1:${simulatorPort}`,
  WEBHOOK_ALLOW_PRIVATE: 'true',
}

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await tundish(args, env)
  if (code !== 0) throw new Error(`tundish ${args.join(' ')}: ${stderr}`)
  return stdout
}

function start(...args: string[]) {
  const child = spawnTundish(args, env, 'ignore')
  return async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
}

async function call(path: string, header: Record<string, string>, body?: object): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { ...header, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

const stopSimulator = start('simulator', '--port', String(simulatorPort))
const { secret_key: organizationKey } = JSON.parse(await run('org', 'create', 'acme', '--json'))
await run('org', 'set', 'acme', '--one-off-charge', 'on')
const { secret_key: projectKey } = JSON.parse(await run('project', 'create', 'shop', '--org', 'acme', '--json'))
await run('webhook', 'create', '--project', 'shop', '--url', 'http://127.0.0.1:9/events')

const lines: string[] = []
let people = 0
let isTried = false
for (const { record, data } of demoRecords(Date.now() - 2 * 86_400_000)) {
  if (record === 'profile') people += 1
  // The customers to try charges with come last.
  isTried ||= record === 'customer' && (data as { external_id?: string }).external_id === 'ada'
  if (people <= PEOPLE || isTried) lines.push(JSON.stringify({ record, data }))
}
const file = join(folder, 'records.ndjson')
writeFileSync(file, lines.join('\n'))
await run('import', '--project', 'shop', '--skip-bad-lines', file)

const stop = start('serve')
while (!(await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined))?.ok)
  await new Promise((resolve) => setTimeout(resolve, 100))
const billing = { 'service-secret-key': organizationKey }
const charge = { external_id: 'ada', amount: '9.99', currency_code: 'USD', idempotency_key: 'before the upgrade' }
const { order_id: orderId } = (await call('/acme/v1/payment/one_off_charge', billing, charge)) as { order_id: string }
const partial = { external_id: 'ada', order_id: orderId, amount: '1.99', idempotency_key: 'partial' }
await call('/acme/v1/payment/refund', billing, partial)
const data = { 'Service-Secret': projectKey }
const { data: profiles } = (await call('/public/v1/profiles', data)) as { data: { id: string }[] }
await call('/public/v1/profiles/anonymize', data, { profile_ids: [profiles[0]!.id] })
const totals: Kept['totals'] = {}
for (const list of ['funnels', 'products', 'profiles', 'sessions', 'subscriptions', 'transactions']) {
  const { pagination } = (await call(`/public/v1/${list}?limit=1`, data)) as { pagination: { total: number } }
  totals[list] = pagination.total
}
const report = { last_transaction_date: '2000-01-01T00:00:00Z', limit: 500 }
const { transactions } = (await call('/acme/v1/transaction_report', billing, report)) as { transactions: object[] }
await stop()
await stopSimulator()

const kept: Kept = {
  organizationKey,
  projectKey,
  orderId,
  charge,
  erased: profiles[0]!.id,
  totals,
  rows: transactions.length,
}
const sql = execFileSync('pg_dump', ['--no-owner', '--no-acl', '--rows-per-insert=200', url], { maxBuffer: 1 << 28 })
  .toString()
  .split('\n')
  // Commands of psql, not of SQL.
  .filter((line) => !line.startsWith('\\'))
  .join('\n')
writeFileSync(join(import.meta.dirname, `${VERSION}.sql.gz`), gzipSync(sql, { level: 9 }))
writeFileSync(join(import.meta.dirname, `${VERSION}.json`), `${JSON.stringify(kept, null, 2)}\n`)
rmSync(folder, { recursive: true, force: true })
