// Disputes: opened by the customer's bank, the money withdrawn at once; won or lost later.
import type { Stripe } from 'stripe'
import { DAY_S } from '../../lib/days.ts'
import { post } from './balance-transactions.ts'
import type { Dialect } from './call.ts'
import { invalid } from './errors.ts'
import { readRoutes } from './lists.ts'
import { nulls } from './nulls.ts'
import { idOf } from './payment-intents.ts'
import { behaviourOf } from './payment-methods.ts'

type Dispute = Stripe.Dispute

// Stripe's fee for a dispute, in the account's currency.
const FEE = 1500

export const disputeRoutes = readRoutes('/v1/disputes', 'dispute', ['charge', 'payment_intent'])

/** The customer's bank disputes a charge and takes its amount back. */
export function openDispute(dialect: Dialect, chargeId: string, reason?: string): Dispute {
  const { state, livemode } = dialect
  const charge = state.find('charge', chargeId)
  if (charge?.status !== 'succeeded' || charge.disputed) throw invalid('The charge cannot be disputed.')
  const made: Dispute = {
    id: state.newId('du'),
    object: 'dispute',
    amount: charge.amount,
    balance_transactions: [],
    charge: charge.id,
    created: state.now(),
    currency: charge.currency,
    enhanced_eligibility_types: [],
    evidence: noEvidence,
    evidence_details: {
      due_by: state.now() + 7 * DAY_S,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
      submission_method: 'manual',
    },
    intended_submission_method: null,
    is_charge_refundable: false,
    livemode,
    metadata: {},
    payment_intent: charge.payment_intent,
    payment_method_details: {
      card: { brand: 'visa', network: 'visa', case_type: 'chargeback', network_reason_code: '10.4' },
      type: 'card',
    },
    reason: reason ?? behaviourOf(dialect, charge.payment_method!).dispute ?? 'general',
    status: 'needs_response',
  }
  state.put({ ...charge, disputed: true })
  dialect.emit('charge.dispute.created', state.put(made))
  const balance_transactions = [movement(dialect, made, -charge.amount, FEE)]
  return dialect.emit('charge.dispute.funds_withdrawn', state.put({ ...made, balance_transactions }))
}

/** The bank decides. A won dispute gives the money back, a lost one the part that was refunded before. */
export function closeDispute(dialect: Dialect, id: string, status: 'won' | 'lost'): Dispute {
  const before = dialect.state.find('dispute', id)
  if (before?.status !== 'needs_response') throw invalid('The dispute is closed already.')
  const { balance_transactions } = before
  const isWon = status === 'won'
  const returned = isWon ? before.amount : dialect.state.find('charge', idOf(before.charge)!)!.amount_refunded
  const moved = returned > 0 ? [movement(dialect, before, returned, isWon ? -FEE : 0)] : []
  const closed = dialect.state.put({
    ...before,
    balance_transactions: [...balance_transactions, ...moved],
    status,
  } satisfies Dispute)
  if (returned > 0) dialect.emit('charge.dispute.funds_reinstated', closed)
  return dialect.emit('charge.dispute.closed', closed)
}

function movement(dialect: Dialect, { id, currency }: Dispute, amount: number, fee: number): Stripe.BalanceTransaction {
  const took = amount < 0
  const description = `Chargeback ${took ? 'withdrawal' : 'reversal'}`
  const category = took ? 'dispute' : 'dispute_reversal'
  return post(dialect, { source: id, amount, currency, fee, type: 'adjustment', category, description })
}

const noEvidence: Stripe.Dispute.Evidence = {
  ...nulls('access_activity_log billing_address cancellation_policy cancellation_policy_disclosure'),
  ...nulls('cancellation_rebuttal customer_communication customer_email_address customer_name'),
  ...nulls('customer_purchase_ip customer_signature duplicate_charge_documentation'),
  ...nulls('duplicate_charge_explanation duplicate_charge_id product_description receipt refund_policy'),
  ...nulls('refund_policy_disclosure refund_refusal_explanation service_date service_documentation'),
  ...nulls('shipping_address shipping_carrier shipping_date shipping_documentation shipping_tracking_number'),
  ...nulls('uncategorized_file uncategorized_text'),
  enhanced_evidence: {},
}
