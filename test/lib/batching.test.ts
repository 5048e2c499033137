// Concurrent calls are batched; none is delayed to form a batch, and none pays for another tenant's trouble.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { batched, type Lanes, type LockTimeout } from '../../src/lib/batching.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import { column } from '../support/rows.ts'

const db = {} as Db

/** Doubles numbers, of one tenant the even and of another the odd ones; each run ends when it is let. */
function doubling(fails: (items: number[], lockTimeout: LockTimeout) => Error | undefined = () => undefined) {
  const runs: { items: number[]; lockTimeout: LockTimeout; end: () => void }[] = []
  const double = batched<number, number>({
    tenant: (item) => String(item % 2),
    async work(_db, items, lockTimeout) {
      await new Promise<void>((end) => runs.push({ items, lockTimeout, end }))
      const error = fails(items, lockTimeout)
      if (error) throw error
      return items.map((item) => item * 2)
    },
  })
  return { runs, double }
}

const lockTimeout = () => Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })

const soon = () => new Promise((resolve) => setImmediate(resolve))

async function endAll(runs: { end: () => void }[]): Promise<void> {
  await soon()
  for (let n = 0; n < runs.length; n++) {
    runs[n]!.end()
    await soon()
  }
}

describe('calls at the same time', () => {
  test('are one batch at once, later calls the next one, and each gets its own result', async () => {
    const { runs, double } = doubling()
    const responses = [2, 4].map((item) => double(db, item))
    await soon()
    responses.push(...[6, 8, 10].map((item) => double(db, item)))
    await soon()
    assert.deepEqual(column(runs, 'items'), [[2, 4]])
    await endAll(runs)
    assert.deepEqual(await Promise.all(responses), [4, 8, 12, 16, 20])
    assert.deepEqual(column(runs, 'items'), [
      [2, 4],
      [6, 8, 10],
    ])
  })

  test('are one batch for several tenants, and one for each database', async () => {
    const { runs, double } = doubling()
    const responses = [double(db, 2), double(db, 1), double({} as Db, 4)]
    await soon()
    assert.deepEqual(column(runs, 'items'), [[2, 1], [4]])
    await endAll(runs)
    assert.deepEqual(await Promise.all(responses), [4, 2, 8])
    const later = double(db, 6)
    await soon()
    assert.equal(runs.length, 3, 'an idle lane goes at once again')
    await endAll(runs)
    assert.equal(await later, 12)
  })

  test('are several batches if there are very many', async () => {
    const { runs, double } = doubling()
    const responses = Array.from({ length: 150 }, (_, n) => double(db, 2 * n))
    await endAll(runs)
    await Promise.all(responses)
    assert.deepEqual(
      runs.map(({ items }) => items.length),
      [64, 64, 22],
    )
  })

  test('each tenant has its first call in a batch before another has its second', async () => {
    const { runs, double } = doubling()
    const responses = Array.from({ length: 100 }, (_, n) => double(db, 2 * n))
    responses.push(double(db, 1), double(db, 3))
    await endAll(runs)
    await Promise.all(responses)
    assert.deepEqual(runs[0]!.items.slice(0, 5), [0, 1, 2, 3, 4])
    assert.deepEqual(
      runs.map(({ items }) => items.length),
      [64, 38],
    )
  })
})

describe('kinds that share lanes', () => {
  /** Says what goes, and lets it end when it is told to. */
  function kinds() {
    const lanes: Lanes = new WeakMap()
    const runs: { name: string; end: () => void }[] = []
    const kind = (name: string) =>
      batched<string, string>({
        tenant: (item) => item.slice(0, 1),
        async work(_db, items) {
          await new Promise<void>((end) => runs.push({ name: `${name}: ${items.join(' ')}`, end }))
          return items
        },
        lanes,
      })
    return { runs, claim: kind('claim'), settle: kind('settle'), note: kind('note') }
  }

  test('take turns, in the order in which they came', async () => {
    const { runs, claim, settle, note } = kinds()
    const first = claim(db, 'a1')
    await soon()
    const responses = [
      settle(db, 'a2'),
      claim(db, 'a3'),
      settle(db, 'a4'),
      note(db, 'a5'),
      claim(db, 'a6'),
      claim(db, 'b1'),
    ]
    await soon()
    assert.deepEqual(
      runs.map(({ name }) => name),
      ['claim: a1'],
      'one thing at a time',
    )
    await endAll(runs)
    assert.deepEqual(await Promise.all([first, ...responses]), ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'b1'])
    assert.deepEqual(column(runs.slice(1), 'name'), ['settle: a2 a4', 'claim: a3 a6 b1', 'note: a5'])
  })

  test('calls beyond one batch queue again behind the other kinds', async () => {
    const { runs, claim, settle } = kinds()
    const responses = [...Array.from({ length: 100 }, (_, n) => claim(db, `a${n}`)), settle(db, 'a')]
    await endAll(runs)
    await Promise.all(responses)
    assert.deepEqual(
      runs.map(({ name }) => name.split(' ').length - 1),
      [64, 1, 36],
    )
  })
})

describe('a batch that fails', () => {
  test('is tried again one by one, so that one call cannot fail another', async () => {
    const { runs, double } = doubling((items) => (items.includes(6) ? new Error('six is bad') : undefined))
    const responses = [2, 4, 6, 8].map((item) => double(db, item).catch((error: Error) => error.message))
    await endAll(runs)
    assert.deepEqual(await Promise.all(responses), [4, 8, 'six is bad', 16])
    assert.deepEqual(column(runs, 'items'), [[2, 4, 6, 8], [2, 4, 6, 8], [2], [4], [6], [8]])
  })

  test('is tried again for each tenant separately, so that one cannot fail or delay another', async () => {
    const { runs, double } = doubling((items) => (items.includes(6) ? new Error('six is bad') : undefined))
    const responses = [1, 6, 3].map((item) => double(db, item).catch((error: Error) => error.message))
    await soon()
    runs[0]!.end()
    await soon()
    assert.deepEqual(column(runs.slice(1), 'items'), [[1, 3], [6]])
    runs[1]!.end()
    assert.deepEqual([await responses[0], await responses[2]], [2, 6], 'while the other tenant is still at work')
    runs[2]!.end()
    assert.equal(await responses[1], 'six is bad')
  })

  test('by a lock timeout is tried again without a timeout for the tenant that waits, and without the other tenants', async () => {
    let isHeld = true
    const { runs, double } = doubling((items, limit) =>
      isHeld && limit !== null && items.includes(2) ? lockTimeout() : undefined,
    )
    const held = [double(db, 2)]
    await soon()
    held.push(double(db, 4))
    const free = double(db, 1)
    runs[0]!.end()
    await soon()
    held.push(double(db, 6))
    const later = double(db, 3)
    await soon()
    const shown = () => runs.map(({ items, lockTimeout: limit }) => [items, limit !== null])
    assert.deepEqual(shown().slice(0, 3), [
      [[2], true],
      [[2, 4], false],
      [[1], true],
    ])
    runs[2]!.end()
    await soon()
    assert.deepEqual(shown()[3], [[3], true])
    runs[3]!.end()
    assert.deepEqual(await Promise.all([free, later]), [2, 6], 'while the lock is held')
    isHeld = false
    runs[1]!.end()
    await endAll(runs)
    assert.deepEqual(await Promise.all(held), [4, 8, 12])
    assert.deepEqual(shown().slice(4), [[[6], false]])
    const back = [double(db, 2), double(db, 1)]
    await soon()
    assert.deepEqual(shown()[5], [[2, 1], true], 'the tenant is back')
    runs[5]!.end()
    await soon()
    await endAll(runs)
    assert.deepEqual(await Promise.all(back), [4, 2])
  })

  test('because the database is away is not tried again: its outcome is unknown', async () => {
    const lost = () => Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
    const { runs, double } = doubling((items) => (items.length > 1 ? lost() : undefined))
    const responses = [2, 4].map((item) => double(db, item).catch((error: Error) => error.message))
    await endAll(runs)
    assert.deepEqual(await Promise.all(responses), [lost().message, lost().message])
    assert.equal(runs.length, 1)
  })
})
