// Refunds of a charge: at once, pending, or failed some time after they succeeded.
import type { Stripe } from 'stripe'
import { post } from './balance-transactions.ts'
import { type Call, type Dialect, existing, inPath, integer, metadata, oneOf, route, text } from './call.ts'
import { invalid } from './errors.ts'
import { readRoutes } from './lists.ts'
import { nulls } from './nulls.ts'
import { idOf } from './payment-intents.ts'
import { behaviourOf } from './payment-methods.ts'

type Refund = Stripe.Refund

export const refundRoutes = [
  route('POST', '/v1/refunds', ['amount', 'charge', 'metadata', 'payment_intent', 'reason'], create),
  ...readRoutes('/v1/refunds', 'refund', ['charge', 'payment_intent']),
  route('POST', '/v1/refunds/:id', ['metadata'], (dialect, call) => {
    const before = inPath(dialect, call, 'refund')
    return dialect.state.put({ ...before, metadata: metadata(call, before.metadata) })
  }),
]

function create(dialect: Dialect, call: Call): object {
  const charge = chargeToRefund(dialect, call)
  const left = charge.amount - charge.amount_refunded
  if (left === 0) {
    throw invalid(`Charge ${charge.id} has already been refunded.`, { code: 'charge_already_refunded' })
  }
  const amount = integer(call, 'amount') ?? left
  if (amount < 1) throw invalid('Invalid positive integer', { code: 'parameter_invalid_integer', param: 'amount' })
  if (amount > left) {
    throw invalid(`Refund amount (${amount}) is greater than unrefunded amount on charge (${left})`, {
      param: 'amount',
    })
  }
  if (charge.disputed) {
    throw invalid(`Charge ${charge.id} has been charged back; cannot issue a refund.`, { code: 'charge_disputed' })
  }
  const reason = oneOf(call, 'reason', ['duplicate', 'fraudulent', 'requested_by_customer'])
  return refund(dialect, charge, amount, metadata(call), reason)
}

function chargeToRefund(dialect: Dialect, call: Call): Stripe.Charge {
  const [intent, id] = [text(call, 'payment_intent'), text(call, 'charge')]
  if (intent === undefined) {
    if (id === undefined) throw invalid('One of the following params should be provided: payment_intent or charge.')
    return existing(dialect, 'charge', id, 'charge')
  }
  const { status, latest_charge } = existing(dialect, 'payment_intent', intent, 'payment_intent')
  if (status !== 'succeeded') {
    throw invalid(`This PaymentIntent (${intent}) does not have a successful charge to refund.`, {
      param: 'payment_intent',
    })
  }
  return existing(dialect, 'charge', idOf(latest_charge)!, 'charge')
}

/** Pays back a part of a charge that is not refunded yet, as an API call or the dashboard does. */
export function refund(
  dialect: Dialect,
  charge: Stripe.Charge,
  amount: number,
  meta: Record<string, string>,
  reason: Refund['reason'],
): Refund {
  const { state } = dialect
  const { refundPendingMs, refundFailsAfterMs } = behaviourOf(dialect, charge.payment_method!)
  const id = state.newId('re')
  const made: Refund = state.put({
    id,
    object: 'refund',
    amount,
    balance_transaction: postRefund(dialect, { id, amount, currency: charge.currency }, 'refund'),
    charge: charge.id,
    created: state.now(),
    currency: charge.currency,
    customer: charge.customer,
    ...nulls('customer_account receipt_number source_transfer_reversal transfer_reversal'),
    destination_details: { card: { type: 'refund' }, type: 'card' },
    metadata: meta,
    payment_intent: charge.payment_intent,
    payment_method: charge.payment_method,
    reason,
    status: refundPendingMs === undefined ? 'succeeded' : 'pending',
  })
  countRefunds(dialect, charge.id)
  dialect.emit('refund.created', made)
  dialect.emit('charge.refunded', state.find('charge', charge.id)!)
  if (refundPendingMs !== undefined) state.schedule('settle_refund', made.id, refundPendingMs)
  if (refundFailsAfterMs !== undefined) state.schedule('fail_refund', made.id, refundFailsAfterMs)
  return made
}

/** A refund that was `pending` succeeds. */
export function settleRefund(dialect: Dialect, id: string): void {
  const before = dialect.state.find('refund', id)
  if (before?.status !== 'pending') return
  dialect.emit('refund.updated', dialect.state.put({ ...before, status: 'succeeded' }))
}

/** A refund fails, whether it was `pending` or had succeeded; its amount can be refunded again. */
export function failRefund(dialect: Dialect, id: string): void {
  const before = dialect.state.find('refund', id)
  if (!before || before.status === 'failed') return
  const failure_balance_transaction = postRefund(dialect, before, 'refund_failure')
  const failure_reason = 'lost_or_stolen_card'
  const failed = dialect.state.put({ ...before, failure_balance_transaction, failure_reason, status: 'failed' })
  countRefunds(dialect, idOf(failed.charge)!)
  dialect.emit('refund.updated', failed)
  dialect.emit('refund.failed', failed)
}

/** Stripe keeps the fee of the charge, and takes none for the refund. */
function postRefund(
  dialect: Dialect,
  { id, amount, currency }: Pick<Refund, 'id' | 'amount' | 'currency'>,
  type: 'refund' | 'refund_failure',
): string {
  const paid = type === 'refund' ? -amount : amount
  const description = type === 'refund' ? 'Refund' : 'Refund failure'
  return post(dialect, { source: id, amount: paid, currency, fee: 0, type, category: type, description }).id
}

function countRefunds({ state }: Dialect, chargeId: string): void {
  const charge = state.find('charge', chargeId)!
  const counted = state.related('refund', 'charge', chargeId).filter(({ status }) => status !== 'failed')
  const amount_refunded = counted.reduce((sum, { amount }) => sum + amount, 0)
  state.put({ ...charge, amount_refunded, refunded: amount_refunded === charge.amount })
}
