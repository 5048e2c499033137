// Refunds, each of one order: their columns, their references at the provider, and the statements that find them.
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { RefundRequest as RefundAtProvider, RefundReference } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import { AT_PROVIDER, type AtProvider, atParams } from '../ledger/orders.ts'
import { type InProgress, inProgress } from '../movement/in-progress.ts'
import { providerKey } from '../movement/keys.ts'

export type RefundStatus = 'processing' | 'succeeded' | 'failed'

/** The columns of a refund and of its order. */
export interface Refund extends InProgress {
  organization_id: string
  refund_id: string
  order_id: string
  external_id: string
  amount: string
  /** The requested amount, which differs from `amount` if the provider paid back another. */
  asked_amount: string
  amount_given: boolean
  currency_code: string
  soft_refund: boolean
  status: RefundStatus
  /** `tundish`, or `provider` for one that was made there. */
  origin: string
  /** Whether it was found at the provider under a key of ours, after a restored backup had forgotten it. */
  is_adopted: boolean
  provider_key: string
  provider_transaction_id: string | null
  /** Whether its process gave it up before it called the provider, and no status check has called it since. */
  is_unsent: boolean
  project_id: string
  psp: string
  psp_merchant_id: string | null
  region: string | null
  /** The provider's id of the charge; null when an operator settled the charge. */
  charge_transaction_id: string | null
  amount_refunded: string
  consumable_revoked: boolean
}

/** The columns of `REFUND_COLUMNS` that are not text. */
export const REFUND_NOT_TEXT = {
  status_checks: 'number',
  age_ms: 'number',
  not_found_ms: 'number',
  amount_given: 'boolean',
  soft_refund: 'boolean',
  is_adopted: 'boolean',
  is_unsent: 'boolean',
  consumable_revoked: 'boolean',
} as const

export const refundFrom = rowReader<Refund>(REFUND_NOT_TEXT)

/** Of a refund `r` and its order `o`. */
export const REFUND_COLUMNS = `r.organization_id, r.refund_id, r.order_id, r.external_id, r.amount,
  coalesce(r.asked_amount, r.amount) as asked_amount, r.amount_given, r.currency_code, r.soft_refund, r.status, r.origin,
  r.is_adopted, r.provider_key, r.provider_transaction_id, r.is_unsent, r.looks as status_checks,
  extract(epoch from db_clock() - coalesce(r.begun_at, r.created_at)) * 1000 as age_ms,
  extract(epoch from db_clock() - r.not_found_at) * 1000 as not_found_ms,
  o.project_id, o.psp, o.psp_merchant_id, o.region, o.charge_transaction_id, o.amount_refunded,
  exists (select from consumables c where c.organization_id = o.organization_id and c.order_id = o.order_id
    and not c.is_active) as consumable_revoked`

const JOIN_ORDERS = 'o.organization_id = r.organization_id and o.order_id = r.order_id'

/** Refunds and their orders, for a statement that selects `REFUND_COLUMNS`. */
const REFUNDS = `refunds r join orders o on ${JOIN_ORDERS}`

/** Refunds in progress: leases and the queue of status checks. */
export const refundsInProgress = inProgress<Refund>({
  name: 'refunds',
  noun: 'refund',
  alias: 'r',
  id: 'refund_id',
  columns: REFUND_COLUMNS,
  read: refundFrom,
  join: { table: 'orders o', on: JOIN_ORDERS },
  handOver: {
    sql: 'is_unsent = $8, provider_transaction_id = coalesce($9, provider_transaction_id)',
    params: ({ isUnsent = false, transactionId = null }) => [isUnsent, transactionId],
  },
})

/** The provider's key of a refund with a key of the caller's. */
export function refundKey(organizationId: string, externalId: string, idempotencyKey: string): string {
  return providerKey(organizationId, externalId, 'refund', idempotencyKey)
}

/** The same for a refund of all that is left, which needs no key: the order's n-th refund. */
export function nthRefundKey(organizationId: string, orderId: string, n: number): string {
  return providerKey(organizationId, orderId, 'refund', String(n), '')
}

/**
 * The refund that was made before with this key of this customer. A refund that was adopted from the provider has no key of the
 * caller; it is found by the provider's key, which is derived from the caller's.
 */
export async function findByKey(
  query: Query,
  organizationId: string,
  { externalId, idempotencyKey }: { externalId: string; idempotencyKey: string | null },
): Promise<Refund | undefined> {
  if (idempotencyKey === null) return undefined
  const key = refundKey(organizationId, externalId, idempotencyKey)
  const [found] = await query(FIND_BY_KEY, [organizationId, externalId, idempotencyKey, key])
  return found && refundFrom(found)
}

const FIND_BY_KEY: Statement = {
  name: 'find refund by key',
  text: `
    select ${REFUND_COLUMNS} from ${REFUNDS}
    where r.organization_id = $1 and r.external_id = $2 and r.idempotency_key = $3
    union all
    select ${REFUND_COLUMNS} from ${REFUNDS}
    where r.organization_id = $1 and r.provider_key = $4 and r.idempotency_key is null
    limit 1`,
}

/** Refunds at a provider that succeeded since an instant. Soft ones moved no money. */
export async function findSucceededSince(query: Query, provider: AtProvider, since: string): Promise<Refund[]> {
  const rows = await query(
    `select ${REFUND_COLUMNS} from ${REFUNDS}
     where r.status = 'succeeded' and not r.soft_refund and r.settled_at >= $1 and ${AT_PROVIDER}`,
    [since, ...atParams(provider)],
  )
  return rows.map(refundFrom)
}

/** The reference of a refund at the provider. */
export function reference(refund: Refund): RefundReference {
  const { provider_key, refund_id, psp_merchant_id, region, charge_transaction_id, provider_transaction_id } = refund
  return {
    key: provider_key,
    reference: refund_id,
    merchantId: psp_merchant_id ?? '',
    region,
    handle: provider_transaction_id,
    chargeTransactionId: charge_transaction_id ?? '',
  }
}

/** The request that pays a refund back. */
export function refundRequest(refund: Refund, traceparent: string | undefined): RefundAtProvider {
  const { amount, currency_code } = refund
  const amountMinor = minorFromDatabase(amount, currency_code)
  return { ...reference(refund), amountMinor, currencyCode: currency_code, traceparent }
}
