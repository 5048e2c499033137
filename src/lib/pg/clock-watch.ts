// Detects that the database's clock was set back. Without a repair, times set by the old clock would be reached too late.
import type { Clock } from '../clock.ts'
import { repeat } from '../repeat.ts'
import type { Db } from './db.ts'

interface Shared {
  db: Pick<Db, 'query'>
  clock: Clock
  log: { warn(details: object, message: string): void; error(details: object, message: string): void }
}

// The pause between two readings of the clock: rows that were postponed by a clock set back are due after at most this long.
// A clock that goes ahead and back between two readings is not noticed, therefore the repair is also run at intervals.
// Stamps and the sync horizon do not depend on this: see `src/core/lists/horizon.ts`.
const EVERY_MS = 2_000
// Covers small continuous corrections of clocks.
const TOLERANCE_MS = 1_000

/**
 * Runs `repair` at the start, because the clock may have been set back while no process ran, whenever the database's clock
 * falls behind this process's monotonic clock, and after every `readings` of the clock. Returns the function that stops it.
 */
export function watchClock(
  { db, clock, log }: Shared,
  { readings }: { readings: number },
  repair: () => Promise<void>,
): () => Promise<void> {
  let isRepaired = false
  let sinceRepair = 0
  let last: { databaseMs: number; endedMs: number } | undefined
  return repeat({ clock, log }, { pauseMs: EVERY_MS, failure: 'The database’s clock could not be read.' }, async () => {
    const beganMs = clock.monotonicMs()
    const [row] = await db.query('select extract(epoch from db_clock()) * 1000 as ms')
    const databaseMs = Number(row!.ms)
    // From the end of one reading to the beginning of the next: however late a response comes, as much has passed at least.
    const behindMs = last ? beganMs - last.endedMs - (databaseMs - last.databaseMs) : 0
    last = { databaseMs, endedMs: clock.monotonicMs() }
    if (behindMs > TOLERANCE_MS) {
      log.warn({ behind_ms: Math.round(behindMs) }, 'The database’s clock was set back.')
      isRepaired = false
    }
    sinceRepair += 1
    if (isRepaired && sinceRepair < readings) return
    await repair()
    isRepaired = true
    sinceRepair = 0
  })
}
