// Writes batches of small calls in the turns of their organizations, and tries again what failed for a moment.
import { tryLater } from '../../lib/errors.ts'
import { createFairQueue } from '../../lib/fair-queue.ts'
import { isClash, isLockTimeout, isMoving } from '../../lib/pg/errors.ts'
import { type FeedCall, type FeedResult, writeOnce } from './feed-batch.ts'
import { isRowTooLarge, openFeedSessions } from './feed-session.ts'
import type { Importing } from './load.ts'
import type { Row } from './row.ts'
import { PATIENCE } from './slots.ts'
import { openStatistics } from './statistics.ts'

// Sessions of a process; the batches of a project run one after the other.
const SESSIONS = 3
const TRIES = 3

export function openFeedWriter(app: Importing) {
  const sessions = openFeedSessions(app.db)
  const turns = createFairQueue(SESSIONS, SESSIONS)
  const statistics = openStatistics(app.log)

  /** Writes the calls without a bad record; each result is that of a call alone. */
  async function write(calls: FeedCall[]): Promise<FeedResult[]> {
    const results = new Map<FeedCall, FeedResult>()
    let left = calls
    while (left.length > 0) {
      const outcomes = await writeInTurn(left)
      for (const [n, call] of left.entries()) if (outcomes[n]) results.set(call, outcomes[n])
      // What a call alone lacks is known when it was tried with others: they can only add records.
      left = left.filter((call) => !results.has(call))
    }
    return calls.map((call) => results.get(call)!)
  }

  async function writeInTurn(calls: FeedCall[]): Promise<(FeedResult | undefined)[]> {
    const { organizationId } = calls[0]!
    const endMs = performance.now() + PATIENCE.ms
    let isWide = calls.some(({ rows }) => rows.some(isLarge))
    for (let attempt = 1; ; ) {
      const run = () => sessions.use(isWide, (session) => writeOnce({ ...app, statistics }, session, calls))
      try {
        const outcomes = await turns.run(organizationId, 1, run, PATIENCE)
        if (outcomes) return outcomes
      } catch (error) {
        // A line that changes some fields takes the others from the stored record, which may be large.
        if (!isWide && isRowTooLarge(error)) {
          isWide = true
          continue
        }
        if (isLockTimeout(error)) throw tryLater('write_conflict', CONFLICT)
        if (isMoving(error) || !isClash(error) || attempt++ === TRIES) throw error
      }
      // A large import of the organization is writing.
      if (performance.now() > endMs) throw PATIENCE.error()
      await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20))
    }
  }

  return { write, close: sessions.close }
}

/** Whether a row may not fit into a page of PostgreSQL without its large values being stored elsewhere. */
const isLarge = ({ values }: Row) =>
  values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 8), 0) > INLINE_CHARACTERS
// A page has 8,192 bytes, and a character up to 3 for each of these units.
const INLINE_CHARACTERS = 2000

const CONFLICT = 'A concurrent request changed the same data. Nothing was written: try again.'
