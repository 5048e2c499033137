// What the actors of an organization share, and how they run on one of its processes.
import type { Audit } from '../../src/core/audit/audit.ts'
import { ApiError, Refusal } from '../../src/lib/errors.ts'
import { ProviderError } from '../../src/payments/providers/provider.ts'
import type { Cards } from './cards.ts'
import type { Server } from './clients.ts'
import type { Database } from './database.ts'
import type { Invariants } from './invariants.ts'
import type { Ledger } from './ledger.ts'
import type { Scheduler } from './scheduler.ts'
import { isLoss } from './session.ts'
import type { Shop } from './shops.ts'

export interface Stage {
  scheduler: Scheduler
  database: Database
  running: () => ReadonlySet<Server>
  shop: Shop
  ledger: Ledger
  cards: Cards
  invariants: Invariants
  audit: Audit
  erasureLedger: string
  violated(text: string): void
}

/** Runs on a live process. Refusals, lost connections and dead processes are expected; any other error is a bug. */
export async function onServer(stage: Stage, what: string, work: (server: Server) => Promise<unknown>): Promise<void> {
  const { scheduler, running, violated } = stage
  if (running().size === 0) return
  const server = scheduler.random.pick([...running()])
  scheduler.tell(`${what} on ${server.process.name}`)
  const done = work(server).then(
    () => scheduler.tell(`${what}: done`),
    (error: Error) => {
      scheduler.tell(`${what}: ${error.message}`)
      const isExpected =
        error instanceof ApiError || error instanceof Refusal || error instanceof ProviderError || isLoss(error)
      if (!isExpected && server.process.isAlive) violated(`an error of ours: ${error.stack}`)
    },
  )
  // What a dead process was doing never ends.
  await Promise.race([done, server.process.crashed])
}
