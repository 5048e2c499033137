// Batches concurrent calls of the same kind into one statement and one commit.
import type { Db } from './pg/db.ts'
import { isUnavailable } from './pg/errors.ts'

interface Kind<Item, Result> {
  /** Items of one group are batched; other groups neither wait for them nor fail with them. */
  group(item: Item): string
  /** Processes all items, or none if it throws; returns a result for each, in their order. */
  work(db: Db, items: Item[]): Promise<Result[]>
  /** Groups of the same name in different kinds take turns; without it, each kind has its own lanes. */
  lanes?: Lanes
}

interface Call<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

/** The calls of one kind that wait in a lane. */
interface Line {
  readonly waiting: unknown[]
  /** Serves one batch of them; never throws. */
  serve(): Promise<void>
}

/** Batches of a lane run one after the other: the lines with waiting calls, in the order in which they began to wait. */
interface Lane {
  isServed: boolean
  readonly due: Line[]
  /** By their kinds. */
  readonly lines: Map<object, Line>
}

/** Lanes by database and name, for kinds that take turns. */
export type Lanes = WeakMap<Db, Map<string, Lane>>

// Large enough that each item costs a small part of one disk sync, small enough that a statement stays small.
const MOST = 64
// Empty lanes are kept: a map whose entries come and go all the time keeps the old ones in memory (see `SlotSet`).
const MOST_KEPT = 10_000

/**
 * Returns a plain function whose concurrent calls are batched. A lone call is never delayed to form a batch: when the lane
 * is free, a batch starts with the calls of this turn of the event loop; calls that come meanwhile form the next batch.
 * When a batch fails, each of its calls is tried alone, so that one cannot fail another.
 */
export function batched<Item, Result>(kind: Kind<Item, Result>): (db: Db, item: Item) => Promise<Result> {
  const { group, work, lanes = new WeakMap() as Lanes } = kind

  function lineOf(db: Db, lane: Lane): Line {
    const known = lane.lines.get(kind)
    if (known) return known
    const waiting: Call<Item, Result>[] = []
    const line: Line = { waiting, serve: () => serve(db, waiting.splice(0, MOST)) }
    lane.lines.set(kind, line)
    return line
  }

  async function serve(db: Db, all: Call<Item, Result>[]): Promise<void> {
    try {
      const items = all.map(({ item }) => item)
      const results = await work(db, items)
      // Resolved after the next batch has been sent, which the callers' work would delay.
      setImmediate(() => {
        for (const [n, { resolve }] of all.entries()) resolve(results[n]!)
      })
    } catch (error) {
      if (all.length === 1 || isUnavailable(error)) for (const { reject } of all) reject(error)
      else for (const one of all) await serve(db, [one])
    }
  }

  return (db, item) =>
    new Promise((resolve, reject) => {
      const name = group(item)
      const known = lanes.get(db) ?? new Map<string, Lane>()
      lanes.set(db, known)
      const lane: Lane = known.get(name) ?? { isServed: false, due: [], lines: new Map() }
      known.set(name, lane)
      const line = lineOf(db, lane)
      if (line.waiting.push({ item, resolve, reject }) === 1) lane.due.push(line)
      if (lane.isServed) return
      lane.isServed = true
      setImmediate(() => void serveLane(lane, known, name))
    })
}

async function serveLane(lane: Lane, known: Map<string, Lane>, name: string): Promise<void> {
  for (let line = lane.due.shift(); line; line = lane.due.shift()) {
    const served = line.serve()
    if (line.waiting.length > 0) lane.due.push(line)
    await served
  }
  lane.isServed = false
  if (known.size > MOST_KEPT) known.delete(name)
}
