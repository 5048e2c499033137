// Reads from a real streaming replica: what it may serve, and what goes to the primary.
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { createProject } from '../../../../src/core/tenants/tenants.ts'
import type { Finding } from '../../../../src/operator/doctor/doctor.ts'
import { tundish } from '../../../support/cli.ts'
import { BASICS, insert } from '../../../support/data.ts'
import { openReplicated, type Replicated, readsOf, seenBy, untilUsable } from '../../../support/replica.ts'
import { ok, type Project, type TestServer } from '../../../support/server.ts'
import { until } from '../../../support/time.ts'
import { walk } from '../../../support/walk.ts'

// While the replay is paused, it may serve the whole test what it has.
const LONG = 300_000

describe('reads from a replica', { timeout: 180_000 }, () => {
  let scene: Replicated
  let patient: TestServer
  let strict: TestServer
  let other: TestServer
  let project: Project
  let neighbour: Project
  before(async () => {
    scene = await openReplicated()
    patient = await scene.serve(LONG)
    strict = await scene.serve(1000)
    other = await scene.serve()
    project = await patient.project()
    neighbour = await patient.project()
    const profiles = Array.from({ length: 30 }, (_, n) => ({ id: `person-${n}`, email: `person-${n}@example.com` }))
    const subscriptions = Array.from({ length: 30 }, (_, n) => ({ id: `sub-${n}`, profile_id: `person-${n}` }))
    const rows = { ...BASICS, profiles: [...BASICS.profiles!, ...profiles], subscriptions }
    await insert(patient.db, project, rows)
    await insert(patient.db, neighbour, rows)
    await settle()
  })
  after(() => scene.close())
  afterEach(async () => {
    await scene.replica.resume()
    await settle()
  })

  /** Until both servers have seen the replica where the primary is. */
  async function settle(): Promise<void> {
    await scene.replica.catchUp()
    for (const server of [patient, strict]) {
      await untilUsable(server)
      const isFresh = async () => (await readsOf(server, () => firstPages(server)))[0] === 'replica fresh'
      await until('reads from the replica', isFresh)
    }
  }
  async function firstPages(server: TestServer): Promise<void> {
    for (const one of [project, neighbour]) {
      await ok(seenBy(server, one).get('/profiles', { limit: '1' }))
    }
  }
  let made = 0
  const add = async (to = project) => {
    const id = `new-${++made}`
    await insert(patient.db, to, { profiles: [{ id, created_at: new Date().toISOString() }] })
    return id
  }
  const newest = async (server: TestServer, of = project) => {
    const body = await ok(seenBy(server, of).get('/profiles', { limit: '1' }))
    return body.data[0].id as string
  }

  /** The reads of `work` by the patient one, when it knows how far the replica is: after a pause of this process it does not for a moment. */
  async function patientReads(work: () => Promise<unknown>): Promise<string[]> {
    let reads: string[] = []
    await until('the patient one to know the replica', async () => {
      reads = await readsOf(patient, work)
      return !reads.includes('primary late')
    })
    return reads
  }

  test('lists, objects, counts and walks come from the replica, and are those of the primary', async () => {
    const paths = [
      '/profiles?limit=5',
      '/profiles/person-3',
      '/subscriptions?filter[status]=active&filter[product_id]=product',
      '/subscriptions/sub-1',
      '/sessions/session',
      '/sessions/session/replies',
      '/funnels',
      '/products/product',
    ]
    // On a busy machine the replica may not be known to be usable for a moment.
    const fromReplica = (what: string, work: () => Promise<void>, also: string[] = []) =>
      until(`${what} from the replica`, async () => {
        const reads = (await readsOf(patient, work)).filter((one) => !also.includes(one))
        return reads.length > 0 && reads.every((one) => one === 'replica fresh')
      })
    for (const path of paths) {
      await fromReplica(path, async () => {
        const [here, there] = await Promise.all([
          patient.api(path, { key: project.key }),
          other.api(path, { key: project.key }),
        ])
        assert.equal(here.status, 200, here.text)
        // A cursor of the one knows of replicas, that of the other does not.
        const bare = (text: string) => text.replace(/"(next_)?cursor":"[^"]+"/g, '')
        assert.equal(bare(here.text), bare(there.text))
      })
    }
    const walked = async () => {
      assert.equal((await walk(seenBy(patient, project), '/profiles', { limit: '10' })).length, 31)
    }
    await fromReplica('a walk', walked, ['primary walk'])
  })

  test('reads go to the primary while the replica is more than READ_MAX_LAG_MS behind', async () => {
    await scene.replica.pause()
    const id = await add()
    // Proof that the replica is what the patient one reads.
    let seen: string | undefined
    await patientReads(async () => {
      seen = await newest(patient)
    })
    assert.notEqual(seen, id)
    await untilUsable(strict, false)
    assert.deepEqual(await readsOf(strict, async () => assert.equal(await newest(strict), id)), ['primary late'])
    await scene.replica.resume()
    await settle()
    // After a pause of this process the strict one does not know how far the replica is.
    await until('the strict one to read the replica', async () => {
      const [read] = await readsOf(strict, async () => assert.equal(await newest(strict), id))
      return read === 'replica fresh'
    })
  })

  test('an object that the replica lacks is found at the primary', async () => {
    await scene.replica.pause()
    const id = await add()
    const reads = await patientReads(async () => {
      assert.equal((await patient.api(`/profiles/${id}`, { key: project.key })).status, 200)
    })
    assert.deepEqual(reads, ['primary refused'])
  })

  for (const by of ['this process', 'another process']) {
    test(`after an erasure by ${by}, its project alone reads the primary until the replica has replayed it`, async () => {
      await scene.replica.pause()
      const id = by === 'this process' ? 'person-5' : 'person-6'
      const eraser = by === 'this process' ? patient : other
      const body = { profile_ids: [id] }
      await ok(eraser.api('/profiles/anonymize', { key: project.key, method: 'POST', body }))
      const reads = await patientReads(async () => {
        const [one, list, nested] = await Promise.all([
          seenBy(patient, project).get(`/profiles/${id}`),
          seenBy(patient, project).get('/profiles', { 'filter[email]': `${id}@example.com` }),
          seenBy(patient, project).get('/subscriptions', { limit: '100' }),
        ])
        assert.equal(one.body.email, null)
        assert.deepEqual(list.body.data, [])
        assert.ok(!nested.text.includes(`"${id}@example.com"`))
      })
      assert.deepEqual(reads, ['primary erasure', 'primary erasure', 'primary erasure'])
      const elsewhere = await patientReads(async () => {
        assert.equal((await seenBy(patient, neighbour).get(`/profiles/${id}`)).body.email, `${id}@example.com`)
      })
      assert.deepEqual(elsewhere, ['replica fresh'])
      await scene.replica.resume()
      await settle()
      const again = await patientReads(async () => {
        assert.equal((await seenBy(patient, project).get(`/profiles/${id}`)).body.email, null)
      })
      assert.deepEqual(again, ['replica fresh'])
    })
  }

  test('a walk that begins at the primary is never older later on', async () => {
    await scene.replica.pause()
    const id = await add()
    await untilUsable(strict, false)
    // The last of the list, and only the primary has it.
    await patient.db.query(`update profiles set created_at = '2020-01-01' where project_id = $1 and id = $2`, [
      project.id,
      id,
    ])
    for (const [first, why] of [
      [strict, 'primary walk'],
      [other, 'primary walk'],
    ] as const) {
      const { body } = await seenBy(first, project).get('/profiles', { limit: '20' })
      let ids: string[] = []
      const reads = await patientReads(async () => {
        ids = body.data.map((one: { id: string }) => one.id)
        let cursor = body.pagination.next_cursor
        while (cursor) {
          const next = await seenBy(patient, project).get('/profiles', { limit: '20', cursor })
          assert.equal(next.body.pagination.total, body.pagination.total)
          ids.push(...next.body.data.map((one: { id: string }) => one.id))
          cursor = next.body.pagination.next_cursor
        }
      })
      assert.deepEqual([...new Set(reads)], [why])
      assert.ok(ids.includes(id))
      assert.equal(ids.length, body.pagination.total)
    }
  })

  test('a walk that begins on the replica continues there once the replica has passed its beginning', async () => {
    const { body } = await seenBy(patient, project).get('/profiles', { limit: '10' })
    const cursor = body.pagination.next_cursor
    const goesOn = async () => {
      const [read] = await readsOf(patient, () => seenBy(patient, project).get('/profiles', { limit: '10', cursor }))
      return read === 'replica fresh'
    }
    await until('the walk to go on at the replica', goesOn)
  })

  test('no horizon is returned by a replica that has not replayed everything before it', async () => {
    const sync = (server: TestServer) =>
      seenBy(server, project).get('/profiles', { 'filter[updated_at.from]': '2026-01-01T00:00:00Z', limit: '500' })
    await sync(other)
    await settle()
    await scene.replica.pause()
    const id = await add()
    const [row] = await patient.db.query(
      `update profiles set updated_at = (select begin_write($1)) where project_id = $1 and id = $2 returning updated_at`,
      [project.id, id],
    )
    await until('the horizon to pass the change', async () => {
      const { headers } = await sync(other)
      return String(headers['x-sync-horizon']) > row!.updated_at!.replace(' ', 'T')
    })
    const response = await sync(patient)
    assert.ok(response.body.data.some((one: { id: string }) => one.id === id))
    assert.deepEqual(await readsOf(patient, () => sync(patient)), ['primary late'])
  })

  test('keys, charges and erasures use only the primary', async () => {
    await scene.replica.pause()
    const { id, secret_key } = await createProject(other.db, other.app.seal, {
      id: 'made-later',
      organization: project.organizationId,
    })
    await insert(other.db, { id, organizationId: project.organizationId }, { profiles: [{ id: 'late', email: 'a@b' }] })
    const body = { profile_ids: ['late'] }
    await ok(patient.api('/profiles/anonymize', { key: secret_key, method: 'POST', body }))
  })

  test('the doctor reports a replica that follows, one that does not, and a server that is not a replica', async () => {
    const examine = async (url = scene.replica.url) => {
      const { stdout } = await tundish(['doctor', '--json'], { ...patient.env, READ_DATABASE_URL: url })
      const { findings } = JSON.parse(stdout) as { findings: Finding[] }
      const [found] = findings.filter(({ check }) => check === 'replica')
      return `${found!.level}: ${found!.message}`
    }
    assert.match(await examine(), /^ok: The replica follows/)
    assert.match(await examine(scene.primary.url), /^warning: .* is not a standby/)
    await scene.replica.pause()
    await add()
    assert.match(await examine(), /^warning: The replica did not catch up/)
  })
})
