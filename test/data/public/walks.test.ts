// A full walk returns every row that stayed the same exactly once, whatever is written between any two of its pages.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { type Columns, insert } from '../../support/data.ts'
import { startTestServer } from '../../support/server.ts'
import { pages } from '../../support/walk.ts'

const ROWS = 120
const SYNC = { 'filter[updated_at.from]': '2000-01-01T00:00:00Z' }
// Few instants, so that many rows share one and pages end in the middle of them.
const instant = (n: number) => `2026-01-01T00:00:00.00000${n % 7}Z`
const initial: Columns[] = Array.from({ length: ROWS }, (_, n) => ({
  id: `sub-${String(n).padStart(3, '0')}`,
  created_at: instant(n * 3),
  updated_at: instant(n * 5),
  profile_id: 'profile',
  product_id: 'product',
}))

type Write = { kind: 'insert' | 'update' | 'delete' | 'move'; row: number; at: number }
const write: fc.Arbitrary<Write> = fc.record({
  kind: fc.constantFrom('insert', 'update', 'delete', 'move'),
  row: fc.nat(ROWS - 1),
  at: fc.nat(6),
})

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
await insert(server.db, project, { profiles: [{ id: 'profile' }], products: [{ id: 'product' }] })

describe('a walk among writers', () => {
  let touched: Set<string>
  let made = 0
  async function restore() {
    touched = new Set()
    await server.db.query('delete from subscriptions')
    await insert(server.db, project, { subscriptions: initial })
  }

  async function apply({ kind, row, at }: Write) {
    const id = kind === 'insert' ? `new-${++made}` : String(initial[row]?.id)
    touched.add(id)
    const own = [project.id, id]
    if (kind === 'insert') {
      const fresh = {
        id,
        created_at: instant(at),
        updated_at: instant(at),
        profile_id: 'profile',
        product_id: 'product',
      }
      await insert(server.db, project, { subscriptions: [fresh] })
    } else if (kind === 'delete') {
      await server.db.query('delete from subscriptions where project_id = $1 and id = $2', own)
    } else if (kind === 'update') {
      await server.db.query('update subscriptions set updated_at = db_clock() where project_id = $1 and id = $2', own)
    } else {
      const sql = 'update subscriptions set created_at = $3, updated_at = $3 where project_id = $1 and id = $2'
      await server.db.query(sql, [...own, instant(at)])
    }
  }

  for (const [order, query] of [
    ['newest first', {}],
    ['by updated_at', SYNC],
  ] as const) {
    for (const [limit, runs] of [
      [1, 4],
      [7, 15],
      [100, 15],
      [500, 5],
    ] as const) {
      test(`${order}, limit ${limit}: each unchanged record comes exactly once, in order`, async () => {
        const between = fc.array(fc.array(write, { maxLength: 5 }), { minLength: 1, maxLength: ROWS })
        await fc.assert(
          fc.asyncProperty(between, async (writes) => {
            await restore()
            const seen: string[] = []
            let page = 0
            for await (const { items } of pages(project, '/subscriptions', { ...query, limit: String(limit) })) {
              seen.push(...items.map(({ id }) => id))
              for (const one of writes[page++] ?? []) await apply(one)
            }
            const same = initial.filter(({ id }) => !touched.has(String(id)))
            const place = (row: Columns) => `${order === 'by updated_at' ? row.updated_at : row.created_at} ${row.id}`
            const expected = same.sort((a, b) => (place(a) < place(b) ? -1 : 1)).map(({ id }) => String(id))
            if (order === 'newest first') expected.reverse()
            assert.deepEqual(
              seen.filter((id) => !touched.has(id)),
              expected,
            )
          }),
          { numRuns: runs },
        )
      })
    }
  }
})
