// Turns among tenants: who asks for much waits behind themselves.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createFairQueue } from '../../src/lib/fair-queue.ts'

/** Starts work that ends when told to; `begun` lists who runs. */
function open(most: number, share: number) {
  const turns = createFairQueue(most, share)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const start = (name: string, weight = 1) =>
    turns.run(name[0]!, weight, () => {
      begun.push(name)
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)))
    })
  const end = async (name: string) => {
    ends.get(name)!()
    await new Promise(setImmediate)
  }
  return { turns, begun, start, end }
}

describe('the fair queue', () => {
  test('work starts at once while there is room, and its result is returned', async () => {
    const { turns } = open(2, 2)
    assert.equal(await turns.run('a', 1, async () => 7), 7)
    await assert.rejects(
      turns.run('a', 1, async () => assert.fail('broken')),
      /broken/,
    )
    assert.equal(turns.waiting(), 0)
  })

  test('a tenant waits for its own share, and no other tenant waits with it', async () => {
    const { turns, begun, start, end } = open(4, 2)
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1']) void start(name)
    assert.deepEqual(begun, ['a1', 'a2', 'b1'])
    assert.equal(turns.waiting(), 2)
    await end('a1')
    await end('a2')
    assert.deepEqual(begun, ['a1', 'a2', 'b1', 'a3'])
  })

  test('a tenant gets half its share while other tenants have work, and for a second after it ends', async () => {
    const { begun, start, end } = open(8, 4)
    void start('b1')
    await end('b1')
    for (const name of ['a1', 'a2', 'a3', 'a4']) void start(name)
    assert.deepEqual(begun, ['b1', 'a1', 'a2'])
    await sleep(1100)
    await end('a1')
    assert.deepEqual(begun, ['b1', 'a1', 'a2', 'a3', 'a4'])
    void start('a5')
    assert.equal(begun.at(-1), 'a5')
  })

  test('waiting tenants are served in turn, one of each', async () => {
    const { begun, start, end } = open(1, 8)
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) void start(name)
    for (const name of ['a1', 'a2', 'b1', 'c1', 'a3']) await end(name)
    assert.deepEqual(begun, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
  })

  test('heavy work that waits gets the next free room before light work that arrives later', async () => {
    const { begun, start, end } = open(3, 8)
    for (const name of ['a1', 'b1', 'c1']) void start(name)
    void start('h1', 3)
    await end('a1')
    void start('d1')
    await end('b1')
    await end('c1')
    assert.deepEqual(begun, ['a1', 'b1', 'c1', 'h1'])
    await end('h1')
    assert.deepEqual(begun.at(-1), 'd1')
  })

  test('a tenant runs two of the heaviest pieces of work at once, one while other tenants wait; its light work does not wait', async () => {
    const { begun, start, end } = open(96, 20)
    for (const name of ['a1', 'a2']) void start(name, 99)
    void start('a3')
    assert.deepEqual(begun, ['a1', 'a2', 'a3'])
    for (const name of ['a1', 'a2', 'a3']) await end(name)
    void start('b1')
    void start('a4', 99)
    void start('a5')
    void start('a6', 99)
    assert.deepEqual(begun.slice(3), ['b1', 'a4', 'a5'])
    await end('a4')
    assert.equal(begun.at(-1), 'a6')
  })

  test('room that becomes free at once is filled at once', async () => {
    const { begun, start, end } = open(3, 6)
    void start('a1', 3)
    for (const name of ['b1', 'b2', 'b3', 'b4']) void start(name)
    await end('a1')
    assert.deepEqual(begun, ['a1', 'b1', 'b2', 'b3'])
  })
})
