// Reads of one turn of the event loop share a batch: what that saves must not be seen in what they return.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { openDb } from '../../../src/lib/pg/db.ts'
import { sqlState } from '../../../src/lib/pg/errors.ts'
import { setUpDb } from '../../support/database.ts'

/** The beginning of the transaction that a read was done in. */
const NOW = 'select extract(epoch from now())::text'

describe('reads that are sent together', () => {
  const fresh = setUpDb({ readConnections: 1 })
  before(() => fresh.db.query('create table notes (n int unique deferrable initially deferred)'))
  const read = async (text: string, name?: string) => {
    const rows = await fresh.db.read({ ...(name !== undefined && { name }), text }, [])
    return rows.map((row) => row.text(0))
  }
  const notes = async () => (await fresh.db.query('select n from notes order by n')).map(({ n }) => Number(n))
  const outcomes = async (asked: Promise<(string | null)[]>[]) =>
    (await Promise.allSettled(asked)).map((one) => (one.status === 'fulfilled' ? one.value : sqlState(one.reason)))

  test('share batches of eight', async () => {
    const times = (await Promise.all(Array.from({ length: 20 }, () => read(NOW)))).flat()
    const sizes = [...Map.groupBy(times, (time) => time).values()].map(({ length }) => length)
    assert.deepEqual(sizes, [8, 8, 4])
  })

  test('all get a result when several of them fail, named or not', async () => {
    const asked = Array.from({ length: 40 }, (_, n) =>
      n % 5 === 0 ? read('select 1 / 0') : read(`select 'x${n % 3}'`, `x${n % 3}`),
    )
    const expected = asked.map((_, n) => (n % 5 === 0 ? '22012' : [`x${n % 3}`]))
    assert.deepEqual(await outcomes(asked), expected)
    // And so they are later, when the names are known.
    assert.deepEqual(await outcomes([read("select 'x1'", 'x1'), read("select 'x2'", 'x2')]), [['x1'], ['x2']])
  })

  test('all get a result when the value of one cannot be serialized', async () => {
    const unwritable = { toPostgres: () => assert.fail('unwritable') } as unknown as string
    const bad = assert.rejects(fresh.db.read({ text: 'select $1' }, [unwritable]), /unwritable/)
    assert.deepEqual(await outcomes([read('select 1'), read('select 2', 'two')]), [['1'], ['2']])
    await bad
    assert.deepEqual(await read('select 2', 'two'), ['2'])
  })

  test('receive each row once, although their batch is sent again', async () => {
    const taken: (string | null)[] = []
    const failing = read('select 1 / (3 - n) from generate_series(1, 3) n')
    const taking = fresh.db.read({ text: 'select n from generate_series(1, 3) n' }, [], (row) =>
      taken.push(row.text(0)),
    )
    assert.deepEqual(await outcomes([failing]), ['22012'])
    await taking
    assert.deepEqual(taken, ['1', '2', '3'])
  })

  test('that write are committed separately, even if others in the batch fail', async () => {
    const [now, one, failed, two] = await outcomes([
      read(NOW),
      read(`with made as (insert into notes values (1)) ${NOW}`, 'make one'),
      read('select 1 / 0'),
      read(`with made as (insert into notes values (2)) ${NOW}`),
    ])
    assert.equal(failed, '22012')
    assert.equal(new Set([now, one, two].map(String)).size, 3)
    assert.deepEqual(await notes(), [1, 2])
  })

  test('that write fail if they cannot be committed', async () => {
    const clash = 'insert into notes values (1) returning n'
    const asked = [read('select 1'), read(clash, 'clash'), read('select 2')]
    assert.deepEqual(await outcomes(asked), [['1'], '23505', ['2']])
    await assert.rejects(fresh.db.query({ name: 'clash too', text: clash }), (error) => sqlState(error) === '23505')
    assert.deepEqual(await notes(), [1, 2])
  })

  test('are sent before their connection is closed', async () => {
    const other = openDb({ url: fresh.url, applicationName: 'test', readConnections: 1 })
    await other.read({ text: 'select 1' }, [])
    const last = other.read({ text: 'select 2' }, [])
    await Promise.all([last, other.close()])
    assert.equal((await last)[0]!.text(0), '2')
  })
})
