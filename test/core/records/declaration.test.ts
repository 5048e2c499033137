// Record declarations: what does not compile, and that every table and column that they name exists.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { listOf } from '../../../src/core/lists/list.ts'
import { profile, profileRecord } from '../../../src/core/records/profile.ts'
import { COUNTED, KINDS } from '../../../src/core/records/records.ts'
import { replyRecord } from '../../../src/core/records/reply.ts'
import { shape, text } from '../../../src/lib/shape/shape.ts'
import { openImports } from '../../support/imports.ts'

const imports = await openImports()
after(() => imports.stop())

const rest = { shape: profile, alias: 'p', joins: '', maxLimit: 100, sync: true }
const filter = { schema: {}, where: () => '' }

test('a list without counters, or with a filter whose counter is not kept, does not compile', () => {
  // @ts-expect-error: replies are not counted.
  listOf(replyRecord, { ...rest, filters: {} })
  const byCountry = { ...rest, filters: { country: { ...filter, counter: 'country' as const } } }
  // @ts-expect-error: profiles are not counted by country.
  listOf(profileRecord, byCountry)
  assert.equal(
    listOf(profileRecord, { ...rest, filters: { funnel_id: { ...filter, counter: 'funnel_id' as const } } }).name,
    'profiles',
  )
})

test('erased and counted fields are columns of the table', async () => {
  for (const { table, erased } of KINDS) {
    const rows = await imports.rows('select attname as name from pg_attribute where attrelid = $1::regclass', [table])
    const columns = rows.map(({ name }) => name)
    for (const { column } of erased) assert.ok(columns.includes(column), `${table}.${column}`)
  }
  for (const { table, counts } of COUNTED)
    for (const value of Object.values(counts)) await imports.rows(`select ${value('t')} from ${table} t limit 0`)
})

test('a shape whose SQL contains commas is read by name', async () => {
  const odd = shape('Odd', 'x', {
    id: text('Identifier.'),
    id_or_none: text('The same.', { sql: "coalesce(x.id, 'none')" }),
  })
  const [row] = await imports.rows(`select 'odd' as id, ${odd.namedColumns} from (values (null::text)) x (id)`)
  assert.deepEqual(JSON.parse(odd.writeNamed(row!).toString()), { id: null, id_or_none: 'none' })
})
