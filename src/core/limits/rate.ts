// Limits the request rate of each key by a leaky bucket in this process, synchronized with other processes in the background.
import type { Logger } from 'pino'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { repeat } from '../../lib/repeat.ts'
import type { KeyRate } from '../tenants/key-rate.ts'

export type Rate = KeyRate

export interface Verdict {
  admitted: boolean
  /** The number of requests that the key may send now. */
  remaining: number
  /** When the key may send the next request. */
  waitMs: number
}

export interface RateLimiter {
  /** Counts one request of a key, without a round trip. */
  take(keyId: string, rate: Rate): Verdict
  close(): Promise<void>
}

interface Bucket extends Rate {
  /** The number of requests in the bucket, which leaks `rate` of them per second. */
  level: number
  atMs: number
  /** Requests not yet shared with the other processes. */
  unshared: number
}

// The delay after which a process knows the requests that others have admitted.
const SHARE_EVERY_MS = 250
// The part of its rate that a key may use in each process without sharing it, so that most keys never reach the database.
const UNSHARED_PART = 1 / 16
// The longest wait after an overdraft at several processes.
const MAX_DEBT_S = 10
// Bounds the memory; the oldest key is removed first.
const MAX_KEYS = 100_000

/** The parts of the program that a rate limiter uses. */
export interface Shared {
  db: Db
  clock: Clock
  log: Logger
}

/**
 * Opens the limiter of a process. Processes share the bucket of each key through the database: every quarter of a second
 * each adds the requests it has admitted and reads the total. So n processes together may once admit n times the burst;
 * the excess is in the bucket and delays later requests, so that in the long run a key gets its rate and at most a
 * sixteenth of it more for each process. Without the database each process limits by itself.
 */
export function openRateLimiter({ db, clock, log }: Shared): RateLimiter {
  const buckets = new Map<string, Bucket>()

  function bucketOf(keyId: string, { rate, burst }: Rate): Bucket {
    let bucket = buckets.get(keyId)
    if (!bucket) {
      if (buckets.size >= MAX_KEYS) buckets.delete(buckets.keys().next().value!)
      bucket = { rate, burst, level: 0, atMs: clock.monotonicMs(), unshared: 0 }
      buckets.set(keyId, bucket)
    }
    bucket.rate = rate
    bucket.burst = burst
    return bucket
  }

  async function share(): Promise<void> {
    const nowMs = clock.monotonicMs()
    const changed: [id: string, bucket: Bucket, shared: number][] = []
    for (const [id, bucket] of buckets) {
      leak(bucket, nowMs)
      bucket.unshared = Math.max(0, bucket.unshared - (bucket.rate * UNSHARED_PART * SHARE_EVERY_MS) / 1000)
      if (bucket.unshared > 0) changed.push([id, bucket, bucket.unshared])
      else if (bucket.level === 0) buckets.delete(id)
    }
    if (changed.length === 0) return
    const rows = await db.query(SPEND, [
      changed.map(([id]) => id),
      changed.map(([, { rate }, shared]) => String(shared / rate)),
      changed.map(([, { rate, burst }]) => String(burst / rate + MAX_DEBT_S)),
    ])
    const seconds = new Map(rows.map((row) => [row.key_id!, Number(row.seconds)]))
    for (const [id, bucket, shared] of changed) {
      bucket.unshared -= shared
      bucket.level = seconds.get(id)! * bucket.rate + bucket.unshared
      bucket.atMs = clock.monotonicMs()
    }
  }

  let isClosed = false
  let stopSharing: (() => Promise<void>) | undefined
  // Runs from a request until all buckets are empty: an idle process has nothing to share and is not woken.
  const startSharing = () => {
    const options = { delayMs: SHARE_EVERY_MS, pauseMs: SHARE_EVERY_MS }
    return repeat({ clock, log }, { ...options, failure: 'Sharing the request counts of keys failed.' }, async () => {
      await share()
      if (buckets.size > 0) return
      void stopSharing?.()
      stopSharing = undefined
    })
  }

  return {
    take(keyId, rate) {
      if (!isClosed) stopSharing ??= startSharing()
      const bucket = bucketOf(keyId, rate)
      leak(bucket, clock.monotonicMs())
      const free = bucket.burst - bucket.level
      if (free < 1) return { admitted: false, remaining: 0, waitMs: ((1 - free) / bucket.rate) * 1000 }
      bucket.level += 1
      bucket.unshared += 1
      return { admitted: true, remaining: Math.floor(free - 1), waitMs: 0 }
    },
    async close() {
      isClosed = true
      await stopSharing?.()
    },
  }
}

// Ordered by key, so that two processes cannot deadlock.
const SPEND = {
  name: 'spend',
  text: `select key_id, spend(key_id, seconds, most) as seconds
         from unnest($1::uuid[], $2::float8[], $3::float8[]) as used (key_id, seconds, most) order by key_id`,
}

function leak(bucket: Bucket, nowMs: number): void {
  bucket.level = Math.max(0, bucket.level - ((nowMs - bucket.atMs) / 1000) * bucket.rate)
  bucket.atMs = nowMs
}
