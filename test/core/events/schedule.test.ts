// When a failed delivery is tried again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRetryAfter, waitAfter } from '../../../src/core/events/schedule.ts'

test('nine waits of the documented length, then no more', () => {
  const hours = [2, 5, 10, 14, 20, 24].map((hour) => hour * 3600)
  const waits = Array.from({ length: 10 }, (_, n) => waitAfter(n + 1))
  assert.deepEqual(waits, [5, 300, 1800, ...hours, undefined])
})

test('Retry-After makes a wait longer, never shorter, and at most a day', () => {
  assert.equal(waitAfter(1, 60), 60)
  assert.equal(waitAfter(2, 60), 300)
  assert.equal(waitAfter(1, 999_999_999), 86_400)
  assert.equal(waitAfter(10, 60), undefined)
})

test('Retry-After is read as seconds or as a date; anything else is none', () => {
  const now = Date.parse('2026-01-31T12:00:00Z') / 1000
  assert.equal(readRetryAfter('120', now), 120)
  assert.equal(readRetryAfter('Sat, 31 Jan 2026 12:01:30 GMT', now), 90)
  assert.equal(readRetryAfter('Sat, 31 Jan 2026 11:00:00 GMT', now), 0)
  for (const header of [undefined, '', '-1', '1.5', 'soon', 'Feb 30 GMT', '31 Jan 2026']) {
    assert.equal(readRetryAfter(header, now), undefined, header)
  }
})
