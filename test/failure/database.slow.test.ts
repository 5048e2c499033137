// What PostgreSQL may do to us, on a real server under reads and charges: 503 at worst, nothing lost, well again by itself.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { fill, mountSmallDisk } from '../support/small-disk.ts'
import { until } from '../support/time.ts'
import { titled } from '../support/titled.ts'
import { openScene, type Scene, untilMore } from './trouble.ts'

const PATIENCE_MS = 120_000

describe('PostgreSQL', () => {
  let scene: Scene
  before(async () => {
    scene = await openScene()
  })
  after(() => scene.close())
  const some = (received: { statuses: Record<string, number> }, status: string) =>
    assert.ok((received.statuses[status] ?? 0) > 0, `no ${status} at all: ${JSON.stringify(received.statuses)}`)

  test('restarted', { timeout: PATIENCE_MS }, async () => {
    const { cluster, survives } = scene
    const received = await survives(async (soFar) => {
      const noticed = untilMore(soFar, '503', 1)
      await cluster.stop()
      await noticed
      await cluster.start()
    })
    some(received, '200')
    some(received, '503')
  })

  test('stopped for a while', { timeout: PATIENCE_MS }, async () => {
    const { cluster, survives } = scene
    const received = await survives(async () => {
      await cluster.stop()
      await sleep(4000)
      await cluster.start()
    })
    some(received, '503')
  })

  test('frozen for 12 s with its connections open', { timeout: PATIENCE_MS }, async () => {
    const { cluster, survives } = scene
    const received = await survives(async () => {
      cluster.freeze()
      await sleep(12_000)
      cluster.thaw()
    })
    some(received, '503')
    assert.ok(received.slowestMs < 15_000, `a request waited ${received.slowestMs} ms`)
  })

  test('out of connections', { timeout: PATIENCE_MS }, async () => {
    const { cluster, survives } = scene
    const received = await survives(async () => {
      const held: pg.Client[] = []
      const hold = async () => {
        const client = new pg.Client({ connectionString: cluster.url })
        client.on('error', () => {})
        await client.connect()
        held.push(client)
      }
      const isRefused = () =>
        hold().then(
          () => false,
          (error) => error.code === '53300',
        )
      // Many at once: on a busy machine one takes half a second.
      while (!(await Promise.all(Array.from({ length: 20 }, isRefused))).includes(true));
      // Ours lose theirs, and others take the places.
      const [watcher] = held as [pg.Client]
      const stop = performance.now() + 3000
      while (performance.now() < stop) {
        await watcher.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tundish' and backend_type = 'client backend'`,
        )
        await Promise.all(Array.from({ length: 20 }, () => hold().catch(() => {})))
      }
      await Promise.all(held.map((client) => client.end()))
    })
    some(received, '503')
  })

  test('read-only', { timeout: PATIENCE_MS }, async () => {
    const { cluster, survives } = scene
    const set = async (value: string) => {
      await cluster.query(`alter system set default_transaction_read_only = ${value}`)
      await cluster.query('select pg_reload_conf()')
    }
    const received = await survives(async (soFar) => {
      await set('on')
      await Promise.all([sleep(2000), untilMore(soFar, '503', 1)])
      await set('off')
    })
    some(received, '200')
    some(received, '503')
  })

  test('with its clock set back by an hour, and right again', { timeout: PATIENCE_MS }, async () => {
    const { cluster, survives } = scene
    const set = async (offset: string) => {
      await cluster.query(`alter database tundish set tundish.clock_offset = '${offset}'`)
      await cluster.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tundish' and pid <> pg_backend_pid()`,
      )
    }
    const received = await survives(async () => {
      await set('-1 hour')
      await sleep(3000)
      await set('0')
    })
    some(received, '200')
  })
})

const disk = mountSmallDisk(220)

describe(titled('PostgreSQL on a full disk', disk.why), {
  skip: disk.why,
  timeout: 300_000,
}, () => {
  let scene: Scene
  before(async () => {
    scene = await openScene(disk.folder)
  })
  after(async () => {
    await scene?.billing.stop()
    await scene?.cluster.stop('SIGQUIT')
    disk.unmount()
  })

  test('503 while there is no room, and well again when there is', { timeout: PATIENCE_MS }, async () => {
    const { cluster, survives } = scene
    const filler = join(cluster.folder, 'filler')
    const received = await survives(async (soFar) => {
      const noticed = untilMore(soFar, '503', 1)
      fill(filler)
      // What PostgreSQL has reserved ahead must be used up before it notices: a new segment of its log does it.
      await until('the disk to be missed', async () => {
        await cluster
          .query(`select pg_switch_wal(); create table t as select repeat('x', 1000) from generate_series(1, 20000)`)
          .catch(() => {})
        return cluster
          .query('create table u as select repeat(md5(n::text), 100) from generate_series(1, 10000) n')
          .then(
            () => false,
            () => true,
          )
      })
      await Promise.all([sleep(2000), noticed])
      rmSync(filler)
      // PostgreSQL stops if its log has no room; its operator starts it again.
      await cluster.query('drop table if exists t, u').catch(() => cluster.start())
    })
    assert.ok((received.statuses['503'] ?? 0) > 0, `no client noticed: ${JSON.stringify(received.statuses)}`)
  })
})
