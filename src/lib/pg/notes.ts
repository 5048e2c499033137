// Rows that are noted often and written seldom: those with the same place are added up, and written together every few seconds.
import type { Logger } from 'pino'
import type { Db } from './db.ts'
import { isMoving, isUnavailable } from './errors.ts'

export interface Notes<Row> {
  /** Notes a row at its place; `add` of the options joins it with one that is noted there already. */
  note(place: string, row: Row): void
  /** Writes what is noted. */
  close(): Promise<void>
}

interface Options<Row> {
  /** Takes the rows as JSON. It must be ordered by key, so that two processes cannot deadlock. */
  statement: string
  add(before: Row, row: Row): Row
  /** For the log. */
  failure: string
}

const PAUSE_MS = 3000
// Bounds the memory. What does not fit is not noted until the next write.
const MOST = 10_000

export function openNotes<Row extends object>(
  { db, log }: { db: Db; log: Logger },
  { statement, add, failure }: Options<Row>,
): Notes<Row> {
  let noted = new Map<string, Row>()
  let timer: NodeJS.Timeout | undefined

  async function write(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (noted.size === 0) return
    const rows = [...noted.values()]
    noted = new Map()
    await db.query(statement, [JSON.stringify(rows)]).catch((error) => {
      if (!isUnavailable(error) && !isMoving(error)) log.error({ err: error }, failure)
    })
  }

  return {
    note(place, row) {
      const before = noted.get(place)
      if (!before && noted.size >= MOST) return
      noted.set(place, before ? add(before, row) : row)
      timer ??= setTimeout(() => void write(), PAUSE_MS).unref()
    },
    close: write,
  }
}
