// Settles a charge by the provider's verdict, after checking that the verdict is about this charge and as was asked.
import type { Settled, Unknown } from '../../providers/outcomes.ts'
import type { Provider } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import type { BillingContext } from '../context.ts'
import type { Verdict } from '../movement/kind-of-movement.ts'
import type { Note } from '../movement/provider-calls.ts'
import { adopt, type TakeOver } from './adopt.ts'
import { isOtherOrder, type Order } from './row.ts'
import { settle } from './settle.ts'

/**
 * Settles the order, or returns why it cannot be settled. The provider names another reference than the order's in two
 * cases: a restored backup had forgotten the order that was charged under this key, then the charge is adopted together
 * with its refunds and disputes; or the provider mixes up two of our orders, which an operator has to judge.
 */
export async function settleByVerdict(
  context: BillingContext,
  takeOver: TakeOver,
  provider: Provider | undefined,
  order: Order,
  verdict: Verdict,
  how: { because?: string; note?: Note } = {},
): Promise<Order | { mismatch: 'reference' } | Unknown> {
  const { db } = context
  if (verdict.outcome === 'refused') return settle(db, order, verdict, how)
  if (verdict.reference === order.order_id || !provider) {
    logOtherAmount(context, order, verdict)
    return settle(db, order, verdict, how)
  }
  if (await isOtherOrder(db.query, order, verdict.reference)) return { mismatch: 'reference' }
  return adopt(context, takeOver, provider, order, verdict, how.note)
}

/** A provider may approve a part of the amount; the order is then what was charged, and operators should know. */
function logOtherAmount({ log }: BillingContext, order: Order, verdict: Settled): void {
  const { order_id, amount, currency_code } = order
  const { outcome, amountMinor, currencyCode } = verdict
  if (outcome === 'failed') return
  if (currencyCode === currency_code && amountMinor === minorFromDatabase(amount, currency_code)) return
  const charged = { amount_minor: String(amountMinor), currency_code: currencyCode }
  log.error({ order_id, asked: { amount, currency_code }, charged }, 'The provider charged another amount than asked.')
}
