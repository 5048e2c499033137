// Settles a charge by the provider's verdict, after checking that the verdict is about this charge and as was asked.
import type { Settled, Unknown } from '../../providers/outcomes.ts'
import type { Dispute, Provider } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import type { BillingContext } from '../context.ts'
import { adoptDispute } from '../ledger/dispute.ts'
import type { Note } from '../movement/provider-calls.ts'
import { adoptRefunds } from '../refund/adopt.ts'
import type { Verdict } from './effects.ts'
import { isOtherOrder, type Order } from './row.ts'
import { settle, settleAdopted } from './settle.ts'

/**
 * Settles the order, or returns why it cannot be settled. The provider names another reference than the order's in two
 * cases: a restored backup had forgotten the order that was charged under this key, then the charge is adopted together
 * with its refunds and disputes; or the provider mixes up two of our orders, which an operator has to judge.
 */
export async function settleByVerdict(
  context: BillingContext,
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
  return adopt(context, provider, order, verdict, how.note)
}

/** Settles an order by a charge that was made under its key before, and takes over the refunds and disputes of that charge. */
async function adopt(
  context: BillingContext,
  provider: Provider,
  order: Order,
  verdict: Settled,
  note: Note | undefined,
): Promise<Order | Unknown> {
  const { db, log } = context
  const { order_id } = order
  const chargeTransactionId = verdict.details.psp_transaction_id
  log.warn({ order_id, first_reference: verdict.reference }, 'The key was charged before: the charge is adopted.')
  if (verdict.outcome === 'failed' || chargeTransactionId === null) return settleAdopted(db, order, verdict, note)
  const refunds = await provider.refundsOf({ chargeTransactionId })
  if (!Array.isArray(refunds)) return refunds
  const disputes = await disputesOf(context, provider, order, chargeTransactionId)
  return settleAdopted(db, order, verdict, note, async (query, settled) => {
    await adoptRefunds(query, settled, refunds)
    for (const dispute of disputes) await adoptDispute(query, settled, dispute)
  })
}

/** Credentials that may not read disputes must not keep the charge in progress: `reconcile` finds the disputes later. */
async function disputesOf(
  { log }: BillingContext,
  provider: Provider,
  { order_id }: Order,
  chargeTransactionId: string,
): Promise<Dispute[]> {
  const disputes = (await provider.disputesOf?.({ chargeTransactionId })) ?? []
  if (Array.isArray(disputes)) return disputes
  log.warn({ order_id, why: disputes.why }, 'The disputes of an adopted charge cannot be read.')
  return []
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
