// How fast a key may send requests: a bucket in this process for each key, told to the other processes in the background.
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Db } from '../lib/pg/db.ts'
import { isUnavailable } from '../lib/pg/errors.ts'

/** Requests a second, and how many at once on top of that. A rate of 0 is no limit. */
export interface Rate {
  rate: number
  burst: number
}

export interface Verdict {
  admitted: boolean
  /** Requests that the key may send now. */
  remaining: number
  /** When it may send the next one. */
  waitMs: number
}

export interface RateLimiter {
  /** Counts one request of a key, at once and without a round trip. */
  take(keyId: string, rate: Rate): Verdict
  close(): Promise<void>
}

interface Bucket extends Rate {
  /** Requests that are in it; it leaks `rate` of them a second. */
  level: number
  atMs: number
  /** What the other processes have not been told yet. */
  untold: number
}

// How late a process learns what others have let through.
const TELL_MS = 250
// So much of its rate a key may use at each process untold: of most keys the database never hears.
const UNTOLD_SHARE = 1 / 16
// A key that overdrew at several processes at once pays it back, but not for longer than this.
const MOST_DEBT_S = 10
// A bound for memory; the key that began longest ago is forgotten first.
const MOST_KEYS = 100_000

/** What a rate limiter shares with the program. */
export interface Shared {
  db: Db
  clock: Clock
  log: Logger
}

/**
 * Opens the limiter of a process. Processes share each key's bucket through the database: every quarter of a second each
 * adds what it has let through and learns what is in there. So n processes may let through, together and once, n times the
 * burst; whatever is too much is in the bucket and is waited for, so that in the long run a key gets its rate and at most
 * a sixteenth of it more for each process. Without the database each process goes on by itself.
 */
export function openRateLimiter({ db, clock, log }: Shared): RateLimiter {
  const buckets = new Map<string, Bucket>()
  const stopping = new AbortController()

  function bucketOf(keyId: string, { rate, burst }: Rate): Bucket {
    let bucket = buckets.get(keyId)
    if (!bucket) {
      if (buckets.size >= MOST_KEYS) buckets.delete(buckets.keys().next().value!)
      bucket = { rate, burst, level: 0, atMs: clock.monotonicMs(), untold: 0 }
      buckets.set(keyId, bucket)
    }
    bucket.rate = rate
    bucket.burst = burst
    return bucket
  }

  async function tell(): Promise<void> {
    const nowMs = clock.monotonicMs()
    const news: [id: string, bucket: Bucket, told: number][] = []
    for (const [id, bucket] of buckets) {
      leak(bucket, nowMs)
      bucket.untold = Math.max(0, bucket.untold - (bucket.rate * UNTOLD_SHARE * TELL_MS) / 1000)
      if (bucket.untold > 0) news.push([id, bucket, bucket.untold])
      else if (bucket.level === 0) buckets.delete(id)
    }
    if (news.length === 0) return
    const rows = await db.query(SPEND, [
      news.map(([id]) => id),
      news.map(([, { rate }, told]) => String(told / rate)),
      news.map(([, { rate, burst }]) => String(burst / rate + MOST_DEBT_S)),
    ])
    const seconds = new Map(rows.map((row) => [row.key_id!, Number(row.seconds)]))
    for (const [id, bucket, told] of news) {
      bucket.untold -= told
      bucket.level = seconds.get(id)! * bucket.rate + bucket.untold
      bucket.atMs = clock.monotonicMs()
    }
  }

  let working: Promise<void> | undefined
  async function keepTelling(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(TELL_MS, stopping.signal)
      await tell().catch((error) => {
        if (!isUnavailable(error)) log.error({ err: error }, 'The use of keys could not be shared.')
      })
    }
  }

  return {
    take(keyId, rate) {
      // A program that never serves a key has nothing to tell.
      working ??= keepTelling()
      const bucket = bucketOf(keyId, rate)
      leak(bucket, clock.monotonicMs())
      const free = bucket.burst - bucket.level
      if (free < 1) return { admitted: false, remaining: 0, waitMs: ((1 - free) / bucket.rate) * 1000 }
      bucket.level += 1
      bucket.untold += 1
      return { admitted: true, remaining: Math.floor(free - 1), waitMs: 0 }
    },
    async close() {
      stopping.abort()
      await working
    },
  }
}

// In the order of the keys, so that two processes never wait for each other.
const SPEND = {
  name: 'spend',
  text: `select key_id, spend(key_id, seconds, most) as seconds
         from unnest($1::uuid[], $2::float8[], $3::float8[]) as used (key_id, seconds, most) order by key_id`,
}

function leak(bucket: Bucket, nowMs: number): void {
  bucket.level = Math.max(0, bucket.level - ((nowMs - bucket.atMs) / 1000) * bucket.rate)
  bucket.atMs = nowMs
}
