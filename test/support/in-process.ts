// Charges without a server: requests as the billing API reads them, and billing over a provider that a test scripts.
import type { ChargeRequest } from '../../src/billing/charge/request.ts'
import type { BillingContext } from '../../src/billing/context.ts'
import { readAmount } from '../../src/lib/money.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { fixedProviders } from './fixed-providers.ts'
import { HandClock } from './hand-clock.ts'
import { silent } from './simulator.ts'

/** A charge of 10.50 USD under the key `k`, unless told otherwise. */
export const chargeOf = (externalId: string, amount = '10.50', idempotencyKey = 'k'): ChargeRequest => ({
  externalId,
  idempotencyKey,
  amount: readAmount(amount),
  amountSent: amount,
  currencyCode: 'USD',
  clientMetadata: null,
})

/** Calls to the provider may take a second of a clock that the test moves. */
export function contextOf(db: Db, provider: Provider, more: Partial<BillingContext> = {}): BillingContext {
  const providers = fixedProviders([provider])
  return { db, providers, clock: new HandClock(), log: silent, providerTimeoutMs: 1_000, ...more }
}
