// Conclusions from the age of a movement in progress: whether its request has arrived, and whether the provider still
// remembers its key.
import type { Provider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import type { InProgress } from './in-progress.ts'
import { leaseMs, NEGATIVE_CHECKS_APART_S } from './lease.ts'

/** Whether a request that is still on its way would have arrived by now, and would be found. */
export const isPastDeadline = ({ providerTimeoutMs }: BillingContext, { traits }: Provider, { age_ms }: InProgress) =>
  age_ms > leaseMs(providerTimeoutMs, 1) + (traits.lookUpLagMs ?? 0)

/** Whether two status checks, some minutes apart, found nothing where the request would have arrived. */
export const isNotFoundTwice = (context: BillingContext, provider: Provider, row: InProgress) =>
  isPastDeadline(context, provider, row) &&
  row.not_found_ms !== null &&
  row.not_found_ms >= NEGATIVE_CHECKS_APART_S * 1000

// The part of a key's life that is kept as a margin: an hour of a day.
const KEY_LIFE_MARGIN = 24

/** Whether the provider certainly still remembers the row's idempotency key. */
export const isKeyRemembered = ({ traits: { keyLifeMs } }: Provider, { age_ms }: InProgress) =>
  keyLifeMs !== 'unknown' &&
  (age_ms < keyLifeMs - keyLifeMs / KEY_LIFE_MARGIN || keyLifeMs === Number.POSITIVE_INFINITY)
