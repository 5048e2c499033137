// What every list keeps: its envelope, order, limits and totals, and what a cursor is and is not.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Columns, insert, type Rows, type Table } from '../../support/data.ts'
import { column } from '../../support/rows.ts'
import { startTestServer } from '../../support/server.ts'
import { pages, walk } from '../../support/walk.ts'

const LISTS = ['funnels', 'profiles', 'sessions', 'subscriptions', 'products', 'transactions'] as const
const SYNCED = ['profiles', 'sessions', 'subscriptions', 'transactions'] as const
const MAX_LIMITS = { funnels: 100, products: 100, profiles: 500, sessions: 500, subscriptions: 500, transactions: 500 }
const LONG_AGO = { 'filter[updated_at.from]': '2000-01-01T00:00:00Z' }

/** 25 rows, some made in the same microsecond and some changed in the same: only the id tells them apart. */
const rows: Columns[] = Array.from({ length: 25 }, (_, n) => ({
  id: `${'~aB_z0'[n % 6]}${String(n).padStart(2, '0')}${n === 3 ? '~'.repeat(61) : ''}`,
  created_at: `2026-01-01T00:00:00.00000${n % 4}Z`,
  updated_at: `2026-02-01T00:00:00.00000${n % 3}Z`,
}))
const FIRST = { profile_id: rows[0]?.id, product_id: rows[0]?.id }
const byteOrder = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))
const sorted = (time: 'created_at' | 'updated_at') =>
  [...rows].sort((a, b) => byteOrder(`${a[time]} ${a.id}`, `${b[time]} ${b.id}`)).map(({ id }) => id)
const NEWEST_FIRST = sorted('created_at').reverse()
const OLDEST_CHANGE_FIRST = sorted('updated_at')

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
const other = await server.project()
for (const one of [project, other]) await insert(server.db, one, full())

describe('a list', () => {
  const remove = (table: Table, id: string) =>
    server.db.query(`delete from ${table} where project_id = $1 and id = $2`, [project.id, id])
  const refusal = async (path: string, query: Record<string, string>, one = project) => {
    const { status, body } = await one.get(path, query)
    assert.equal(status, 400, `${path} ${JSON.stringify(query)}`)
    return body.message as string
  }

  for (const list of LISTS) {
    test(`/${list}: newest first, equal times by id, whatever the limit`, async () => {
      for (const limit of ['1', '7', '25', '26', '100']) {
        const walked = await Array.fromAsync(pages(project, `/${list}`, { limit }))
        assert.deepEqual(
          walked.flatMap(({ items }) => items.map(({ id }) => id)),
          NEWEST_FIRST,
        )
        assert.equal(walked.length, Math.ceil(25 / Number(limit)), 'No page is empty.')
      }
      const [first] = await Array.fromAsync(pages(project, `/${list}`))
      assert.deepEqual([first?.items.length, first?.total], [20, 25])
    })

    test(`/${list}: limits from 1 to ${MAX_LIMITS[list]}, never clamped`, async () => {
      for (const limit of [1, MAX_LIMITS[list]])
        assert.equal((await project.get(`/${list}`, { limit: `${limit}` })).status, 200)
      for (const limit of [0, MAX_LIMITS[list] + 1, 1_000_000]) {
        const message = await refusal(`/${list}`, { limit: `${limit}` })
        assert.equal(message, `limit must be a whole number from 1 to ${MAX_LIMITS[list]}, got "${limit}".`)
      }
    })

    test(`/${list}: an empty list is a page without items`, async () => {
      const empty = await server.project()
      assert.equal((await empty.get(`/${list}`)).text, '{"data":[],"pagination":{"has_more":false,"total":0}}')
    })

    test(`/${list}: the id of an item is a cursor too, and the total is counted again`, async () => {
      const at = 11
      const response = await project.get(`/${list}`, { cursor: NEWEST_FIRST[at] as string, limit: '5' })
      const next = await project.get(`/${list}`, { cursor: response.body.pagination.next_cursor, limit: '100' })
      assert.deepEqual(column([...response.body.data, ...next.body.data], 'id'), NEWEST_FIRST.slice(at + 1))
      assert.deepEqual([response.body.pagination.total, next.body.pagination.total], [25, 25])
      assert.match(
        await refusal(`/${list}`, { cursor: 'nobody' }),
        /^cursor must be a next_cursor .* or the id of an item\.$/,
      )
    })
  }

  for (const list of SYNCED) {
    test(`/${list}: with an updated_at filter the oldest change first, and a horizon`, async () => {
      for (const limit of ['1', '7', '100']) {
        const items = await walk(project, `/${list}`, { limit, ...LONG_AGO })
        assert.deepEqual(column(items, 'id'), OLDEST_CHANGE_FIRST)
      }
      const until = await walk(project, `/${list}`, { 'filter[updated_at.to]': '2026-02-01T00:00:00.000001Z' })
      assert.equal(until.length, 9)
    })

    test(`/${list}: updated_at.from at or after updated_at.to gives an empty list, not an error`, async () => {
      for (const to of ['2026-02-01T00:00:00.000001Z', '2026-01-01T00:00:00Z']) {
        const window = { 'filter[updated_at.from]': '2026-02-01T00:00:00.000001Z', 'filter[updated_at.to]': to }
        const [page] = await Array.fromAsync(pages(project, `/${list}`, window))
        assert.deepEqual([page?.items, page?.total], [[], 0])
      }
    })

    test(`/${list}: an id is no cursor with an updated_at filter`, async () => {
      const message = await refusal(`/${list}`, { ...LONG_AGO, cursor: NEWEST_FIRST[0] as string })
      assert.equal(message, 'cursor must be a next_cursor of this list with the same filters, unchanged.')
    })
  }

  test('a cursor is for one list, one project and one set of filters, at any limit', async () => {
    const cursorOf = async (path: string, query: Record<string, string> = {}) =>
      (await project.get(path, { limit: '3', ...query })).body.pagination.next_cursor as string
    const cursor = await cursorOf('/subscriptions')
    for (const limit of ['1', '3', '500']) {
      assert.equal((await project.get('/subscriptions', { cursor, limit })).status, 200)
    }
    await refusal('/transactions', { cursor })
    await refusal('/subscriptions', { cursor }, other)
    for (const filter of ['status', 'psp', 'funnel_id', 'product_id', 'profile_id', 'email', 'created_after']) {
      const value = { status: 'active', created_after: '2020-01-01T00:00:00Z' }[filter] ?? 'x'
      await refusal('/subscriptions', { cursor, [`filter[${filter}]`]: value })
    }
    await refusal('/subscriptions', { cursor, ...LONG_AGO })

    const synced = await cursorOf('/subscriptions', LONG_AGO)
    assert.equal((await project.get('/subscriptions', { ...LONG_AGO, cursor: synced })).status, 200)
    await refusal('/subscriptions', { cursor: synced })
    await refusal('/subscriptions', { cursor: synced, 'filter[updated_at.from]': '2000-01-01T00:00:01Z' })
    await refusal('/subscriptions', { cursor: synced, 'filter[updated_at.to]': '2000-01-01T00:00:00Z' })
    await refusal('/subscriptions', { cursor: synced, ...LONG_AGO, 'filter[updated_at.to]': '2030-01-01T00:00:00Z' })
    // The same instant, written otherwise, is the same filter.
    const sameInstant = { 'filter[updated_at.from]': '2000-01-01T01:00:00.000+01:00' }
    assert.equal((await project.get('/subscriptions', { ...sameInstant, cursor: synced })).status, 200)

    const undeleted = await cursorOf('/funnels')
    await refusal('/funnels', { cursor: undeleted, 'filter[deleted]': 'true' })
    assert.equal((await project.get('/funnels', { cursor: undeleted, 'filter[deleted]': 'false' })).status, 200)
  })

  test('400 for a cursor that was changed in any way', async () => {
    const { next_cursor: cursor } = (await project.get('/products', { limit: '3' })).body.pagination
    for (let at = 0; at < cursor.length; at++) {
      const changed = cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1)
      await refusal('/products', { cursor: changed })
    }
    for (const changed of [
      cursor.slice(1),
      cursor.slice(0, -1),
      `${cursor}A`,
      `${cursor}=`,
      cursor.toLowerCase(),
      `${cursor} `,
    ]) {
      await refusal('/products', { cursor: changed })
    }
    for (const nonsense of ['x', '💥', 'x'.repeat(5000), '2026-01-01T00:00:00Z', '0', '-1', 'A'.repeat(46)]) {
      await refusal('/products', { cursor: nonsense })
    }
    await refusal('/products', { cursor: 'only-theirs' })
    await insert(server.db, other, { products: [{ id: 'only-theirs' }] })
    await refusal('/products', { cursor: 'only-theirs' })
  })

  test('a walk continues after the position of an item that was deleted or changed', async () => {
    const [gone, changed] = [NEWEST_FIRST[4] as string, NEWEST_FIRST[9] as string]
    const seen: string[] = []
    for await (const { items } of pages(project, '/transactions', { limit: '5' })) {
      seen.push(...items.map(({ id }) => id))
      if (seen.at(-1) === gone) await remove('transactions', gone)
      if (seen.at(-1) === changed) {
        const sql = `update transactions set created_at = '2020-01-01', updated_at = now() where project_id = $1 and id = $2`
        await server.db.query(sql, [project.id, changed])
      }
    }
    // What changed its place may come again; nobody else is lost or repeated.
    assert.deepEqual(seen, [...NEWEST_FIRST, changed])
  })

  for (const query of [{}, { 'filter[profile_id]': rows[0]?.id }, { 'filter[status]': 'active' }, LONG_AGO]) {
    const filters = query as Record<string, string>
    test(`the total stays that of the beginning of the walk while rows are added: ${Object.keys(query)[0] ?? 'no filter'}`, async () => {
      const crowd = await server.project()
      await insert(server.db, crowd, full())
      let made = 0
      for await (const { total } of pages(crowd, '/subscriptions', { ...filters, limit: '10' })) {
        assert.equal(total, 25)
        const late = { id: `late-${++made}`, created_at: '2010-01-01T00:00:00Z', ...FIRST }
        await insert(server.db, crowd, { subscriptions: [late] })
      }
      assert.equal((await crowd.get('/subscriptions', filters)).body.pagination.total, 25 + made)
    })
  }

  test('a walk keeps the horizon of its first page, and a new one has its own', async () => {
    const [first] = await Array.fromAsync(pages(project, '/subscriptions', { ...LONG_AGO, limit: '10' }))
    await server.db.query('select pg_sleep(1.1)')
    const slow: (string | undefined)[] = []
    for await (const { horizon } of pages(project, '/subscriptions', { ...LONG_AGO, limit: '10' })) {
      slow.push(horizon)
      if (slow.length === 1) await server.db.query('select pg_sleep(1.1)')
    }
    assert.equal(new Set(slow).size, 1)
    assert.ok(slow[0]! > first!.horizon!)
  })
})

/** The 25 rows in every list; where one refers to another, it is to the first. */
function full(): Rows {
  const { profile_id, product_id } = FIRST
  const owned = rows.map((row) => ({ ...row, profile_id }))
  const sold = owned.map((row) => ({ ...row, product_id }))
  return { funnels: rows, profiles: rows, products: rows, sessions: owned, subscriptions: sold, transactions: owned }
}
