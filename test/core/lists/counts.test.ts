// Totals by counters: exact after any number of writers at the same time, while the sweep adds them up.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sweepCounts } from '../../../src/core/lists/counts.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import { addCounts } from '../../support/data.ts'
import { importLines } from '../../support/imports.ts'
import { startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const T = '2026-01-02T03:04:05Z'
const STATUSES = ['created', 'trialing', 'active', 'paused', 'cancelled', 'expired', 'unpaid']
// Which filters of a list have counters, and the column each looks at.
const COUNTED: Record<string, Record<string, string>> = {
  funnels: {},
  profiles: { funnel_id: 'funnel_id' },
  sessions: { funnel_id: 'funnel_id' },
  products: {},
  transactions: {},
  subscriptions: { status: 'status', funnel_id: 'funnel_id', product_id: 'product_id', psp: 'payment_provider' },
}

const any = <T>(values: readonly T[]) => values[Math.floor(Math.random() * values.length)] as T
const id = (kind: string, most: number) => `${kind}-${Math.floor(Math.random() * most)}`
const dated = (data: object) => ({ created_at: T, ...data })

/** Lines that make, change and move records among few ids, so that writers meet. */
function lines(): { record: string; data: object }[] {
  const funnel_id = () => any([id('funnel', 4), null])
  const references = [0, 1, 2, 3].flatMap((n) => [
    { record: 'funnel', data: dated({ id: `funnel-${n}`, title: 'x', deleted_at: any([T, null]) }) },
    { record: 'product', data: dated({ id: `product-${n}`, name: 'x', status: 'active' }) },
    { record: 'profile', data: dated({ id: `profile-${n}`, funnel_id: funnel_id() }) },
  ])
  const moving = Array.from({ length: 12 }, () => [
    { record: 'session', data: dated({ id: id('session', 30), profile_id: id('profile', 4), funnel_id: funnel_id() }) },
    { record: 'transaction', data: dated({ id: id('trn', 30), currency: 'USD', price: 1, profile_id: 'profile-0' }) },
    {
      record: 'subscription',
      data: dated({
        ...{ id: id('sub', 40), status: any(STATUSES), renews: true, price: 1, currency: 'USD' },
        ...{ billing_interval: 'month', billing_interval_count: 1, payment_provider: any(['stripe', 'paypal', null]) },
        ...{ profile_id: id('profile', 4), product_id: id('product', 4), funnel_id: funnel_id() },
      }),
    },
  ])
  return [...references, ...moving.flat()]
}

const server = await startTestServer({}, { worker: false })
after(() => server.stop())
const project = await server.project()

describe('counters', () => {
  const bring = () => importLines(server.app, project.id, lines())

  /** A sweep that hardly ever rests. */
  const sweep = () => {
    const clock: Clock = { ...server.app.clock, sleep: (_ms, signal) => server.app.clock.sleep(5, signal) }
    return sweepCounts({ ...server.app, clock })
  }

  test('agree with a recount through the API, for every filter they serve', async () => {
    const stops = [sweep(), sweep()]
    const writers = Array.from({ length: 4 }, async () => {
      for (let n = 0; n < 4; n++) await bring()
    })
    await Promise.all(writers)
    await Promise.all(stops.map((stop) => stop()))
    let compared = 0
    for (const [list, filters] of Object.entries(COUNTED)) {
      const total = async (query?: Record<string, string>) =>
        (await project.get(`/${list}`, { limit: '1', ...query })).body.pagination.total as number
      const recount = async (condition: string, value: string[] = []) => {
        const [row] = await server.db.query(
          `select count(*) as n from ${list} where project_id = $1 and ${condition}`,
          [project.id, ...value],
        )
        return Number(row!.n)
      }
      assert.equal(await total(), await recount(list === 'funnels' ? 'deleted_at is null' : 'true'), list)
      if (list === 'funnels') assert.equal(await total({ 'filter[deleted]': 'true' }), await recount('true'))
      for (const [filter, column] of Object.entries(filters)) {
        const values = await server.db.query(
          `select distinct ${column} as value from ${list} where ${column} is not null`,
        )
        for (const { value } of [...values, { value: 'nothing' }]) {
          if (filter === 'status' && value === 'nothing') continue
          assert.equal(
            await total({ [`filter[${filter}]`]: value! }),
            await recount(`${column} = $2`, [value!]),
            `${list} ${filter} ${value}`,
          )
          compared++
        }
      }
    }
    assert.ok(compared > 15)
  })

  test('are exact after sweeps during concurrent writes, with one row each', async () => {
    const stops = [sweep(), sweep()]
    const rows = [{ status: 'active', product_id: 'x' }]
    const append = async (n: number) => {
      await server.db
        .tx(async (query) => {
          await addCounts(query, 'hammered', 'subscriptions', rows, n % 4 === 0 ? -1 : 1)
          await sleep(Math.random() * 10)
          if (n % 10 === 9) throw new Error('rolled back')
        })
        .catch(() => {})
    }
    await server.db.query(`insert into projects (id, organization_id, name) values ('hammered', $1, 'x')`, [
      project.organizationId,
    ])
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        for (let n = 0; n < 40; n++) await append(writer * 40 + n)
      }),
    )
    await until('the sweeps to add up all rows', async () => {
      const [{ many } = { many: null }] = await server.db.query(
        `select count(*) as many from (select from counts where project_id = 'hammered' group by field having count(*) > 1) as fields`,
      )
      return many === '0'
    })
    await Promise.all(stops.map((stop) => stop()))
    const sums = await server.db.query(
      `select field, sum(n) as n, count(*) as rows from counts where project_id = 'hammered' group by 1 order by 1`,
    )
    // Of 320, 32 are rolled back; of the rest 80 take one away.
    assert.deepEqual(
      sums.map(({ field, n }) => [field, n]),
      ['', 'product_id', 'status'].map((field) => [field, String(320 - 32 - 2 * 80)]),
    )
    assert.ok(sums.every(({ rows }) => rows === '1'))
  })

  test('a sweep continues after the database was away, and stops on request', async () => {
    let calls = 0
    const stop = sweepCounts({
      ...server.app,
      db: {
        ...server.db,
        query: async (statement, params) => {
          calls++
          if (calls === 1) throw Object.assign(new Error('Connection terminated'), { code: 'ECONNREFUSED' })
          return server.db.query(statement, params)
        },
      },
      clock: { ...server.app.clock, sleep: (_ms, signal) => server.app.clock.sleep(5, signal) },
    })
    await until('another call', async () => calls > 1)
    await stop()
    const atStop = calls
    await sleep(50)
    assert.equal(calls, atStop)
  })
})
