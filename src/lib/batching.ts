// Lets what many ask for at the same time go together: one statement and one commit for all of them.
import { type Db, isUnavailable } from './pg/db.ts'

interface Kind<Item, Result> {
  /** Whose items go together; what belongs to another group neither waits for them nor fails with them. */
  group(item: Item): string
  /** Does what all of these ask for, or nothing when it throws; answers a result for each, in their order. */
  work(db: Db, items: Item[]): Promise<Result[]>
  /** Where a group takes turns with the groups of that name of other kinds; without it, each kind is for itself. */
  lanes?: Lanes
}

interface Asked<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

/** Who waits for one kind of work in a lane. */
interface Line {
  readonly waiting: unknown[]
  /** Does what so many of them ask for; never throws. */
  serve(): Promise<void>
}

/** What is done one set after the other: the lines with somebody waiting, in the order in which they began to. */
interface Lane {
  isServed: boolean
  readonly due: Line[]
  /** By their kinds. */
  readonly lines: Map<object, Line>
}

/** Lanes by database and name, for kinds that take turns. */
export type Lanes = WeakMap<Db, Map<string, Lane>>

// So many that one round trip to the disk costs each of them little, so few that a statement stays small.
const MOST = 64
// Lanes stay when nobody is in them: a map whose entries come and go all the time keeps in memory what they were (see `Crowd`).
const MOST_KEPT = 10_000

/**
 * Whoever asks when nothing of the lane is under way goes at once, with all who ask in the same turn of the event loop;
 * those who come meanwhile go together as soon as it ends. Nobody waits for company. When it fails for several, each is
 * tried alone, so that one cannot spoil another's.
 */
export function gather<Item, Result>(kind: Kind<Item, Result>): (db: Db, item: Item) => Promise<Result> {
  const { group, work, lanes = new WeakMap() as Lanes } = kind

  function lineOf(db: Db, lane: Lane): Line {
    const known = lane.lines.get(kind)
    if (known) return known
    const waiting: Asked<Item, Result>[] = []
    const line: Line = { waiting, serve: () => serve(db, waiting.splice(0, MOST)) }
    lane.lines.set(kind, line)
    return line
  }

  async function serve(db: Db, all: Asked<Item, Result>[]): Promise<void> {
    try {
      const items = all.map(({ item }) => item)
      const results = await work(db, items)
      // Once the next set is on its way: what they do with it would hold that up.
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
