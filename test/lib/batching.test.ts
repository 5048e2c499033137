// Work that is asked for at the same time goes together; nobody waits for company, and nobody pays for a neighbour.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { batched, type Lanes } from '../../src/lib/batching.ts'
import type { Db } from '../../src/lib/pg/db.ts'

const db = {} as Db

/** Doubles numbers, one group for the even and one for the odd; each run ends when it is let. */
function doubling(fails: (items: number[]) => Error | undefined = () => undefined) {
  const runs: { items: number[]; end: () => void }[] = []
  const double = batched<number, number>({
    group: (item) => String(item % 2),
    async work(_db, items) {
      await new Promise<void>((end) => runs.push({ items, end }))
      const error = fails(items)
      if (error) throw error
      return items.map((item) => item * 2)
    },
  })
  return { runs, double }
}

const soon = () => new Promise((resolve) => setImmediate(resolve))

async function endAll(runs: { end: () => void }[]): Promise<void> {
  await soon()
  for (let n = 0; n < runs.length; n++) {
    runs[n]!.end()
    await soon()
  }
}

describe('what is asked for at the same time', () => {
  test('goes together at once, the others behind it, and each gets its own answer', async () => {
    const { runs, double } = doubling()
    const answers = [2, 4].map((item) => double(db, item))
    await soon()
    answers.push(...[6, 8, 10].map((item) => double(db, item)))
    await soon()
    assert.deepEqual(
      runs.map(({ items }) => items),
      [[2, 4]],
    )
    await endAll(runs)
    assert.deepEqual(await Promise.all(answers), [4, 8, 12, 16, 20])
    assert.deepEqual(
      runs.map(({ items }) => items),
      [
        [2, 4],
        [6, 8, 10],
      ],
    )
  })

  test('groups and databases do not wait for each other', async () => {
    const { runs, double } = doubling()
    const answers = [double(db, 2), double(db, 1), double({} as Db, 4)]
    await soon()
    assert.equal(runs.length, 3)
    await endAll(runs)
    assert.deepEqual(await Promise.all(answers), [4, 2, 8])
    const later = double(db, 6)
    await soon()
    assert.equal(runs.length, 4, 'an idle group goes at once again')
    await endAll(runs)
    assert.equal(await later, 12)
  })

  test('goes in parts when it is very much', async () => {
    const { runs, double } = doubling()
    const answers = Array.from({ length: 150 }, (_, n) => double(db, 2 * n))
    await endAll(runs)
    await Promise.all(answers)
    assert.deepEqual(
      runs.map(({ items }) => items.length),
      [64, 64, 22],
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
        group: (item) => item.slice(0, 1),
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
    const answers = [
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
      ['claim: a1', 'claim: b1'],
      'one thing at a time in a group, and other groups do not wait',
    )
    await endAll(runs)
    assert.deepEqual(await Promise.all([first, ...answers]), ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'b1'])
    assert.deepEqual(
      runs.slice(2).map(({ name }) => name),
      ['settle: a2 a4', 'claim: a3 a6', 'note: a5'],
    )
  })

  test('what is too much for one turn comes again behind the others', async () => {
    const { runs, claim, settle } = kinds()
    const answers = [...Array.from({ length: 100 }, (_, n) => claim(db, `a${n}`)), settle(db, 'a')]
    await endAll(runs)
    await Promise.all(answers)
    assert.deepEqual(
      runs.map(({ name }) => name.split(' ').length - 1),
      [64, 1, 36],
    )
  })
})

describe('what fails together', () => {
  test('is tried again one by one, so that one cannot spoil another’s', async () => {
    const { runs, double } = doubling((items) => (items.includes(6) ? new Error('six is bad') : undefined))
    const answers = [2, 4, 6, 8].map((item) => double(db, item).catch((error: Error) => error.message))
    await endAll(runs)
    assert.deepEqual(await Promise.all(answers), [4, 8, 'six is bad', 16])
    assert.deepEqual(
      runs.map(({ items }) => items),
      [[2, 4, 6, 8], [2], [4], [6], [8]],
    )
  })

  test('because the database is away is not tried again: nobody knows what was done', async () => {
    const lost = () => Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
    const { runs, double } = doubling((items) => (items.length > 1 ? lost() : undefined))
    const answers = [2, 4].map((item) => double(db, item).catch((error: Error) => error.message))
    await endAll(runs)
    assert.deepEqual(await Promise.all(answers), [lost().message, lost().message])
    assert.equal(runs.length, 1)
  })
})
