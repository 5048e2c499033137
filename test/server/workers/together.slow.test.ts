// What holds for all workers together: the bound of connections, and the metrics.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { divide } from '../../../src/server/workers/shares.ts'
import { until } from '../../support/time.ts'
import { openClient, openWorkers, sendUntilStopped, type Workers } from './workers.ts'

const LONG = { timeout: 240_000 }

describe('connections', LONG, () => {
  test('are divided among the workers and one more, within DATABASE_CONNECTIONS', () => {
    for (let connections = 6; connections <= 200; connections++) {
      for (const cores of [1, 2, 8, 96]) {
        const { workers, share } = divide('auto', connections, cores)
        assert.ok(workers >= 1 && workers <= cores)
        assert.ok(share.read >= 1 && share.plain >= 2)
        assert.ok((workers + 1) * (share.read + share.plain) <= connections)
      }
    }
  })

  test('are as many as the workers need unless they are set, within PostgreSQL’s default', () => {
    assert.deepEqual(divide(1, undefined), { workers: 1, share: { read: 3, plain: 3 } })
    assert.deepEqual(divide('auto', undefined, 8), { workers: 8, share: { read: 3, plain: 3 } })
    const many = divide('auto', undefined, 64)
    assert.ok(many.workers > 20 && (many.workers + 1) * (many.share.read + many.share.plain) <= 80)
    assert.match(many.notice!, /^DATABASE_CONNECTIONS has room for \d+ workers on 64 cores\.$/)
  })

  test('stay within the bound under load, while all workers are replaced', async () => {
    const bound = 9
    const workers = await openWorkers(2, { DATABASE_CONNECTIONS: String(bound) })
    const { shop, billing } = workers
    const watcher = new pg.Client({ connectionString: billing.server.env['DATABASE_URL'], application_name: 'watcher' })
    await watcher.connect()
    try {
      const mine = await backends(watcher)
      const headers = ['service-secret-key', shop.key]
      const body = { external_id: 'nobody' }
      const sending = [
        sendUntilStopped(
          workers,
          12,
          (client) => client.call(`/${shop.id}/v1/my_assets`, { method: 'POST', body, headers }),
          1,
        ),
        sendUntilStopped(workers, 6, (client) => client.call('/public/v1/subscriptions', { key: shop.projectKey }), 1),
      ]
      let most = 0
      workers.process.kill('SIGHUP')
      while (workers.logged('All workers are new.').length === 0) {
        const theirs = [...(await backends(watcher))].filter((pid) => !mine.has(pid))
        most = Math.max(most, theirs.length)
        await sleep(10)
      }
      const received = await Promise.all(sending.map((stop) => stop()))
      assert.deepEqual(
        received.map(({ wrong }) => wrong),
        [[], []],
      )
      assert.ok(most <= bound && most > 3, `${most} connections`)
    } finally {
      await watcher.end()
      await workers.close()
    }
  })
})

async function backends(watcher: pg.Client): Promise<Set<string>> {
  const { rows } = await watcher.query(
    `select pid from pg_stat_activity where datname = current_database() and application_name like 'tundish%'`,
  )
  return new Set(rows.map(({ pid }) => pid))
}

describe('metrics', LONG, () => {
  let workers: Workers
  before(async () => {
    workers = await openWorkers(2)
  })
  after(() => workers.close())

  // Each look has its own connection: one that is kept leads back to the same worker, which may hang.
  const scrape = async () => {
    const client = openClient(workers.adminUrl)
    const { text } = await client.call('/metrics').finally(() => client.close())
    return text
  }
  const values = (text: string, name: string) =>
    text
      .split('\n')
      .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      .map((line) => Number(line.split(' ').at(-1)))
  const lookups = (text: string) =>
    values(
      text,
      'tundish_http_request_duration_seconds_count{interface="data",route="/public/v1/funnels/:id",method="GET",status="404"}',
    )
  const askAll = async (times: number) => {
    const clients = Array.from({ length: 4 }, () => workers.client())
    for (let n = 0; n < times; n++) {
      await clients[n % clients.length]!.call('/public/v1/funnels/none', { key: workers.shop.projectKey })
    }
    for (const client of clients) client.close()
  }

  /** Waits until this many are counted: of a worker that has no time for a second, the last look has only what it had told before. */
  const untilCounted = (times: number) =>
    until(`${times} lookups to be counted`, async () => lookups(await scrape())[0] === times)

  test('are the sums over all workers, whichever worker responds', async () => {
    await askAll(40)
    await untilCounted(40)
    const looks = await Promise.all([scrape(), scrape(), scrape(), scrape()])
    for (const text of looks) assert.deepEqual(lookups(text), [40])
    const [text] = looks
    assert.equal(values(text!, 'process_resident_memory_bytes').length, 2)
    assert.match(text!, /^process_resident_memory_bytes\{worker="2"\} /m)
    assert.deepEqual(values(text!, 'tundish_build_info'), [1])
    assert.deepEqual(values(text!, 'tundish_database_connections{state="max"}'), [6])
  })

  test('have values from the database once, not once for each worker', async () => {
    const { shop, billing } = workers
    const order = await shop.charge(await shop.customer())
    await billing.db.query(
      `update orders set status = 'processing', settled_at = null, next_look_at = db_clock() + interval '1 hour'
       where order_id = $1`,
      [order.body.order_id],
    )
    const text = await scrape()
    assert.deepEqual(values(text, 'tundish_charges_in_progress'), [1])
    assert.deepEqual(values(text, 'tundish_database_up'), [1])
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
    assert.deepEqual(names.sort(), [...new Set(names)].sort())
  })

  test('of a worker that hangs are the last ones it reported', async () => {
    assert.deepEqual(lookups(await scrape()), [40])
    const [hanging] = workers.pids()
    process.kill(hanging!, 'SIGSTOP')
    try {
      // One of them may be waiting for the worker that hangs.
      const looks = Array.from({ length: 3 }, async () => lookups(await scrape()))
      assert.deepEqual(await Promise.any(looks), [40])
    } finally {
      process.kill(hanging!, 'SIGCONT')
    }
  })

  test('never fall: the counts of a worker stay when it is replaced or killed', async () => {
    workers.process.kill('SIGHUP')
    await workers.untilLogged('All workers are new.')
    assert.deepEqual(lookups(await scrape()), [40])
    await askAll(20)
    await untilCounted(60)
    const [victim] = workers.pids()
    process.kill(victim!, 'SIGKILL')
    await workers.untilLogged('A worker is ready.', 5)
    // All that was counted before the last look is there.
    assert.deepEqual(lookups(await scrape()), [60])
    await until('both workers', async () => values(await scrape(), 'process_resident_memory_bytes').length === 2)
  })
})
