// The demo: what it holds, that the printed calls work, and that a second start changes nothing.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { prepareDemo } from '../../../src/cli/demo/demo.ts'
import { demoRecords } from '../../../src/cli/demo/records.ts'
import { openDb } from '../../../src/lib/pg/db.ts'
import { startDemoServer } from '../../operator/dashboard/demo-database.ts'
import { spawnTundish } from '../../support/cli.ts'
import { untilLocked } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { ok, startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const STATUSES = ['active', 'cancelled', 'created', 'expired', 'paused', 'trialing', 'unpaid']
const SCRIPTS = ['Latin', 'Cyrillic', 'Greek', 'Arabic', 'Hebrew', 'Devanagari', 'Han', 'Hiragana']

interface Data {
  [field: string]: unknown
  id: string
}

const server = await startDemoServer()
after(() => server.stop())
const text = await prepareDemo(server.app, { url: server.url, adminUrl: undefined })

describe('the demo', () => {
  const calls = () =>
    [...text.matchAll(/^curl -gs -H '(?<header>[^']+)' '(?<url>[^']+)'$/gm)].map(({ groups }) => groups!)
  const key = () => /Service-Secret +(secret_\S+)/.exec(text)![1]!
  const total = async (path: string) => (await server.api(path, { key: key() })).body.pagination.total as number

  test('has 2,000 profiles and subscriptions in all seven states', async () => {
    assert.equal(await total('/profiles?limit=1'), 2000)
    for (const status of STATUSES) {
      assert.ok((await total(`/subscriptions?limit=1&filter[status]=${status}`)) > 0, status)
    }
    for (const list of ['/funnels', '/products', '/sessions', '/transactions'])
      assert.ok((await total(`${list}?limit=1`)) > 0)
  })

  test('has names in many scripts, and funnels of every type and state', async () => {
    const rows =
      await server.db.query(`select email, (select string_agg(city, '') from sessions s where s.profile_id = p.id) as city
      from profiles p where project_id = 'demo'`)
    const written = rows.map(({ email, city }) => `${email}${city}`).join('')
    for (const script of SCRIPTS) assert.match(written, new RegExp(`\\p{Script=${script}}`, 'u'))
    const { body } = await server.api('/funnels?filter[deleted]=true', { key: key() })
    const funnels = body.data as { type: string; status: string; deleted_at: string | null }[]
    assert.ok(funnels.some(({ type }) => type === 'cancellation'))
    assert.ok(funnels.some(({ status }) => status === 'draft'))
    assert.ok(funnels.some(({ deleted_at }) => deleted_at !== null))
  })

  test('prints three calls of the data API that return data', async () => {
    assert.equal(calls().length, 3)
    for (const { header, url } of calls()) {
      const [name, value] = header!.split(': ') as [string, string]
      const body = await ok(server.call(url!.slice(server.url.length), { headers: [name, value] }))
      assert.ok(body.data.length > 0, url)
    }
  })

  test('prints the calls of a charge, of what was bought, and of a refund', () => {
    for (const path of ['one_off_charge', 'my_assets', 'refund']) {
      assert.match(text, new RegExp(`^curl .*'${server.url}/demo/v1/(payment/)?${path}' -d `, 'm'))
    }
  })

  test('a second start prints the same and changes nothing', async () => {
    const state = async () =>
      (
        await server.db.query(`select (select count(*) from profiles) || ' ' || (select max(updated_at) from profiles) || ' ' ||
        (select count(*) from secret_keys) || ' ' || (select sum(n) from counts) as state`)
      )[0]!.state
    const before = await state()
    assert.equal(await prepareDemo(server.app, { url: server.url, adminUrl: undefined }), text)
    assert.equal(await state(), before)
  })

  test('prints a call that writes a visit with the write key, and changes nothing when sent again', async () => {
    const [call] = /^curl -s .*\/records' .*$/m.exec(text)!
    const writer = /Write key +(secret_\S+)/.exec(text)![1]!
    assert.ok(call.includes(writer))
    const send = async () => JSON.parse((await promisify(execFile)('sh', ['-c', call])).stdout)
    assert.equal((await send()).written, 3)
    assert.equal((await send()).unchanged, 3)
    const { body } = await server.api('/sessions/ses_first', { key: key() })
    assert.deepEqual([body.funnel_id, body.replies.length], ['fun_sleep', 1])
    assert.equal((await server.api('/sessions/ses_first', { key: writer })).status, 403)
  })

  test('the write key is not created again after it was revoked', async () => {
    await server.db.query(`update secret_keys set expires_at = db_clock() where name = 'demo writer'`)
    const later = await prepareDemo(server.app, { url: server.url, adminUrl: undefined })
    assert.match(later, /Write key +\(none: run "tundish keys create --project demo /)
    assert.doesNotMatch(later, /\/records/)
  })

  test('two starts at once make one demo', async () => {
    const other = await startTestServer()
    try {
      const start = () => prepareDemo(other.app, { url: other.url, adminUrl: undefined })
      const [one, two] = await Promise.all([start(), start()])
      assert.equal(one, two)
      const [row] = await other.db.query('select count(*) as n from profiles')
      assert.equal(row!.n, '2000')
    } finally {
      await other.stop()
    }
  })
})

test('a start that waits for another one has more time than a statement', async () => {
  const STATEMENT_TIMEOUT_MS = '2000'
  const waiting = await startTestServer({ STATEMENT_TIMEOUT_MS })
  const outside = openDb({ url: waiting.env.DATABASE_URL!, applicationName: 'outside', connections: 2 })
  const held = await outside.connect()
  try {
    await held.query('select pg_advisory_lock(7485)')
    const starting = prepareDemo(waiting.app, { url: waiting.url, adminUrl: undefined })
    const failed = starting.then(
      () => undefined,
      (error: Error) => error,
    )
    const late = untilLocked(outside.query, 'pg_advisory_lock', (1.5 * Number(STATEMENT_TIMEOUT_MS)) / 1000)
    assert.equal(await Promise.race([late, failed]), undefined)
    await held.query('select pg_advisory_unlock(7485)')
    assert.match(await starting, /^curl /m)
  } finally {
    held.release(true)
    await outside.close()
    await waiting.stop()
  }
})

test('serve --demo makes its DATA_DIR on its own database address', async (t) => {
  const database = await freshDatabase()
  const MASTER_KEY = Buffer.alloc(32, 1).toString('base64')
  const env = {
    DATABASE_URL: database.url,
    DATA_DIR: join(temporaryFolder(), 'not', 'there'),
    MASTER_KEY,
    PORT: '0',
    ADMIN_PORT: '0',
  }
  const child = spawnTundish(['serve', '--demo'], env)
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const ended = once(child, 'exit')
  await Promise.race([ended, until('the calls are printed', () => output.includes('payment/refund'), 300_000)])
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null], output)
  await database.drop()
})

test('the demo data is the same each time, and payments agree with their subscriptions', () => {
  const now = Date.parse('2026-06-01T12:00:00Z')
  const lines = [...demoRecords(now)]
  assert.deepEqual([...demoRecords(now)], lines)
  const subscriptions = new Map<unknown, Data>()
  for (const { record, data } of lines)
    if (record === 'subscription') subscriptions.set((data as Data).id, data as Data)
  const limit = new Date(now).toISOString()
  for (const { record, data } of lines as { record: string; data: Data }[]) {
    for (const field of ['created_at', 'updated_at', 'trx_created_at']) {
      if (data[field]) assert.ok((data[field] as string) <= limit, `${record} ${data.id} is ahead of time`)
    }
    if (record !== 'transaction') continue
    const subscription = subscriptions.get(data.subscription_id)!
    assert.equal(data.currency, subscription.currency)
    assert.equal(data.profile_id, subscription.profile_id)
    assert.ok((data.created_at as string) >= (subscription.created_at as string))
    if (subscription.cancelled_at) assert.ok((data.created_at as string) <= (subscription.cancelled_at as string))
  }
})
