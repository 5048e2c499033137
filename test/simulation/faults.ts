// The faults of a seed: failing statements and calls, and processes that die or freeze.
import type { Server } from './clients.ts'
import type { DatabaseFaults } from './database.ts'
import type { NetworkFaults } from './provider.ts'
import type { Random } from './random.ts'
import type { Process, Scheduler } from './scheduler.ts'

export const CALM: DatabaseFaults & NetworkFaults = {
  before: 0,
  after: 0,
  crash: 0,
  lost: 0,
  late: 0,
  unheard: 0,
  declined: 0.1,
  partial: 0.05,
}

/** The probability of each fault in a seed. */
export function faultsOf(random: Random): Partial<DatabaseFaults & NetworkFaults> {
  const some = (most: number) => (random.chance(0.5) ? random.next() * most : 0)
  return {
    before: some(0.012),
    after: some(0.02),
    crash: some(0.01),
    lost: some(0.3),
    late: some(0.3),
    unheard: some(0.4),
  }
}

/** Sometimes kills a process, or freezes it for longer than its leases. */
export function strike(scheduler: Scheduler, running: ReadonlySet<Server>, deadlineMs: number): void {
  const { random } = scheduler
  const chance = random.next()
  if (running.size === 0) return
  const { process } = random.pick([...running])
  if (chance < 0.002) crash(scheduler, process)
  else if (chance < 0.008) {
    const ms = random.between(1, 3 * deadlineMs)
    scheduler.tell(`${process.name} stands still for ${ms} ms`)
    process.pausedUntilMs = scheduler.nowMs + ms
  }
}

export function crash(scheduler: Scheduler, process: Process): void {
  scheduler.tell(`${process.name} dies`)
  process.crash()
}
