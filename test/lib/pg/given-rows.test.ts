// Statements on rows that come as parameters: what one row and several rows become in PostgreSQL.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type GivenRow, onGivenRows } from '../../../src/lib/pg/given-rows.ts'
import { setUpDb } from '../../support/database.ts'

// Everything that an array of PostgreSQL or a list of values could take for its own syntax.
const TEXTS = ['plain', '', 'NULL', '{a,b}', 'a "quoted" \\ one', "it's, $1", 'Zoë\n☃', null]

const ECHO = onGivenRows(
  'echo rows',
  { n: 'int', text: 'text', sure: 'boolean' },
  (rows) => `select a.n, a.text, a.sure, $1::text as first from ${rows} order by a.n`,
  1,
)

const rowOf = (text: string | null, n: number): GivenRow<'n' | 'text' | 'sure'> => ({ n: String(n), text, sure: 't' })

describe('a statement on given rows', () => {
  const fresh = setUpDb()

  test('reads one row and several with the same values, behind its first parameters', async () => {
    const all = TEXTS.map(rowOf)
    const echoed = (rows: typeof all) => rows.map((row) => ({ ...row, first: 'first' }))
    for (const row of all) assert.deepEqual(await fresh.db.query(...ECHO([row], 'first')), echoed([row]))
    assert.deepEqual(await fresh.db.query(...ECHO(all, 'first')), echoed(all))
    assert.deepEqual(await fresh.db.query(...ECHO([], 'first')), [])
  })

  test('is planned as a single step for one row', async () => {
    const steps = async (rows: ReturnType<typeof rowOf>[]) => {
      const [{ text }] = ECHO(rows, 'first')
      const plan = await fresh.db.query(`explain (generic_plan) ${text}`)
      return plan.filter((line) => /cost=/.test(line['QUERY PLAN']!)).length
    }
    assert.equal(await steps(TEXTS.slice(0, 1).map(rowOf)), 1)
    assert.notEqual(await steps(TEXTS.map(rowOf)), 1)
  })
})
