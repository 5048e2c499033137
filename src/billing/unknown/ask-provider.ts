// Looks into a charge or refund whose outcome nobody heard: asks, has it refused if it never came, settles, or looks later.
import { isClash, isUnavailable } from '../../lib/pg/db.ts'
import type {
  NotFound,
  Pending,
  Provider,
  RefundReference,
  Refused,
  Settled,
  Unconfirmed,
  Unknown,
} from '../../providers/provider.ts'
import { handOver as handOverOrder, type Order, reference as orderReference } from '../charge/orders.ts'
import { isVerdict, settle as settleCharge } from '../charge/settle.ts'
import type { BillingContext } from '../context.ts'
import { handOver as handOverRefund, type Refund, reference as refundReference } from '../refund/refunds.ts'
import { settle as settleRefund } from '../refund/settle.ts'
import { noted } from './provider-calls.ts'

/** Whoever calls holds the order's lease. Answers the order as it stands then. */
export async function lookIntoCharge(context: BillingContext, order: Order, signal?: AbortSignal): Promise<Order> {
  const provider = await context.providers.of(order.organization_id, order.psp, order.psp_merchant_id)
  const about = orderReference(order)
  const verdict = provider
    ? await verdictOf(
        () => noted(context, order, 'look_up', () => provider.lookUp(about, signal)),
        () => noted(context, order, 'refuse', () => provider.refuse(about, signal)),
      )
    : NOBODY_TO_ASK
  if (isVerdict(verdict)) {
    return orLater(
      () => settleCharge(context.db, order, verdict),
      () => handOverOrder(context.db, order),
    )
  }
  await handOverOrder(context.db, order)
  return order
}

/** The same for a refund. */
export async function lookIntoRefund(context: BillingContext, refund: Refund, signal?: AbortSignal): Promise<Refund> {
  const provider = await context.providers.of(refund.organization_id, refund.psp, refund.psp_merchant_id)
  const about = refundReference(refund)
  const verdict = provider
    ? await verdictOf(
        () => noted(context, refund, 'look_up', () => provider.lookUpRefund(about, signal)),
        () => noted(context, refund, 'refuse', () => refuseRefund(provider, about, signal)),
      )
    : NOBODY_TO_ASK
  if (isVerdict(verdict)) {
    return orLater(
      () => settleRefund(context.db, refund, verdict),
      () => handOverRefund(context.db, refund),
    )
  }
  await handOverRefund(context.db, refund)
  return refund
}

/** What cannot be settled is looked into after the usual pause, and by an operator meanwhile; not whenever its lease ends. */
async function orLater<T>(settle: () => Promise<T>, handOver: () => Promise<void>): Promise<T> {
  try {
    return await settle()
  } catch (error) {
    // Where the database is away, the lease's end says when.
    await handOver().catch(() => {})
    throw error
  }
}

/** For operators: what cannot be settled by the provider's word, a matter for them, is logged and answered as such. */
export async function orUnsettled<T>(
  { log }: BillingContext,
  one: Order | Refund,
  look: () => Promise<T>,
): Promise<T | 'unsettled'> {
  try {
    return await look()
  } catch (error) {
    // These pass: the provider's word can be settled by soon.
    if (isUnavailable(error) || isClash(error)) throw error
    log.error({ err: error, ...idsOf(one) }, 'What a provider says cannot be settled.')
    return 'unsettled'
  }
}

/** What a line of the log calls it. */
export const idsOf = (one: Order | Refund) => ({
  order_id: one.order_id,
  ...('refund_id' in one && { refund_id: one.refund_id }),
})

const NOBODY_TO_ASK: Unknown = { outcome: 'unknown', why: 'this process does not have the provider' }

/**
 * That the provider has never seen a request proves nothing: it may still be on its way. Only when the provider has
 * agreed to refuse it for good is it certain that no money moves.
 */
async function verdictOf(
  lookUp: () => Promise<Settled | Pending | Refused | NotFound | Unconfirmed | Unknown>,
  refuse: () => Promise<Settled | Pending | Refused | Unknown>,
): Promise<Settled | Pending | Refused | Unknown> {
  const found = await lookUp()
  return found.outcome === 'not_found' || found.outcome === 'unconfirmed' ? refuse() : found
}

async function refuseRefund(provider: Provider, about: RefundReference, signal?: AbortSignal) {
  if (!provider.refuseRefund) return { outcome: 'unknown', why: 'the provider cannot cancel refunds' } as const
  return provider.refuseRefund(about, signal)
}
