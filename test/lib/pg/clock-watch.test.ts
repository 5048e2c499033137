// The watch of the database's clock: what it takes for a clock that was set back, and what not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { watchClock } from '../../../src/lib/pg/clock-watch.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { HandClock } from '../../support/time.ts'

interface Reading {
  /** How long the response takes after the clock was read. */
  lateMs?: number
  setBackMs?: number
}

/** By how many milliseconds the clock was set back, as the log says. */
async function watched(readings: Reading[]): Promise<number[]> {
  const clock = new HandClock()
  const found: number[] = []
  const log = {
    warn: (details: object) => void found.push((details as { behind_ms: number }).behind_ms),
    error: (details: object) => assert.fail(JSON.stringify(details)),
  }
  const done = Promise.withResolvers<void>()
  let offsetMs = 0
  const query = async () => {
    const { lateMs = 0, setBackMs = 0 } = readings.shift()!
    offsetMs -= setBackMs
    const ms = String(clock.monotonicMs() + offsetMs)
    clock.advance(lateMs)
    if (readings.length === 0) done.resolve()
    return [{ ms }]
  }
  const db = { query } as unknown as Db
  const stop = watchClock({ db, clock, log }, { readings: 100 }, async () => {})
  await done.promise
  await stop()
  return found
}

test('a clock that was set back is noticed once', async () => {
  assert.deepEqual(await watched([{}, {}, { setBackMs: 5000 }, {}]), [5000])
})

test('responses that come late, as on a busy machine, are no clock that was set back', async () => {
  assert.deepEqual(await watched([{}, { lateMs: 5000 }, {}, { lateMs: 3000 }, { lateMs: 9000 }]), [])
})
