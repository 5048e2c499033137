// A statement that takes too long: 503 with Retry-After instead of hanging, and no other tenant waits behind it.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Query } from '../../../src/lib/pg/types.ts'
import { BASICS, insert } from '../../support/data.ts'
import { column } from '../../support/rows.ts'
import { startTestServer, type TestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const server = await startTestServer({ STATEMENT_TIMEOUT_MS: '1000' }, { worker: false })
after(() => server.stop())
const project = await server.project()
await insert(server.db, project, { ...BASICS, subscriptions: [{ id: 'subscription' }] })

describe('a statement that takes too long', () => {
  test('503 and when to try again', async () => {
    await locked(server, async () => {
      // The lock is held until the response is here: without a time-out there would be none.
      const { status, headers, body } = await project.get('/subscriptions')
      assert.deepEqual([status, headers['retry-after']], [503, '1'])
      assert.equal(body.message, 'The database took too long: try again, or request less.')
      assert.equal(await waiting(server.db.query), 0, 'the statement goes on in the database')
    })
    assert.equal((await project.get('/subscriptions')).body.data.length, 1)
  })

  test('503 for each of those that came while their statement could not even be prepared', async () => {
    const responses = await locked(server, () =>
      Promise.all(Array.from({ length: 12 }, () => project.get('/subscriptions/subscription'))),
    )
    assert.deepEqual(
      column(responses, 'status'),
      responses.map(() => 503),
    )
    assert.equal((await project.get('/subscriptions/subscription')).status, 200)
  })
})

test('slow pages of one tenant delay no other', async () => {
  // Longer than the test may take: the pages wait until the lock is released.
  const server = await startTestServer({ STATEMENT_TIMEOUT_MS: '600000' }, { worker: false })
  after(() => server.stop())
  const [project, other] = [await server.project(), await server.project()]
  const statuses = ['active', 'paused', 'unpaid', 'expired']
  let received = 0
  const slow = await locked(server, async () => {
    const pages = statuses.map(async (status) => {
      const page = await project.get('/subscriptions', { 'filter[status]': status, 'filter[product_id]': 'product' })
      received += 1
      return page
    })
    await until('as many to wait as one tenant may have at once', async () => (await waiting(server.db.query)) >= 2)
    const served = Array.from({ length: 4 }, async () => (await other.get('/funnels')).status)
    assert.deepEqual(await soon(Promise.all(served)), [200, 200, 200, 200])
    assert.equal(received, 0)
    return { pages }
  })
  for (const { status } of await Promise.all(slow.pages)) assert.equal(status, 200)
})

/** Rejects after the patience of `until`, so that the lock is released. */
async function soon<T>(result: Promise<T>): Promise<T> {
  let isHere = false
  void result.finally(() => (isHere = true))
  await until('the other tenant to be served', async () => isHere)
  return result
}

/** Runs `work` while no other transaction can read subscriptions. */
async function locked<T>({ db }: TestServer, work: () => Promise<T>): Promise<T> {
  return db.tx(async (query) => {
    await query('lock table subscriptions')
    return work()
  })
}

/** How many statements of this database wait for a lock. Within a transaction the view would not change. */
async function waiting(query: Query): Promise<number> {
  const rows = await query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.length
}
