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

// So many that one round trip to the disk costs each of them little, so few that a statement stays small.
const MOST = 64

/**
 * Whoever asks when nothing of the group is under way goes at once; all who come meanwhile go together as soon as it
 * ends. Nobody waits for company. When it fails for several, each is tried alone, so that one cannot spoil another's.
 */
export function gather<Item, Result>({ group, work }: Kind<Item, Result>): (db: Db, item: Item) => Promise<Result> {
  const underWay = new WeakMap<Db, Map<string, Asked<Item, Result>[]>>()

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
      const asked = { item, resolve, reject }
      const groups = underWay.get(db) ?? new Map()
      underWay.set(db, groups)
      const name = group(item)
      const waiting = groups.get(name)
      if (waiting) {
        waiting.push(asked)
        return
      }
      const line = [asked]
      groups.set(name, line)
      void (async () => {
        while (line.length > 0) await serve(db, line.splice(0, MOST))
        groups.delete(name)
      })()
    })
}
