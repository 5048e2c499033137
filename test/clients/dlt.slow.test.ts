// The dlt source with DuckDB: everything, then nothing, then an erasure, then commits that the server lost. It needs a Python with dlt: PYTHON names one.
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { EXPORT_KINDS } from '../../src/data/public/export-kinds.ts'
import { BASICS, insert } from '../support/data.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type Json, startTestServer } from '../support/server.ts'
import { titled } from '../support/titled.ts'

const PYTHON = process.env['PYTHON'] ?? 'python3'
const missing = spawnSync(PYTHON, ['-c', 'import dlt, duckdb, httpx, standardwebhooks']).status !== 0
const CLIENTS = join(import.meta.dirname, '../../clients')

const server = await startTestServer()
const project = await server.project()
const folder = temporaryFolder()
const refers = { profile_id: 'profile', session_id: 'session' }
await insert(server.db, project, {
  ...BASICS,
  profiles: [{ id: 'profile', email: 'ada@example.com' }, { id: 'zoe' }],
  replies: [{ session_id: 'session', value: ['sleep', 'cal\u2028m'] }],
  subscriptions: [{ id: 'subscription', product_id: 'product', price: 999_999_999_999, ...refers }],
  transactions: [{ id: 'transaction', subscription_id: 'subscription', ...refers }],
  customers: [{ external_id: 'customer', profile_id: 'profile' }],
  credit_units: [{ unit: 'tokens' }],
  credit_accounts: [{ external_id: 'customer', granted: '1000000000000.000001' }],
  credit_entries: [{ external_id: 'customer', amount: '1000000000000.000001', metadata: { rate: 0.5 } }],
})
await server.db.query(`update profiles set integrations = '{"id":[100000000000000000000]}' where id = 'zoe'`)
after(() => server.stop())

async function load(...more: string[]): Promise<Json> {
  // The horizon may lag by a second.
  await sleep(1100)
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    PYTHONPATH: [join(CLIENTS, 'dlt'), join(CLIENTS, 'python')].join(':'),
    PYTHONDONTWRITEBYTECODE: '1',
    URL: server.url,
    KEY: project.key,
    RUNTIME__DLTHUB_TELEMETRY: 'false',
  }
  const script = join(import.meta.dirname, 'dlt-load.py')
  const { stdout } = await promisify(execFile)(PYTHON, [script, folder, ...more], { env, timeout: 300_000 })
  return JSON.parse(stdout.trim().split('\n').at(-1)!)
}

test('the dlt source has a table for every kind of record', () => {
  const source = readFileSync(join(CLIENTS, 'dlt/tundish_dlt/__init__.py'), 'utf8')
  const [, tables] = /^TABLES = \{$(.*?)^\}$/ms.exec(source)!
  const kinds = [...tables!.matchAll(/^ {4}"(\w+)": \("(\w+)", "(\w+)"\),$/gm)].map(([, kind]) => kind)
  assert.deepEqual(
    kinds,
    EXPORT_KINDS.map(({ name }) => name),
  )
})

const title = 'the dlt source: everything, then nothing, then an erasure, then commits that the server lost'
test(titled(title, missing ? `${PYTHON} has no dlt with duckdb, httpx and standardwebhooks` : undefined), {
  skip: missing,
}, async () => {
  const first = await load()
  assert.deepEqual(first.profiles, [
    ['profile', 'ada@example.com'],
    ['zoe', null],
  ])
  assert.match(first.integrations, /^\{"id":\[1e\+?20\]\}$/)
  assert.deepEqual(first.subscriptions, [['subscription', 999_999_999_999, 'ada@example.com']])
  assert.deepEqual(first.transactions, [['transaction', 'subscription']])
  assert.deepEqual(first.credits, [['profile', '1000000000000.000001', '1000000000000.000001', '{"rate":0.5}']])
  assert.deepEqual(first.replies, [['session', 'element-1', '["sleep","cal\u2028m"]']])
  assert.deepEqual(first.types, [
    ['paused_at', 'TIMESTAMP WITH TIME ZONE'],
    ['price_usd', 'BIGINT'],
    ['upgrades_to', 'VARCHAR'],
  ])
  const second = await load()
  assert.deepEqual(second.loaded, {})
  assert.deepEqual(second.profiles, first.profiles)
  await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
  const third = await load()
  assert.deepEqual(third.profiles, [
    ['profile', null],
    ['zoe', null],
  ])
  assert.deepEqual(third.subscriptions, [['subscription', 999_999_999_999, null]])
  assert.deepEqual(third.replies, [['session', 'element-1', null]])
  await server.db.query(
    `update project_clocks set void_from = now() - interval '1 hour', void_until = now() + interval '1 hour'
     where project_id = $1`,
    [project.id],
  )
  await server.db.query("delete from profiles where project_id = $1 and id = 'zoe'", [project.id])
  const { refused } = await load()
  assert.match(refused, /has lost commits since .*refresh='drop_sources'/)
  const fourth = await load('drop_sources')
  assert.deepEqual(fourth.profiles, [['profile', null]])
  assert.deepEqual(fourth.subscriptions, third.subscriptions)
  await server.db.query('update projects set created_at = db_clock() where id = $1', [project.id])
  const ofFormer = await load()
  assert.match(ofFormer.refused, /what was read before is of a former one\. Run .*refresh='drop_sources'/)
  assert.deepEqual((await load('drop_sources')).profiles, fourth.profiles)
})
