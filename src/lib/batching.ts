// Batches concurrent calls of the same kind into one statement and one commit, without making tenants wait for each other.
import type { Db } from './pg/db.ts'
import { isLockTimeout, isMoving, isUnavailable } from './pg/errors.ts'

interface Kind<Item, Result> {
  /** The tenant of an item. Items of all tenants are batched, but no tenant waits long for another's locks, or fails with it. */
  tenant(item: Item): string
  /**
   * Processes all items, or none if it throws; returns a result for each, in their order. It must fail when
   * it waits for a lock for longer than `lockTimeout`; null is no limit of ours.
   */
  work(db: Db, items: Item[], lockTimeout: LockTimeout): Promise<Result[]>
  /** Kinds with the same lanes take turns; without it, each kind is on its own. */
  lanes?: Lanes
}

/** A value of PostgreSQL's `lock_timeout`. */
export type LockTimeout = string | null

/** The batches of each database, for kinds that take turns. */
export type Lanes = WeakMap<Db, Batches>

interface Call {
  tenant: string
  item: unknown
  resolve(result: unknown): void
  reject(error: unknown): void
}

type Work = (db: Db, calls: Call[], lockTimeout: LockTimeout) => Promise<unknown[]>

// Enough that each shares the cost of a round trip to the disk, and few enough that a statement stays small.
const MAX_IN_BATCH = 64
// Longer than the commits of other processes, which hold the same locks; short for the calls of other tenants in the batch.
export const SHARED_LOCK_TIMEOUT = '250ms'

/**
 * Returns a plain function whose concurrent calls are batched. A lone call is never delayed to form a batch: when no batch
 * is under way, one starts with the calls of this turn of the event loop; calls that arrive during a batch form the next one.
 * When a batch fails or meets a lock that is not free soon, the calls of each tenant are tried on their own, and further
 * calls of a tenant join them until all are done. When calls of one tenant fail together, each is tried alone.
 */
export function batched<Item, Result>({
  tenant,
  work,
  lanes = new WeakMap(),
}: Kind<Item, Result>): (db: Db, item: Item) => Promise<Result> {
  const workOfCalls: Work = (db, calls, lockTimeout) =>
    work(
      db,
      calls.map(({ item }) => item as Item),
      lockTimeout,
    )
  return (db, item) =>
    new Promise<Result>((resolve, reject) => {
      const batches = lanes.get(db) ?? new Batches(db)
      lanes.set(db, batches)
      batches.add(workOfCalls, { tenant: tenant(item), item, resolve: (result) => resolve(result as Result), reject })
    })
}

/** The batches of one database: of all tenants together, and of some tenants apart. */
class Batches {
  readonly #db: Db
  readonly #shared = new Lane(SHARED_LOCK_TIMEOUT)
  readonly #apart = new Map<string, Lane>()

  constructor(db: Db) {
    this.#db = db
  }

  add(work: Work, call: Call): void {
    const lane = this.#apart.get(call.tenant) ?? this.#shared
    lane.add(work, call)
    if (lane.isServed) return
    lane.isServed = true
    setImmediate(() => void this.#serve(lane))
  }

  /** Calls `ended` in the turn of the event loop in which nothing is left. */
  async #serve(lane: Lane, ended: () => unknown = () => {}): Promise<void> {
    for (let batch = lane.take(); batch; batch = lane.take()) await this.#run(lane, batch.work, batch.calls)
    lane.isServed = false
    ended()
  }

  /** Never throws. */
  async #run(lane: Lane, work: Work, calls: Call[]): Promise<void> {
    try {
      const results = await work(this.#db, calls, lane.lockTimeout)
      // After the next batch has been sent, which the callers' own work would delay.
      setImmediate(() => {
        for (const [n, { resolve }] of calls.entries()) resolve(results[n])
      })
    } catch (error) {
      const isAlone = calls.length === 1
      if (isUnavailable(error) && !isMoving(error)) for (const { reject } of calls) reject(error)
      else if (lane === this.#shared && (!isAlone || isLockTimeout(error))) this.#setApart(work, calls)
      else if (isAlone) calls[0]!.reject(error)
      else for (const one of calls) await this.#run(lane, work, [one])
    }
  }

  /** Gives each tenant of these calls a separate lane, with all its waiting calls, until that is empty. */
  #setApart(work: Work, calls: Call[]): void {
    for (const [tenant, own] of Map.groupBy(calls, (call) => call.tenant)) {
      const lane = new Lane(null)
      this.#apart.set(tenant, lane)
      for (const call of own) lane.add(work, call)
      this.#shared.moveTo(lane, tenant)
      lane.isServed = true
      void this.#serve(lane, () => this.#apart.delete(tenant))
    }
  }
}

/** The calls of one kind that wait in a lane. */
interface Line {
  work: Work
  waiting: Call[]
}

/** Runs one batch at a time. The kinds with waiting calls take turns, in the order in which they began to wait. */
class Lane {
  isServed = false
  readonly lockTimeout: LockTimeout
  #due: Line[] = []
  readonly #lines = new Map<Work, Line>()

  constructor(lockTimeout: LockTimeout) {
    this.lockTimeout = lockTimeout
  }

  add(work: Work, call: Call): void {
    const line = this.#lines.get(work) ?? { work, waiting: [] }
    this.#lines.set(work, line)
    if (line.waiting.push(call) === 1) this.#due.push(line)
  }

  take(): { work: Work; calls: Call[] } | undefined {
    const line = this.#due.shift()
    if (!line) return undefined
    const calls = takeFairly(line)
    if (line.waiting.length > 0) this.#due.push(line)
    return { work: line.work, calls }
  }

  moveTo(other: Lane, tenant: string): void {
    for (const line of this.#due) {
      for (const call of line.waiting) if (call.tenant === tenant) other.add(line.work, call)
      line.waiting = line.waiting.filter((call) => call.tenant !== tenant)
    }
    this.#due = this.#due.filter(({ waiting }) => waiting.length > 0)
  }
}

/** Takes a batch; when more calls wait, each tenant's first before any tenant's second, so that one cannot fill it. */
function takeFairly(line: Line): Call[] {
  if (line.waiting.length <= MAX_IN_BATCH) return line.waiting.splice(0)
  const byTenant = Array.from(Map.groupBy(line.waiting, ({ tenant }) => tenant).values())
  const taken = new Set<Call>()
  for (let turn = 0; taken.size < MAX_IN_BATCH; turn++) {
    for (const call of byTenant.map((calls) => calls[turn])) if (call && taken.size < MAX_IN_BATCH) taken.add(call)
  }
  line.waiting = line.waiting.filter((call) => !taken.has(call))
  return [...taken]
}
