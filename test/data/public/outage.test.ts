// While the database cannot be reached: 503 and when to try again, never a stack; afterwards everything works by itself.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { BASICS, insert } from '../../support/data.ts'
import { untilLocked } from '../../support/database.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { openProxy } from '../../support/proxy.ts'
import { startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const database = await freshDatabase()
const proxy = await openProxy(database.url)
const server = await startTestServer({ DATABASE_URL: proxy.url })
const project = await server.project()
await insert(server.db, project, BASICS)
after(async () => {
  await server.stop()
  await proxy.cut()
  await database.drop()
})

describe('without its database', () => {
  const paths = [
    '/funnels',
    '/funnels?filter[title]=x',
    '/profiles?filter[updated_at.from]=2026-01-01T00:00:00Z',
    '/sessions/session',
  ]

  test('503 with Retry-After for every kind of call, and not ready but alive', async () => {
    assert.equal((await project.get('/funnels')).status, 200)
    await proxy.cut()
    try {
      const responses = [
        ...(await Promise.all(paths.map((path) => project.get(path)))),
        await project.post('/profiles/anonymize', { profile_ids: ['profile'] }),
        await server.api('/funnels', { key: 'secret_unknown' }),
        await server.call('/health/ready'),
      ]
      for (const { status, headers, body } of responses) {
        assert.equal(status, 503)
        assert.match(headers['retry-after'] ?? '', /^[1-9][0-9]*$/)
        assert.ok(headers['x-request-id'])
        assert.deepEqual(Object.keys(body), ['message'])
        assert.match(body.message, /^The database (cannot be reached at the moment: try again|does not respond)\.$/)
      }
      assert.equal((await server.call('/health/live')).status, 200)
      // No proof, no access: not even behind a key that was good a moment ago.
      await new Promise((resolve) => setTimeout(resolve, 1000))
      assert.equal((await project.get('/funnels')).status, 503)
    } finally {
      await proxy.mend()
    }
    assert.equal((await server.call('/health/ready')).status, 200)
    for (const path of paths) assert.equal((await project.get(path)).status, 200)
    assert.equal((await project.get('/profiles/profile')).body.anonymized_at, null)
  })

  test('503 when the connections break in the middle of their work', async () => {
    const { client, release } = await server.db.connect()
    try {
      await client.query('begin; lock table funnels')
      const waiting = project.get('/funnels')
      await untilLocked(server.db.query)
      await server.db.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      )
      const response = await waiting
      assert.deepEqual([response.status, response.headers['retry-after']], [503, '1'], response.text)
    } finally {
      release(true)
    }
    // The end of a connection may be heard of a little later than its last words.
    await until('reads to work again', async () => (await project.get('/funnels')).status === 200)
  })
})
