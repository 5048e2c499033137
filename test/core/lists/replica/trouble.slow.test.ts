// What may happen to a replica while it is read: callers never hear of it, and it is used again once it is well.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BASICS, insert } from '../../../support/data.ts'
import { openReplicated, type Replicated, readsOf, seenBy, untilUsable } from '../../../support/replica.ts'
import type { Project, TestServer } from '../../../support/server.ts'
import { until } from '../../../support/time.ts'

const READERS = 4
const MAX_LAG_MS = 500

describe('a replica', { timeout: 240_000 }, () => {
  let scene: Replicated
  let server: TestServer
  let project: Project
  before(async () => {
    scene = await openReplicated()
    server = await scene.serve(MAX_LAG_MS)
    project = await server.project()
    await insert(server.db, project, { ...BASICS, subscriptions: [{ id: 'one' }] })
    await scene.replica.catchUp()
  })
  after(() => scene.close())

  /** Reads without a pause while `trouble` happens; every response has to be right. `counts` has the responses of each reader. */
  async function survives(trouble: (counts: number[]) => Promise<unknown>): Promise<void> {
    let stopped = false
    const wrong: string[] = []
    const paths = ['/subscriptions', '/subscriptions/one', '/profiles?filter[email]=nobody', '/sessions/session']
    const counts = Array.from({ length: READERS }, () => 0)
    const reader = async (n: number) => {
      while (!stopped) {
        const { status, text } = await server.api(paths[n % paths.length]!, { key: project.key })
        counts[n]! += 1
        if (status !== 200) wrong.push(`${status} ${text}`)
      }
    }
    const readers = counts.map((_, n) => reader(n))
    try {
      await trouble(counts)
    } finally {
      stopped = true
      await Promise.all(readers)
    }
    assert.deepEqual(wrong, [])
  }
  const where = () => readsOf(server, () => seenBy(server, project).get('/subscriptions/one'))

  for (const [what, signal] of [
    ['stopped', 'SIGINT'],
    ['killed', 'SIGQUIT'],
  ] as const) {
    test(`${what} and started again`, async () => {
      await untilUsable(server)
      await survives(async () => {
        await sleep(300)
        await scene.replica.stop(signal)
        await untilUsable(server, false)
        assert.deepEqual([...new Set(await where())], ['primary late'])
        await sleep(1000)
        await scene.replica.start()
        await untilUsable(server)
      })
      await until('reads from the replica', async () => (await where())[0] === 'replica fresh')
      assert.ok(server.logLines().some((line) => line.includes('The replica is not used')))
    })
  }

  test('frozen with its connections open', async () => {
    await untilUsable(server)
    await survives(async (counts) => {
      await until('each reader to have read', () => counts.every((n) => n > 0))
      scene.replica.freeze()
      const before = [...counts]
      // The first of them may have begun on the replica.
      await until('each reader to get responses', () => counts.every((n, reader) => n > before[reader]! + 1))
      await untilUsable(server, false)
      scene.replica.thaw()
      await untilUsable(server)
    })
    await until('reads from the replica', async () => (await where())[0] === 'replica fresh')
  })

  test('behind this program by a migration', async () => {
    await untilUsable(server)
    const [row] = await scene.primary.query('select max(version) as newest from schema_migrations')
    const rename = (from: number, to: number) =>
      scene.primary.query(`update schema_migrations set version = ${to} where version = ${from}`)
    const newest = Number(row!.newest)
    await survives(async () => {
      await rename(newest, -newest)
      await untilUsable(server, false)
      await rename(-newest, newest)
      await untilUsable(server)
    })
  })

  test('503 for reads while the primary is away, and the replica serves them after it is back', async () => {
    await untilUsable(server)
    await scene.primary.stop()
    assert.equal((await seenBy(server, project).get('/subscriptions')).status, 503)
    await scene.primary.start()
    // The first reads may still find the primary's old connections broken.
    await until('reads from the replica', async () => (await where())[0] === 'replica fresh')
  })

  test('that was promoted is no longer read', async () => {
    await untilUsable(server)
    await survives(async () => {
      await scene.replica.promote()
      await untilUsable(server, false)
    })
    await scene.replica.query(`update subscriptions set status = 'expired'`)
    await sleep(1000)
    const { body } = await seenBy(server, project).get('/subscriptions/one')
    assert.equal(body.status, 'active')
    assert.deepEqual(await where(), ['primary late'])
  })
})
