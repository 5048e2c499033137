// Shares a limited resource among tenants: each tenant has its own queue, and the queues are served in turn.

export interface FairQueue {
  /**
   * Runs `work`, which costs `weight`, at once when there is room, else when it is the tenant's turn. With `patience`, a
   * caller that has waited that long leaves the queue and gets its error.
   */
  run<T>(tenant: string, weight: number, work: () => Promise<T>, patience?: Patience): Promise<T>
  /** The number of waiting callers. */
  waiting(): number
}

export interface Patience {
  ms: number
  error(): Error
}

interface Waiter {
  weight: number
  begin(): void
}

interface Line {
  used: number
  waiting: Waiter[]
}

// A tenant counts as present for this long after a call.
const PRESENT_MS = 1000
// The largest weight, as a part of a share: it fits into half a share, with room for light work of the same tenant.
const MAX_WEIGHT = 3 / 8

/**
 * At most `max` units of work run at once; of one tenant at most `share`, and at most half of that while other tenants
 * are present. Waiting calls are served round-robin over the tenants.
 */
export function createFairQueue(max: number, share: number): FairQueue {
  const lines = new Map<string, Line>()
  /** The tenants with waiting calls, in the order of their turns. */
  const turns = new Set<string>()
  let used = 0
  let waiting = 0
  /** Whether the call whose turn it is needs more room than is free; then no other call may take that room. */
  let blocked = false
  /** The tenant of the last call, and when the tenant last changed. */
  let last: string | undefined
  let changedMs = -PRESENT_MS

  const isWithinShare = (line: Line, weight: number) => line.used + weight <= shareNow()
  const shareNow = () => (performance.now() - changedMs < PRESENT_MS ? share / 2 : share)
  const fits = (weight: number) => used + weight <= max

  function begin(line: Line, weight: number): void {
    line.used += weight
    used += weight
  }

  function end(tenant: string, line: Line, weight: number): void {
    line.used -= weight
    used -= weight
    serveWaiting(tenant, line)
  }

  function serveWaiting(tenant: string, line: Line): void {
    while (serveNext());
    if (line.used === 0 && line.waiting.length === 0) lines.delete(tenant)
  }

  function waitInLine(tenant: string, line: Line, weight: number, patience?: Patience): Promise<void> {
    waiting += 1
    turns.add(tenant)
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { weight, begin: resolve }
      line.waiting.push(waiter)
      if (!patience) return
      const timer = setTimeout(() => {
        line.waiting.splice(line.waiting.indexOf(waiter), 1)
        waiting -= 1
        if (line.waiting.length === 0) turns.delete(tenant)
        serveWaiting(tenant, line)
        reject(patience.error())
      }, patience.ms)
      waiter.begin = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Starts one call: the first of the first tenant whose share allows it. Returns whether there was one. */
  function serveNext(): boolean {
    blocked = false
    for (const tenant of turns) {
      const line = lines.get(tenant)!
      const first = line.waiting[0]!
      if (!isWithinShare(line, first.weight)) continue
      blocked = !fits(first.weight)
      if (blocked) return false
      line.waiting.shift()
      waiting -= 1
      turns.delete(tenant)
      if (line.waiting.length > 0) turns.add(tenant)
      begin(line, first.weight)
      first.begin()
      return true
    }
    return false
  }

  return {
    waiting: () => waiting,
    async run(tenant, requested, work, patience) {
      if (tenant !== last) {
        if (last !== undefined) changedMs = performance.now()
        last = tenant
      }
      const weight = Math.min(requested, share * MAX_WEIGHT)
      let line = lines.get(tenant)
      if (!line) {
        line = { used: 0, waiting: [] }
        lines.set(tenant, line)
      }
      if (!blocked && line.waiting.length === 0 && isWithinShare(line, weight) && fits(weight)) {
        begin(line, weight)
      } else {
        await waitInLine(tenant, line, weight, patience)
      }
      try {
        return await work()
      } finally {
        end(tenant, line, weight)
      }
    },
  }
}
