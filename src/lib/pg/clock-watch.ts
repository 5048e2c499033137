// Detects that the database's clock was set back: due times by the old clock would otherwise be reached too late.
import type { Clock } from '../clock.ts'
import type { Db } from './db.ts'
import { isUnavailable } from './errors.ts'

interface Shared {
  db: Pick<Db, 'query'>
  clock: Clock
  log: { warn(details: object, message: string): void; error(details: object, message: string): void }
}

// An idle process asks little; what a clock put off is due again this much later at most.
const LOOK_MS = 2_000
// Covers the round trip, and small continuous corrections of clocks.
const TOLERANCE_MS = 1_000

/**
 * Runs `repair` at the start, because the clock may have been set back while no process ran, and whenever the database's
 * clock falls behind this process's monotonic clock. Returns the function that stops it.
 */
export function watchClock({ db, clock, log }: Shared, repair: () => Promise<void>): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const work = async () => {
    let isRepaired = false
    let last: { databaseMs: number; monotonicMs: number } | undefined
    while (!signal.aborted) {
      try {
        const [row] = await db.query('select extract(epoch from db_clock()) * 1000 as ms')
        const now = { databaseMs: Number(row!.ms), monotonicMs: clock.monotonicMs() }
        const behindMs = last ? now.monotonicMs - last.monotonicMs - (now.databaseMs - last.databaseMs) : 0
        last = now
        if (behindMs > TOLERANCE_MS) {
          log.warn({ behind_ms: Math.round(behindMs) }, 'The database’s clock was set back.')
          isRepaired = false
        }
        if (!isRepaired) await repair()
        isRepaired = true
      } catch (error) {
        if (!isUnavailable(error)) log.error({ err: error }, 'The database’s clock could not be read.')
      }
      await clock.sleep(LOOK_MS, signal)
    }
  }
  const working = work()
  return async () => {
    stopping.abort()
    await working
  }
}
