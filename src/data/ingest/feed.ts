// Writes the records of small calls: those of a project that arrive during a write share the next transaction.
import { systemClock } from '../../lib/clock.ts'
import type { FeedCall, FeedResult } from './feed-batch.ts'
import { openFeedWriter } from './feed-writer.ts'
import type { Importing } from './load.ts'
import { openLatest } from './reading.ts'
import { PATIENCE } from './slots.ts'

export interface Feed {
  /** Writes the records of a call, all or none. Throws a 503 when other imports of the organization take too long. */
  write(call: FeedCall): Promise<FeedResult>
  /** The latest time that a record may have. */
  latest(): Promise<string>
  close(): Promise<void>
}

interface Waiting {
  call: FeedCall
  resolve(result: FeedResult): void
  reject(error: unknown): void
}

// Enough that each call shares the cost of the statements and the commit; few enough that one batch takes milliseconds.
const MAX_CALLS = 64
const MAX_ROWS = 2000
// Bounds the memory of a process.
const MAX_WAITING_ROWS = 100_000
// After a sleep of the machine, too: records of the time since are not in the future.
const CLOCK_MS = 60_000

export function openFeed(app: Importing): Feed {
  const writer = openFeedWriter(app)
  /** The calls of each project that has a batch under way. */
  const lines = new Map<string, Waiting[]>()
  let waitingRows = 0
  let clock: { latest: Promise<() => string>; sinceMs: number } | undefined

  async function serve(projectId: string, line: Waiting[]): Promise<void> {
    while (line.length > 0) {
      const batch = takeBatch(line)
      try {
        const results = await writer.write(batch.map(({ call }) => call))
        for (const [n, { resolve }] of batch.entries()) resolve(results[n]!)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
      for (const { call } of batch) waitingRows -= call.rows.length
    }
    lines.delete(projectId)
  }

  return {
    write: (call) =>
      new Promise((resolve, reject) => {
        if (waitingRows >= MAX_WAITING_ROWS) return reject(PATIENCE.error())
        waitingRows += call.rows.length
        const line = lines.get(call.projectId)
        if (line) return line.push({ call, resolve, reject })
        const begun = [{ call, resolve, reject }]
        lines.set(call.projectId, begun)
        setImmediate(() => void serve(call.projectId, begun))
      }),
    async latest() {
      if (!clock || systemClock.monotonicMs() - clock.sinceMs > CLOCK_MS) {
        const latest = openLatest(app.db.query)
        clock = { latest, sinceMs: systemClock.monotonicMs() }
        latest.catch(() => {
          clock = undefined
        })
      }
      return (await clock.latest)()
    },
    close: writer.close,
  }
}

/** The next calls that can share a transaction, in their order. */
function takeBatch(line: Waiting[]): Waiting[] {
  let rows = 0
  const { emitEvents } = line[0]!.call
  const end = line.findIndex(({ call }, n) => {
    rows += call.rows.length
    return n > 0 && (n >= MAX_CALLS || rows > MAX_ROWS || call.emitEvents !== emitEvents)
  })
  return line.splice(0, end < 0 ? line.length : end)
}
