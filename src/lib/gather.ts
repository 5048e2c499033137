// Lets what many ask for at the same time go together: one statement and one commit for all of them.
import { type Db, isUnavailable } from './db.ts'

interface Kind<Item, Result> {
  /** Whose items go together; what belongs to another group neither waits for them nor fails with them. */
  group(item: Item): string
  /** Does what all of these ask for, or nothing when it throws; answers a result for each, in their order. */
  work(db: Db, items: Item[]): Promise<Result[]>
}

interface Asked<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

/** Those of a group: whether some are served at this moment, and who waits meanwhile. */
interface Line<Item, Result> {
  isServed: boolean
  waiting: Asked<Item, Result>[]
}

// So many that one round trip to the disk costs each of them little, so few that a statement stays small.
const MOST = 64
// Lines stay when nobody is in them: a map whose entries come and go all the time keeps in memory what they were (see `Crowd`).
const MOST_KEPT = 10_000

/**
 * Whoever asks when nothing of the group is under way goes at once; all who come meanwhile go together as soon as it
 * ends. Nobody waits for company. When it fails for several, each is tried alone, so that one cannot spoil another's.
 */
export function gather<Item, Result>({ group, work }: Kind<Item, Result>): (db: Db, item: Item) => Promise<Result> {
  const lines = new WeakMap<Db, Map<string, Line<Item, Result>>>()

  function lineOf(db: Db, name: string): Line<Item, Result> {
    const known = lines.get(db) ?? new Map<string, Line<Item, Result>>()
    lines.set(db, known)
    const line = known.get(name) ?? { isServed: false, waiting: [] }
    known.set(name, line)
    return line
  }

  async function serveLine(db: Db, name: string, line: Line<Item, Result>): Promise<void> {
    line.isServed = true
    while (line.waiting.length > 0) await serve(db, line.waiting.splice(0, MOST))
    line.isServed = false
    const known = lines.get(db)!
    if (known.size > MOST_KEPT) known.delete(name)
  }

  async function serve(db: Db, all: Asked<Item, Result>[]): Promise<void> {
    try {
      const items = all.map(({ item }) => item)
      const results = await work(db, items)
      for (const [n, { resolve }] of all.entries()) resolve(results[n]!)
    } catch (error) {
      if (all.length === 1 || isUnavailable(error)) for (const { reject } of all) reject(error)
      else for (const one of all) await serve(db, [one])
    }
  }

  return (db, item) =>
    new Promise((resolve, reject) => {
      const name = group(item)
      const line = lineOf(db, name)
      line.waiting.push({ item, resolve, reject })
      if (!line.isServed) void serveLine(db, name, line)
    })
}
