// Two replicas behind one address, of which one stands still: no promise may rest on what the other has shown.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Finding } from '../../../../src/operator/doctor/finding.ts'
import { noPgBouncer, openPgBouncer } from '../../../lib/pg/pgbouncer.ts'
import { tundish } from '../../../support/cli.ts'
import { BASICS, insert } from '../../../support/data.ts'
import {
  openReplica,
  openReplicated,
  type Replica,
  type Replicated,
  readsOf,
  seenBy,
} from '../../../support/replica.ts'
import { type Project, startTestServer, type TestServer } from '../../../support/server.ts'
import { until } from '../../../support/time.ts'
import { titled } from '../../../support/titled.ts'
import { walk } from '../../../support/walk.ts'
import { type Balancer, openBalancer } from './balancer.ts'

const ROUNDS = 12

describe('replicas behind a balancer', { timeout: 120_000 }, () => {
  let scene: Replicated
  let still: Replica
  let balancer: Balancer
  let server: TestServer
  let project: Project
  before(async () => {
    scene = await openReplicated()
    still = await openReplica(scene.primary)
    balancer = await openBalancer([scene.replica.url, still.url])
    server = await startTestServer({
      DATABASE_URL: scene.primary.url,
      READ_DATABASE_URL: balancer.url,
      READ_MAX_LAG_MS: '300000',
    })
    project = await server.project()
    const subscriptions = Array.from({ length: 40 }, (_, n) => ({ id: `sub-${n}`, created_at: '2026-01-02T00:00:00Z' }))
    await insert(server.db, project, { ...BASICS, subscriptions })
    await Promise.all([scene.replica.catchUp(), still.catchUp()])
    // Both are in use, the slow connections too.
    await until('reads from the replicas', async () => {
      const reads = await readsOf(server, () => Promise.all(Array.from({ length: 8 }, () => window())))
      return reads.every((one) => one === 'replica fresh')
    })
    await still.pause()
  })
  after(async () => {
    await server.stop()
    balancer.close()
    await still.remove()
    await scene.close()
  })

  // No index serves two filters and a window: such a page has its own connection.
  const window = (from = '2026-01-01T00:00:00Z') =>
    seenBy(server, project).get('/subscriptions', {
      'filter[updated_at.from]': from,
      'filter[status]': 'active',
      'filter[product_id]': 'product',
      limit: '500',
    })

  test('a window holds every change before its horizon', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const [row] = await server.db.query(
        `update subscriptions set updated_at = begin_write($1) where project_id = $1 and id = $2
         returning to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`,
        [project.id, `sub-${round}`],
      )
      await until('the horizon to pass the change', async () => {
        const { headers, body } = await window()
        if (String(headers['x-sync-horizon']) <= row!.at!) return false
        const found = body.data.find((one: { id: string }) => one.id === `sub-${round}`)
        assert.equal(found.updated_at, row!.at)
        assert.equal(body.pagination.total, 40)
        return true
      })
    }
  })

  test('a walk from one to the other misses nothing', async () => {
    const shares = new Set<string>()
    for (let round = 0; round < ROUNDS; round++) {
      // At the end of the list, where a page that is older would not have it.
      const late = { id: `late-${round}`, created_at: '2020-01-01T00:00:00Z' }
      await insert(server.db, project, { subscriptions: [late] })
      await scene.replica.catchUp()
      const reads = await readsOf(server, async () => {
        const items = await walk(seenBy(server, project), '/subscriptions', { limit: '15' })
        assert.equal(new Set(items.map(({ id }) => id)).size, 40 + round + 1)
        assert.equal(items.length, 40 + round + 1)
      })
      for (const read of reads) shares.add(read)
    }
    assert.ok(shares.has('replica fresh'))
  })

  test('no response contains the e-mail address of a person after their erasure', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const id = `person-${round}`
      await insert(server.db, project, { profiles: [{ id, email: `${id}@example.com` }] })
      const erased = await project.post('/profiles/anonymize', { profile_ids: [id] })
      assert.equal(erased.status, 200)
      const responses = await Promise.all(Array.from({ length: 6 }, () => project.get(`/profiles/${id}`)))
      assert.deepEqual([...new Set(responses.map(({ body }) => body.email))], [null])
    }
  })

  test(titled('a pooler in transaction mode before them is noticed, and reads go to the primary', noPgBouncer), {
    skip: noPgBouncer,
  }, async (t) => {
    const hosts = [scene.replica.url, still.url].map((url) => new URL(url).searchParams.get('host')).join()
    const both = new URL(scene.replica.url)
    both.searchParams.set('host', hosts)
    const given = { ignore_startup_parameters: 'options', server_round_robin: '1', default_pool_size: '6' }
    const bouncer = await openPgBouncer(both.href, given)
    t.after(bouncer.remove)
    const pooled = await startTestServer({ ...server.env, READ_DATABASE_URL: bouncer.url })
    t.after(pooled.stop)
    await until('the pooler to be noticed', () =>
      pooled.logLines().some((line) => line.includes('The replica is not used: it is behind a pooler')),
    )
    const reads = await readsOf(pooled, () =>
      Promise.all(Array.from({ length: 8 }, () => seenBy(pooled, project).get('/profiles'))),
    )
    assert.deepEqual([...new Set(reads)], ['primary late'])
    const { stdout } = await tundish(['doctor', '--json'], pooled.env)
    const { message } = JSON.parse(stdout).findings.find(({ check }: Finding) => check === 'replica')
    assert.equal(message, 'A pooler gives the connections of READ_DATABASE_URL to several clients in turn.')
  })
})
