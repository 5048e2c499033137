// Rows on their way from PostgreSQL to JSON: whatever lies in the columns, however the bytes arrive.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Db, openDb } from '../../../src/lib/pg/db.ts'
import { boolean, instant, integer, json, object, shape, text } from '../../../src/lib/shape/shape.ts'
import { holding, setUpDb } from '../../support/database.ts'
import { column } from '../../support/rows.ts'
import { until } from '../../support/time.ts'

const nullableText = text('A text.', { sql: '$1::text', nullable: true })

const thing = shape('Thing', 't', {
  first: nullableText,
  inner: object('Always there.', { flag: boolean('A flag.', { sql: '$2::boolean' }) }),
  maybe: object(
    'Null where its first field is.',
    {
      id: text('Its id.', { sql: '$3::text' }),
      at: instant('Its time.', { sql: '$4::timestamptz' }),
      deep: object('Deeper.', { n: integer('A number.', { sql: '$5::bigint' }) }, { nullable: true }),
    },
    { nullable: true },
  ),
  raw: json('JSON as it is.', { sql: '$6::jsonb', nullable: true }),
  last: text('Another text.', { sql: '$7::text' }),
})

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\t', '\u0001', '\u001f', '\u007f', ' ', 'é', '語', '🜁', '/') }),
  // Longer than what comes in one piece from a socket.
  fc.nat(300_000).map((n) => 'ä"'.repeat(n / 2)),
)
// PostgreSQL's text has no U+0000, and neither has UTF-8 any unpaired surrogate.
const storable = anyText.map((value) => value.replaceAll('\u0000', '').toWellFormed())
const micros = fc
  .integer({ min: Date.parse('0001-01-01T00:00:00Z'), max: Date.parse('9999-12-31T23:59:59Z') })
  .chain((ms) =>
    fc
      .constantFrom('000000', '100000', '120000', '123000', '123400', '123450', '123456', '000001')
      .map((fraction) => `${new Date(ms).toISOString().slice(0, 19)}.${fraction}Z`),
  )

describe('a row', () => {
  const fresh = setUpDb({ readConnections: 1 })

  test('becomes the JSON of its values, whatever they are', async () => {
    const anything = fc.record({
      first: fc.option(storable),
      flag: fc.boolean(),
      maybe: fc.option(fc.record({ id: storable, at: micros, n: fc.option(fc.bigInt(-(2n ** 53n), 2n ** 53n)) })),
      last: storable,
    })
    await fc.assert(
      fc.asyncProperty(anything, async ({ first, flag, maybe, last }) => {
        const [row] = await fresh.db.read({ name: 'thing', text: `select 'before', ${thing.columns}` }, [
          first,
          flag,
          maybe?.id ?? null,
          maybe?.at ?? null,
          maybe?.n ?? null,
          '[1, {"a": "b"}]',
          last,
        ])
        const expected = {
          first,
          inner: { flag },
          maybe: maybe && { id: maybe.id, at: maybe.at, deep: maybe.n === null ? null : { n: Number(maybe.n) } },
          raw: [1, { a: 'b' }],
          last,
        }
        const written = thing.write(row!, 1).toString()
        assert.deepEqual(JSON.parse(written), expected)
        // Nothing is written in more than one way: names in their order, no blanks but those of the database's own JSON.
        assert.equal(written.replace('[1, {"a": "b"}]', '[1,{"a":"b"}]'), JSON.stringify(expected))
        assert.equal(row!.text(0), 'before')
        assert.deepEqual([row!.text(1), row!.texts().at(-1)], [first, last])
      }),
      { numRuns: 150 },
    )
  })

  test('is written in its order, between the given beginning and end of a list', async () => {
    const rows = await fresh.db.read(
      { text: `select ${thing.columns} from generate_series(1, 3000) n`.replace('$7::text', "n || '\"'") },
      ['é', true, null, null, null, null],
    )
    const list = JSON.parse(thing.writeList(rows, '{"data":[', '],"é":1}').toString()) as { data: { last: string }[] }
    assert.deepEqual(
      column(list.data, 'last'),
      Array.from({ length: 3000 }, (_, n) => `${n + 1}"`),
    )
    assert.equal(thing.writeList([], '[', ']').toString(), '[]')
  })

  test('is refused if a time is not in the years 1 to 9999', async () => {
    for (const time of ['infinity', '-infinity', '10000-01-01 00:00:00+00', '0044-03-15 00:00:00+00 BC']) {
      const [row] = await fresh.db.read({ text: `select ${thing.columns}` }, [null, true, 'id', time, null, null, ''])
      assert.throws(() => thing.write(row!), /Bug: the database wrote the time/, time)
    }
  })

  test('comes with at most `maxRows` rows, prepared or not, on either kind of connection', async () => {
    const text = 'select n from generate_series(1, 9) n'
    const first = async (read: Db['read'], name: string | undefined, maxRows: number) => {
      const rows = await read({ ...(name !== undefined && { name }), text, maxRows }, [])
      return rows.map((row) => row.text(0)).join('')
    }
    for (const read of [fresh.db.read, fresh.db.readLong]) {
      for (const name of [undefined, 'nine']) {
        const all = await Promise.all([3, 9, 1, 12].map((maxRows) => first(read, name, maxRows)))
        assert.deepEqual(all, ['123', '123456789', '1', '123456789'])
      }
    }
  })

  test('is returned to the caller of its statement, also among statements that fail', async () => {
    const asked = Array.from({ length: 300 }, (_, n) =>
      n % 3 === 0
        ? fresh.db.read({ text: `select ${n} / 0` }, []).catch(({ code }) => code as string)
        : fresh.db
            .read(
              {
                name: n % 2 ? 'series' : undefined,
                text: "select n, $1::text || repeat('x', n % 7 * 9000) from generate_series(1, 9) n",
              } as never,
              [`${n}`],
            )
            .then((rows) => rows.map((row) => [row.text(0), row.text(1)?.replaceAll('x', '')])),
    )
    const responses = await Promise.all(asked)
    for (const [n, response] of responses.entries()) {
      const rows = Array.from({ length: 9 }, (_, k) => [`${k + 1}`, `${n}`])
      assert.deepEqual(response, n % 3 === 0 ? '22012' : rows)
    }
  })

  test('that is read alone does not wait behind large reads', async () => {
    const three = openDb({ url: fresh.url, applicationName: 'test', readConnections: 3 })
    const letGo = await holding(fresh.db, 'select pg_advisory_xact_lock(1)', [])
    const read = (large: boolean, text: string) => three.read({ text, large }, [])
    const large = Array.from({ length: 6 }, () => read(true, 'select pg_advisory_lock_shared(1)'))
    try {
      let ended = 0
      for (let n = 0; n < 6; n++) void read(false, 'select 1').then(() => ended++)
      await until('the short reads', () => ended === 6)
    } finally {
      await letGo()
      await Promise.all(large)
      await three.close()
    }
  })
})
