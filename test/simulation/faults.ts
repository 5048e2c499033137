// What goes wrong in a seed: statements and calls by chance, and processes that die or stand still.
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
  unanswered: 0,
  declined: 0.1,
  partial: 0.05,
}

/** How often each fault happens in a seed. */
export function faultsOf(random: Random): Partial<DatabaseFaults & NetworkFaults> {
  const some = (most: number) => (random.chance(0.5) ? random.next() * most : 0)
  return {
    before: some(0.012),
    after: some(0.02),
    crash: some(0.01),
    lost: some(0.3),
    late: some(0.3),
    unanswered: some(0.4),
  }
}

/** Now and then a process dies, or stands still for longer than its leases last. */
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
