// Shares what is scarce among tenants: who asks for much waits in a line of their own, and nobody waits behind them.

export interface Turns {
  /**
   * Runs `work`, which costs `weight`, at once when there is room, or when it is the tenant's turn. With `patience` whoever
   * waits for longer leaves the line, and is told its error.
   */
  run<T>(tenant: string, weight: number, work: () => Promise<T>, patience?: Patience): Promise<T>
  /** How many wait. */
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

// How long a tenant who asked for something is taken for still there.
const PRESENT_MS = 1000
// The most that work costs, of a share: one such fits into half a share, and beside it light work of the same tenant.
const HEAVIEST = 3 / 8

/**
 * At most `most` units of work at once, of one tenant at most `share`, and at most half of that while other tenants are
 * there too; whoever waits is served in turn, one of each tenant after the other.
 */
export function openTurns(most: number, share: number): Turns {
  const lines = new Map<string, Line>()
  /** The tenants who have somebody waiting, in the order of their turns. */
  const turns = new Set<string>()
  let used = 0
  let waiting = 0
  /** Somebody whose turn it is needs more room than there is: it is kept for them. */
  let blocked = false
  /** Who came last, and when that was somebody else than before. */
  let last: string | undefined
  let changedMs = -PRESENT_MS

  const mayMore = (line: Line, weight: number) => line.used + weight <= shareNow()
  const shareNow = () => (performance.now() - changedMs < PRESENT_MS ? share / 2 : share)
  const fits = (weight: number) => used + weight <= most

  function begin(line: Line, weight: number): void {
    line.used += weight
    used += weight
  }

  function end(tenant: string, line: Line, weight: number): void {
    line.used -= weight
    used -= weight
    goOn(tenant, line)
  }

  function goOn(tenant: string, line: Line): void {
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
        goOn(tenant, line)
        reject(patience.error())
      }, patience.ms)
      waiter.begin = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Lets one begin: the first of the first tenant whose share allows it. Answers whether there was one. */
  function serveNext(): boolean {
    blocked = false
    for (const tenant of turns) {
      const line = lines.get(tenant)!
      const first = line.waiting[0]!
      if (!mayMore(line, first.weight)) continue
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
    async run(tenant, given, work, patience) {
      if (tenant !== last) {
        if (last !== undefined) changedMs = performance.now()
        last = tenant
      }
      const weight = Math.min(given, share * HEAVIEST)
      let line = lines.get(tenant)
      if (!line) {
        line = { used: 0, waiting: [] }
        lines.set(tenant, line)
      }
      if (!blocked && line.waiting.length === 0 && mayMore(line, weight) && fits(weight)) {
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
