// The parts of the program that billing uses. Tests and the simulation pass other clocks and providers.
import type { Logger } from 'pino'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Providers } from '../providers/provider.ts'

export interface BillingContext {
  db: Db
  providers: Providers
  clock: Clock
  log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** The deadline that guards every call to a provider. */
  providerTimeoutMs: number
  /** The trace of the request that calls a provider; undefined in the background. */
  traceparent?: string
}

type Parts = Omit<BillingContext, 'providerTimeoutMs'> & { config: Pick<BillingContext, 'providerTimeoutMs'> }

/** The program's parts for billing, with the deadline of its settings. */
export function billingContext<App extends Parts>(app: App): App & BillingContext {
  return { ...app, providerTimeoutMs: app.config.providerTimeoutMs }
}
