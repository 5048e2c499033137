// Asks for the outcome of an order for which no prepared payment was stored.
import { instantFromPg } from '../../lib/time.ts'
import type { Pending, Prepared, Refused, Settled, Unknown } from '../../providers/outcomes.ts'
import type { Provider } from '../../providers/provider.ts'
import { type Order, reference } from '../charge/orders.ts'
import type { BillingContext } from '../context.ts'
import { noted } from './provider-calls.ts'

/**
 * An order without a handle was never confirmed, and nobody waits for it any more: it is cancelled. In a database restored
 * from a backup the handle may be lost instead; there the provider is asked for the key.
 */
export async function askForUnprepared(
  { db, ...context }: BillingContext,
  provider: Provider,
  order: Order,
  signal?: AbortSignal,
): Promise<Settled | Refused | Pending | Prepared | Unknown> {
  const { organization_id, payment_method_token, provider_customer } = order
  const [organization] = await db.query(
    "select restored_from - interval '1 hour' as restored_from from organizations where id = $1",
    [organization_id],
  )
  const restoredFrom = organization?.restored_from ?? null
  if (restoredFrom === null || !provider.findByKey) return { outcome: 'refused' }
  const card = { token: payment_method_token, providerCustomer: provider_customer }
  const found = await noted({ db, ...context }, order, 'find_by_key', () =>
    provider.findByKey!({ ...reference(order), ...card }, instantFromPg(restoredFrom), signal),
  )
  return found.outcome === 'not_found' ? { outcome: 'refused' } : found
}
