// A statement that takes too long: 503 with Retry-After instead of hanging, and nobody else waits behind it.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BASICS, insert } from '../support/data.ts'
import { type Project, startTestServer, type TestServer } from '../support/server.ts'

const TIMEOUT_MS = 1000

describe('a statement that takes too long', () => {
  let server: TestServer
  let project: Project
  before(async () => {
    server = await startTestServer({ STATEMENT_TIMEOUT_MS: String(TIMEOUT_MS) }, { worker: false })
    project = await server.project()
    await insert(server.db, project, { ...BASICS, subscriptions: [{ id: 'subscription' }] })
  })
  after(() => server.stop())

  /** While nobody can read subscriptions. */
  async function locked<T>(work: () => Promise<T>): Promise<T> {
    const { client, release } = await server.db.connect()
    try {
      await client.query('begin; lock table subscriptions')
      return await work()
    } finally {
      await client.query('rollback')
      release()
    }
  }

  test('503 and when to try again', async () => {
    const begunMs = performance.now()
    const { status, headers, body } = await locked(() => project.get('/subscriptions'))
    assert.deepEqual([status, headers['retry-after']], [503, '1'])
    assert.equal(body.message, 'The database took too long: try again, or request less.')
    assert.ok(performance.now() - begunMs < TIMEOUT_MS + 1000)
    assert.equal((await project.get('/subscriptions')).body.data.length, 1)
  })

  test('slow pages of one tenant delay no other', async () => {
    const other = await server.project()
    await locked(async () => {
      const slow = ['active', 'paused', 'unpaid', 'expired'].map((status) =>
        project.get('/subscriptions', { 'filter[status]': status, 'filter[product_id]': 'product' }),
      )
      await sleep(TIMEOUT_MS / 4)
      const begunMs = performance.now()
      for (let n = 0; n < 4; n += 1) assert.equal((await other.get('/funnels')).status, 200)
      assert.ok(performance.now() - begunMs < TIMEOUT_MS / 2)
      for (const { status } of await Promise.all(slow)) assert.equal(status, 503)
    })
  })

  test('503 for each of those that came while their statement could not even be prepared', async () => {
    const answers = await locked(() =>
      Promise.all(Array.from({ length: 12 }, () => project.get('/subscriptions/subscription'))),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      answers.map(() => 503),
    )
    assert.equal((await project.get('/subscriptions/subscription')).status, 200)
  })
})
