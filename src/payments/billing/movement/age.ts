// Conclusions from the age of a charge or refund in progress: whether its request has arrived, and whether the provider
// still knows its key.
import type { Provider } from '../../providers/provider.ts'
import type { Order } from '../charge/row.ts'
import type { BillingContext } from '../context.ts'
import type { Refund } from '../refund/row.ts'
import { leaseMs, NEGATIVE_LOOKS_APART_S } from './lease.ts'

/** Whether a request that is still on its way would have arrived by now. */
export const isOver = ({ providerTimeoutMs }: BillingContext, { age_ms }: Order | Refund) =>
  Number(age_ms) > leaseMs(providerTimeoutMs, 1)

/** Whether two looks, some minutes apart, found nothing where the request would have arrived. */
export const isNotFoundTwice = (context: BillingContext, row: Order | Refund) =>
  isOver(context, row) && row.not_found_ms !== null && Number(row.not_found_ms) >= NEGATIVE_LOOKS_APART_S * 1000

// The part of a key's life that is kept as a margin: an hour of a day.
const KEY_LIFE_MARGIN = 24

/** Whether the provider certainly still knows the row's idempotency key. */
export const keyLives = ({ traits: { keyLifeMs } }: Provider, { age_ms }: Order | Refund) =>
  Number(age_ms) < keyLifeMs - keyLifeMs / KEY_LIFE_MARGIN || keyLifeMs === Number.POSITIVE_INFINITY
