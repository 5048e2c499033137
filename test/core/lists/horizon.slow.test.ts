// The sync promise: windows from horizon to horizon miss nothing and repeat nothing, among writers of other processes
// whose transactions are slow, and when the database's clock is set back.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Project, startTestServer } from '../../support/server.ts'
import { Follower, Written, writeSlowly } from './follower.ts'

const server = await startTestServer()
after(() => server.stop())

describe('a sync by windows', () => {
  const writers = (project: Project, written: Written, names: string[], milliseconds: number) =>
    writeSlowly(server.app.databaseUrl, project.id, written, names, milliseconds)

  /** The clock of every session that begins from now on. */
  const setClock = async (offset: string) => {
    const [row] = await server.db.query('select current_database() as name')
    await server.db.query(`alter database ${row!.name} set tundish.clock_offset = '${offset}'`)
  }

  const follow = async (follower: Follower, until: Promise<unknown>, step = () => follower.step()) => {
    let going = true
    const done = until.finally(() => {
      going = false
    })
    while (going) {
      await step()
      await sleep(20)
    }
    await done
  }

  test('misses nothing and repeats nothing, which reading by the clock alone would not ensure', async () => {
    const project = await server.project()
    const written = new Written()
    const [good, open, naive] = [new Follower(project), new Follower(project), new Follower(project)]
    const clock = async () => {
      const [row] = await server.db.query(`select to_char(db_clock(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`)
      return row!.now!
    }
    // The naive one misses nothing where a machine that stalls lets it read before and after all writers alone.
    for (let n = 0; naive.missing(written).length === 0; n += 1) {
      assert.ok(n < 5, 'Without the horizon the test finds nothing: it cannot fail.')
      const writing = writers(project, written, [`a${n}`, `b${n}`, `c${n}`], 2500)
      await Promise.all([
        follow(good, writing),
        follow(open, writing, () => open.openStep()),
        follow(naive, writing, () => naive.step(clock)),
      ])
      await naive.step(clock)
    }
    await good.catchUp(written)
    await open.openStep()
    assert.ok(written.all.size > 60, `Only ${written.all.size} changes were written.`)
    good.check(written)
    assert.deepEqual(open.missing(written), [], 'Changes were missed by windows without an end.')
  })

  test('continues when the clock is set back by an hour and later returns', async () => {
    const project = await server.project()
    const written = new Written()
    const follower = new Follower(project)
    await follow(follower, writers(project, written, ['before'], 500))
    // Slow transactions of the old clock end while the new one is in force.
    const straddling = writers(project, written, ['straddling'], 800)
    await sleep(400)
    await setClock('-1 hour')
    const setBack = await startTestServer(server.env)
    try {
      const behind = new Follower({
        get: (path, query) => setBack.api(`${path}?${new URLSearchParams(query)}`, { key: project.key }),
      })
      Object.assign(behind, { from: follower.from, seen: follower.seen })
      await follow(behind, Promise.all([straddling, writers(project, written, ['back-1', 'back-2'], 1500)]))
      const fresh = [...written.last].filter(([id]) => id.startsWith('back-')).map(([id, stamp]) => `${id} ${stamp}`)
      for (let n = 0; n < 50; n++) await behind.step()
      const late = fresh.filter((one) => !behind.seen.includes(one))
      assert.deepEqual(late, [], 'What is written under the clock set back is seen before the clock has caught up.')
      Object.assign(follower, { from: behind.from })
    } finally {
      await setBack.stop()
    }
    await setClock('0')
    await follow(follower, writers(project, written, ['after'], 800))
    await follower.catchUp(written)
    follower.check(written)
    assert.ok(written.all.size > 40)
  })

  test('the horizon only grows, waits for open writers, and belongs to one project', async () => {
    const [project, neighbour] = [await server.project(), await server.project()]
    const [ours, theirs] = [new Follower(project), new Follower(neighbour)]
    const { query, release } = await server.db.connect()
    try {
      await query('begin')
      await query('select 1')
      await sleep(50)
      // Later than the start of the transaction, which has not begun to write.
      const horizons = [await ours.horizon()]
      const [begun] = await query('select begin_write($1) as base', [project.id])
      for (let n = 0; n < 5; n++) {
        await sleep(300)
        horizons.push(await ours.horizon())
      }
      const limit = `${begun!.base!.replace(' ', 'T').slice(0, 26)}`
      assert.ok(horizons.every((one) => one.slice(0, 26) <= limit))
      assert.deepEqual(horizons, [...horizons].sort())
      assert.ok((await theirs.horizon()).slice(0, 26) > limit)
      await query('rollback')
      await sleep(1000)
      assert.ok((await ours.horizon()).slice(0, 26) > limit)
    } finally {
      release()
    }
  })

  test('a writer whose start cannot be seen holds the horizon, also the first one of a project', async () => {
    const project = await server.project()
    const follower = new Follower(project)
    const { query, release } = await server.db.connect()
    try {
      // Held by a session without a transaction.
      const lock = `(write_lock_class(), (select number from projects where id = $1))`
      await query(`select pg_advisory_lock_shared${lock}`, [project.id])
      assert.equal(await follower.horizon(), '1970-01-01T00:00:00.000000Z')
      await query(`select pg_advisory_unlock_shared${lock}`, [project.id])
      const [clock] = await query(`select to_char(db_clock(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`)
      const first = await follower.horizon()
      assert.ok(first > clock!.now!, first)
      await query(`select pg_advisory_lock_shared${lock}`, [project.id])
      await sleep(1100)
      assert.equal(await follower.horizon(), first)
    } finally {
      release(true)
    }
  })
})
