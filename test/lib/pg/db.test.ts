// How the database is reached: settings of the address beside ours, and transactions.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { after, before, describe, test } from 'node:test'
import { from as copyFrom } from 'pg-copy-streams'
import { type Db, openDb } from '../../../src/lib/pg/db.ts'
import { sqlState } from '../../../src/lib/pg/errors.ts'
import type { Query } from '../../../src/lib/pg/types.ts'
import { setUpDb } from '../../support/database.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { openProxy } from '../../support/proxy.ts'

describe('a database address with settings of its own', () => {
  let database: Awaited<ReturnType<typeof freshDatabase>>
  let db: Db
  before(async () => {
    database = await freshDatabase()
    const separator = database.url.includes('?') ? '&' : '?'
    const options = encodeURIComponent('-c work_mem=5MB -c TimeZone=Asia/Tokyo')
    db = openDb({ url: `${database.url}${separator}options=${options}`, applicationName: 'test' })
  })
  after(async () => {
    await db.close()
    await database.drop()
  })

  test('has both, and ours where they differ: times stay UTC', async () => {
    const settings = 'work_mem TimeZone jit statement_timeout'.split(' ')
    const shown =
      "select string_agg(current_setting(name), ' ' order by place) as all from unnest($1::text[]) with ordinality as s (name, place)"
    const expected = '5MB UTC off 30s'
    assert.equal((await db.query(shown, [settings]))[0]?.all, expected)
    const [row] = await db.read({ text: shown }, [settings])
    assert.equal(row?.text(0), expected)
  })
})

describe('a transaction', () => {
  // One connection: whatever a transaction leaves behind, the next statement meets.
  const fresh = setUpDb({ connections: 1 })
  before(() => fresh.db.query('create table notes (n int primary key)'))
  const note = (query: Query, n: number) => query('insert into notes values ($1) returning n', [n])
  const notes = async () => (await fresh.db.query('select n from notes order by n')).map(({ n }) => Number(n))

  test('runs statements that are sent together in their order, each with its own result', async () => {
    const responses = await fresh.db.tx(async (query) => {
      const responses = await Promise.all([1, 2, 3].map((n) => note(query, n)))
      return [...responses, await query('select count(*) as n from notes')]
    })
    assert.deepEqual(responses.flat(), [{ n: '1' }, { n: '2' }, { n: '3' }, { n: '3' }])
    assert.deepEqual(await notes(), [1, 2, 3])
  })

  test('of which one statement fails changes nothing, throws its error, and leaves the connection usable', async () => {
    const failing = (n: number) =>
      fresh.db.tx((query) => Promise.all([note(query, n), query('select 1 / $1::int', [0]), note(query, n + 1)]))
    for (let n = 10; n < 20; n += 2) {
      await assert.rejects(failing(n), (error) => sqlState(error) === '22012')
      assert.deepEqual(await notes(), [1, 2, 3])
    }
  })

  test('of which one value cannot be serialized changes nothing either', async () => {
    const unwritable = { toPostgres: () => assert.fail('unwritable') } as unknown as string
    const failing = fresh.db.tx((query) =>
      Promise.all([note(query, 30), query('select $1', [unwritable]), note(query, 31)]),
    )
    await assert.rejects(failing, /unwritable/)
    assert.deepEqual(await notes(), [1, 2, 3])
  })

  test('leaves a connection that takes COPY', async () => {
    await fresh.db.tx((query) => note(query, 4))
    const { client, release } = await fresh.db.connect()
    await pipeline(Readable.from(['5\n', '6\n']), client.query(copyFrom('copy notes from stdin')))
    release()
    assert.deepEqual(await notes(), [1, 2, 3, 4, 5, 6])
  })

  test('sends its begin with its first statement, and concurrent statements together with one sync', async () => {
    const sent: string[] = []
    // The proxy shows its pattern every piece that goes to the database.
    const proxy = await openProxy(fresh.url, { pattern: { test: (text: string) => !sent.push(text) } as RegExp })
    const other = openDb({ url: proxy.url, applicationName: 'test', connections: 1 })
    const add = (query: Query, numbers: number[]) =>
      Promise.all(numbers.map((n) => query(`insert into notes values (${n})`)))
    // Names of its own for the beginning and the end are prepared once.
    await other.tx((query) => query('select 1'))
    sent.length = 0
    await other.tx((query) => add(query, [70, 71, 72]))
    await other.tx(async (query, commit) => {
      const added = add(query, [73, 74])
      commit()
      await added
    })
    await other.close()
    await proxy.cut()
    // Sync is a message of five bytes, at which PostgreSQL responds to all that came before.
    const pieces = sent
      .map((text) => text.replaceAll('S\0\0\0\x04', ' sync '))
      .map((text) => text.match(/(?<=insert into notes values \()\d+|\b(begin|commit|sync)\b/g)!.join(' '))
    assert.deepEqual(pieces, ['begin 70 71 72 sync', 'commit sync', 'begin 73 74 commit sync'])
  })

  test('whose commit is sent with its statements is committed once they succeed, and rolled back if one fails', async () => {
    const before = await notes()
    const twice = (n: number, other: number) =>
      fresh.db.tx(async (query, commit) => {
        const noted = Promise.all([note(query, n), note(query, other), note(query, n + 1)])
        commit()
        await noted
      })
    for (let n = 80; n < 90; n += 2) {
      await assert.rejects(twice(n, n), (error) => sqlState(error) === '23505')
      assert.deepEqual(await notes(), before)
    }
    await twice(80, 90)
    assert.deepEqual(await notes(), [...before, 80, 81, 90])
  })

  test('fails if the caller ignores a failed statement, whether the commit was sent with it or after it', async () => {
    const before = await notes()
    const careless = fresh.db.tx(async (query, commit) => {
      const lost = query('select 1 / $1::int', [0]).catch(() => {})
      const noted = note(query, 95).catch(() => {})
      commit()
      await Promise.all([lost, noted])
    })
    await assert.rejects(careless, (error) => sqlState(error) === '22012')
    const later = fresh.db.tx(async (query) => {
      await query('select 1 / $1::int', [0]).catch(() => {})
    })
    await assert.rejects(later, /ended with ROLLBACK/)
    assert.deepEqual(await notes(), before)
  })
})

describe('a statement with a name', () => {
  const fresh = setUpDb({ connections: 2 })
  const numbers = {
    name: 'numbers',
    text: `select n as one, nullif(10 / n, 5) as two, n as "Three 3" from unnest($1::int[]) as n`,
  }
  const row = (n: number, two: number | null) => ({
    one: String(n),
    two: two === null ? null : String(two),
    'Three 3': String(n),
  })

  test('returns rows by column name each time, on each connection, also if it found nothing or failed before', async () => {
    const ask = (query: Query, ...given: number[]) => query(numbers, [given.map(String)])
    const divided = (error: unknown) => sqlState(error) === '22012'
    for (let time = 0; time < 3; time += 1) {
      await assert.rejects(ask(fresh.db.query, 1, 0), divided)
      assert.deepEqual(await ask(fresh.db.query), [])
      assert.deepEqual(await ask(fresh.db.query, 1, 2), [row(1, 10), row(2, null)])
      // Two at once take the other connection too; in a transaction they go one behind the other.
      const apart = Promise.all([ask(fresh.db.query, 10), ask(fresh.db.query, 3)])
      const together = fresh.db.tx((query) => Promise.all([ask(query, 5), ask(query), ask(query, 4, 2)]))
      assert.deepEqual(await apart, [[row(10, 1)], [row(3, 3)]])
      assert.deepEqual(await together, [[row(5, 2)], [], [row(4, 2), row(2, null)]])
      await assert.rejects(
        fresh.db.tx((query) => Promise.all([ask(query, 0), ask(query, 1)])),
        divided,
      )
    }
  })

  test('that returns no rows can be run again', async () => {
    await fresh.db.query('create table counted (n int)')
    const add = { name: 'add', text: 'insert into counted values ($1)' }
    for (let n = 1; n <= 3; n += 1) assert.deepEqual(await fresh.db.query(add, [n]), [])
    assert.deepEqual(await fresh.db.query('select sum(n) as n from counted'), [{ n: '6' }])
  })

  test('whose columns were changed fails instead of returning values under wrong names', async () => {
    const one = openDb({ url: fresh.url, applicationName: 'test', connections: 1 })
    await one.query('create table named (a int, b int); insert into named values (1, 2)')
    const all = { name: 'all', text: 'select * from named' }
    assert.deepEqual(await one.query(all), [{ a: '1', b: '2' }])
    await one.query('alter table named rename column a to c')
    await assert.rejects(one.query(all), /cached plan must not change result type/)
    await one.close()
  })
})
