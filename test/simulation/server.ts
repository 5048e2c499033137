// One simulated process: billing on the simulated database and providers, with its background work.

import { sweepCounts } from '../../src/core/lists/counts.ts'
import type { BillingContext } from '../../src/payments/billing/context.ts'
import { expireCredits } from '../../src/payments/billing/credits/expiry.ts'
import { startSettling } from '../../src/payments/billing/settling.ts'
import { startTopUps } from '../../src/payments/billing/top-up/run.ts'
import type { Providers } from '../../src/payments/providers/provider.ts'
import { fixedProviders } from '../payments/billing/scripted-provider.ts'
import type { Server } from './clients.ts'
import type { Database, DatabaseFaults } from './database.ts'
import { type Behind, type NetworkFaults, ONE_STEP, providersOf } from './provider.ts'
import { isLoss } from './session.ts'

export interface Start extends Behind {
  database: Database
  faults: DatabaseFaults & NetworkFaults
  /** The organization with accounts at the other providers. */
  organizationId: string
  /** Called when a transaction has ended. */
  changed(): void
}

export function startServer(start: Start): Server {
  const { process, scheduler, database, faults, deadlineMs, violated, changed } = start
  const log = ({ err }: { err?: Error }, text: string) => {
    scheduler.tell(`${process.name} logs: ${text}`)
    if (err && !isLoss(err)) violated(`an error of ours: ${err.stack}`)
  }
  const context: BillingContext = {
    db: database.of(process, scheduler, faults, changed),
    providers: providersFor(start),
    clock: scheduler.clockOf(process, true),
    log: { info: log, warn: log, error: log } as unknown as BillingContext['log'],
    providerTimeoutMs: deadlineMs,
  }
  startSettling(context)
  expireCredits(context)
  startTopUps(context)
  sweepCounts({ ...context, log: context.log as never })
  return { process, context }
}

/** The provider that remembers keys forever serves all organizations; the accounts of the others belong to one. */
function providersFor({ organizationId, ...behind }: Start): Providers {
  const providers = providersOf(behind)
  return {
    ...fixedProviders(providers),
    all: async () =>
      providers.map((provider) => ({
        organizationId: provider.name === ONE_STEP ? null : organizationId,
        provider,
      })),
  }
}
