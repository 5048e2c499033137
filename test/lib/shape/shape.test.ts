// The two forms of a row: its JSON, and the object that code of this process reads.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonOf } from '../../../src/lib/json/json.ts'
import { JsonNumber } from '../../../src/lib/json/read.ts'
import { packRow } from '../../../src/lib/pg/row-bytes.ts'
import { Type } from '../../../src/lib/shape/schema.ts'
import { boolean, decimal, instant, integer, json, object, shape, text } from '../../../src/lib/shape/shape.ts'

const record = shape('Record', 'r', {
  name: text('', { enum: ['a', 'b"\n'] }),
  at: instant(''),
  count: integer(''),
  price: decimal('', { nullable: true }),
  on: boolean(''),
  tags: json('', { schema: Type.Array(Type.String()) }),
  place: object('', { city: text(''), floor: integer('') }, { nullable: true }),
  last: text('', { nullable: true }),
})
const ROWS = [
  ['b"\n', '2026-01-31 23:59:59.5+00', '12', '10.50', 't', '["x","y"]', 'Ulm', '3', null],
  ['a', '2026-01-31 00:00:00+00', '-1', null, 'f', '[]', null, null, 'end'],
].map((values) => packRow(['ignored', ...values]))

test('the object of a row is what its JSON says', () => {
  const list = record.list(ROWS, 1)
  assert.deepEqual(list.value(), JSON.parse(list.text()))
  assert.match(list.text(), /"price":10\.50,/)
  const [first, second] = list.value()
  // The compiler knows what each field is, and what may be null.
  const known: [string[], number | null, 'a' | 'b"\n'] = [first!.tags, first!.price, second!.name]
  assert.deepEqual(known, [['x', 'y'], 10.5, 'a'])
  // @ts-expect-error: the place may be null.
  assert.throws(() => second!.place.city)
})

test('an object keeps every digit of its numbers as text, and has plain numbers for code', () => {
  const both = jsonOf({
    a: new JsonNumber('1.10'),
    in: [{ b: new JsonNumber('2.0') }],
    rows: record.list([]),
    no: undefined,
  })
  assert.equal(both.text(), '{"a":1.10,"in":[{"b":2.0}],"rows":[]}')
  assert.deepEqual(both.value(), { a: 1.1, in: [{ b: 2 }], rows: [] })
})
