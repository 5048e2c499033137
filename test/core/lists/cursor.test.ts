// Cursors carry any position there and back, and open with their own binding alone.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { type Position, readCursor, writeCursor } from '../../../src/core/lists/cursor.ts'
import { instantFromMicros } from '../../../src/lib/time.ts'

const [FIRST, LAST] = ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'].map(
  (text) => BigInt(Date.parse(text)) * 1000n,
)
const instant = fc.bigInt({ min: FIRST as bigint, max: LAST as bigint }).map(instantFromMicros)
const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code))
const position: fc.Arbitrary<Position> = fc.record(
  {
    at: instant,
    id: fc.string({ unit: visible, minLength: 1, maxLength: 64 }),
    total: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    horizon: fc.option(instant, { nil: undefined }),
    mark: fc.option(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), { nil: undefined }),
  },
  { noNullPrototype: true },
)

describe('a cursor', () => {
  test('contains any position, in at most 256 characters that need no encoding', () => {
    fc.assert(
      fc.property(position, fc.string(), (one, binding) => {
        const cursor = writeCursor(one, binding)
        assert.match(cursor, /^[A-Za-z0-9_-]{1,256}$/)
        assert.deepEqual(readCursor(cursor, binding), one)
      }),
    )
  })

  test('is different for different positions', () => {
    fc.assert(
      fc.property(position, position, (one, other) => {
        const equal = isDeepStrictEqual(one, other)
        assert.equal(writeCursor(one, 'x') === writeCursor(other, 'x'), equal)
      }),
    )
  })

  test('with a valid checksum is accepted only if its content is one that lists write', () => {
    const forged = (change: (payload: Buffer) => void) => {
      const position = { at: '2026-01-01T00:00:00.000000Z', id: 'id', total: 7 }
      const payload = Buffer.from(writeCursor(position, 'x'), 'base64url').subarray(9)
      change(payload)
      const check = hash('sha256', Buffer.concat([Buffer.from('x\n'), payload]), 'buffer').subarray(0, 9)
      return readCursor(Buffer.concat([check, payload]).toString('base64url'), 'x')
    }
    assert.equal(forged(() => {})?.total, 7)
    const strange: Record<string, (payload: Buffer) => void> = {
      'an instant': (payload) => payload.writeBigInt64BE(2n ** 62n, 0),
      'a horizon': (payload) => payload.writeBigInt64BE(2n ** 62n, 8),
      'a total': (payload) => payload.writeBigInt64BE(-5n, 16),
      'a total that is no number': (payload) => payload.writeBigInt64BE(2n ** 61n, 16),
      'an id': (payload) => payload.fill(0, 25),
    }
    for (const [what, change] of Object.entries(strange)) assert.equal(forged(change), undefined, what)
  })

  test('is refused with another binding, and in any other form', () => {
    fc.assert(
      fc.property(position, fc.string(), fc.string(), (one, binding, other) => {
        fc.pre(binding !== other)
        assert.equal(readCursor(writeCursor(one, binding), other), undefined)
      }),
    )
    fc.assert(
      fc.property(position, fc.nat(), fc.constantFrom(...'Aa0_-=+/ %'), (one, at, letter) => {
        const cursor = writeCursor(one, 'x')
        const place = at % cursor.length
        const changed = cursor.slice(0, place) + letter + cursor.slice(place + 1)
        assert.deepEqual(readCursor(changed, 'x'), changed === cursor ? one : undefined)
      }),
    )
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (nonsense) => assert.equal(readCursor(nonsense, 'x'), undefined)),
    )
  })
})
