// What the key cache may trust, and for how long: a busy key costs no round trip, a dead one dies within a second.
import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { type KeyCache, openKeyCache } from '../../../src/core/tenants/key-cache.ts'
import { regenerateKey } from '../../../src/core/tenants/tenants.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { startTestServer } from '../../support/server.ts'
import { HandClock } from '../../support/time.ts'

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()

describe('the key cache', () => {
  let clock: HandClock
  let keys: KeyCache
  let asked = 0
  let fail = false
  let reading: Promise<unknown> | undefined
  beforeEach(() => {
    clock = new HandClock()
    asked = 0
    fail = false
    const counting: Db = {
      ...server.db,
      async read(statement, params) {
        asked++
        if (fail) throw new Error('Connection terminated')
        const rows = server.db.read(statement, params)
        reading = rows
        return rows
      },
    }
    keys = openKeyCache(counting, clock)
  })

  /** Waits until a refresh that runs during the request has ended. */
  const settle = async () => {
    await reading
    await new Promise(setImmediate)
  }
  const tenant = () => ({ organization_id: project.organizationId, project_id: project.id })

  test('loads a key once that is used again within half a second', async () => {
    assert.partialDeepStrictEqual(await keys.lookUp(project.key), tenant())
    clock.advance(499)
    for (let n = 0; n < 100; n++) assert.partialDeepStrictEqual(await keys.lookUp(project.key), tenant())
    assert.equal(asked, 1)
  })

  test('does not keep what was read before this process changed a key', async () => {
    await keys.lookUp(project.key)
    keys.forget()
    clock.advance(1)
    const inFlight = keys.lookUp(project.key)
    clock.advance(1)
    keys.forget()
    await inFlight
    clock.advance(1)
    await keys.lookUp(project.key)
    assert.equal(asked, 3)
    await keys.lookUp(project.key)
    assert.equal(asked, 3)
  })

  test('refreshes a key in steady use in the background, once', async () => {
    await keys.lookUp(project.key)
    for (let second = 0; second < 5; second++) {
      clock.advance(600)
      fail = false
      for (let n = 0; n < 10; n++) assert.partialDeepStrictEqual(await keys.lookUp(project.key), tenant())
      await settle()
    }
    assert.equal(asked, 6)
  })

  test('returns the cached value without waiting while it is fresh', async () => {
    await keys.lookUp(project.key)
    clock.advance(999)
    fail = true
    assert.partialDeepStrictEqual(await keys.lookUp(project.key), tenant())
    await settle()
  })

  test('rejects when the database has not responded for a second', async () => {
    await keys.lookUp(project.key)
    fail = true
    clock.advance(1000)
    await assert.rejects(keys.lookUp(project.key), /Connection terminated/)
  })

  test('counts the second from the query, not from its result', async () => {
    const slow: Db = {
      ...server.db,
      async read(statement, params) {
        const rows = await server.db.read(statement, params)
        clock.advance(1000)
        asked++
        return rows
      },
    }
    const cache = openKeyCache(slow, clock)
    await cache.lookUp(project.key)
    await cache.lookUp(project.key)
    assert.equal(asked, 2)
  })

  test('does not remember unknown keys', async () => {
    assert.equal(await keys.lookUp('secret_none'), undefined)
    assert.equal(await keys.lookUp('secret_none'), undefined)
    assert.equal(asked, 2)
  })

  test('forgets a key once a refresh finds it revoked', async () => {
    const { secret_key: key } = await regenerateKey(server.db, server.app.seal, { project: project.id })
    await keys.lookUp(key)
    await regenerateKey(server.db, server.app.seal, { project: project.id })
    clock.advance(500)
    assert.partialDeepStrictEqual(await keys.lookUp(key), tenant())
    await settle()
    assert.equal(await keys.lookUp(key), undefined)
  })
})
