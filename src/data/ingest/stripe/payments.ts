// Stripe's charges, refunds and disputes as transactions and payments.
import type { Stripe } from 'stripe'
import { noDetails, type PaymentDetails } from '../../../core/records/payment.ts'
import { cardDetails, reasonOfError } from '../../../payments/providers/stripe/details.ts'
import { disputeMovements } from '../../../payments/providers/stripe/disputes.ts'
import {
  Inconvertible,
  idOf,
  type Line,
  majorNumber,
  minorNumber,
  recordId,
  type Target,
  textOr,
  time,
  uuidOf,
} from './convert.ts'
import { type AnyCustomer, externalIdOf } from './customers.ts'
import { type Names, namesIn, nearest } from './names.ts'

/** A charge with `customer` and `payment_intent.payment_method` expanded. */
export type Charge = Stripe.Charge

/** The data of a charge's invoice. */
export interface Invoiced {
  subscriptionId: string
}

const PSP = 'stripe'

/** A guest's charge has no customer at Stripe: each becomes a separate customer here, so that all money is included. */
const guestId = (charge: Stripe.Charge) => `guest_${charge.id}`

/** The customer's id at Stripe; undefined for a guest's charge. */
export function customerOf(charge: Stripe.Charge): string | undefined {
  return idOf(charge.customer as string | AnyCustomer | null)
}

export function guestLines(charge: Stripe.Charge): Line[] {
  const id = guestId(charge)
  const email = textOr(charge.billing_details?.email) ?? textOr(charge.receipt_email)
  const country = textOr(charge.billing_details?.address?.country)
  return [
    { record: 'profile', data: { id, created_at: time(charge.created), email, country } },
    { record: 'customer', data: { external_id: id, email, profile_id: id } },
  ]
}

/** Whether money moved, or was refused: a pending or only authorized charge is skipped. */
export function isDecided({ status, captured }: Stripe.Charge): boolean {
  if (status === 'succeeded') return captured
  if (status === 'failed' || status === 'pending') return status === 'failed'
  throw new Inconvertible(`has the unknown status ${JSON.stringify(status)}`)
}

/** A payment, and if it succeeded also a transaction. `card` is the saved card. */
export function chargeLines(
  charge: Charge,
  target: Target,
  {
    invoiced,
    card,
    ofCheckout,
  }: { invoiced: Invoiced | undefined; card: string | undefined; ofCheckout: Names | undefined },
): Line[] {
  const succeeded = charge.status === 'succeeded'
  const payment = {
    ...basis(charge, target),
    trx_id: uuidOf('payment', charge.id),
    trx_created_at: time(charge.created),
    ...amounts(amountOf(charge), charge.currency),
    status: succeeded ? 'succeeded' : 'failed',
    meta_subs_id: invoiced?.subscriptionId ?? null,
    payment_method_token: card ?? null,
    ...chargeDetails(charge),
  }
  const lines: Line[] = [{ record: 'payment', data: payment }]
  if (succeeded) lines.push(transactionLine(charge, target, invoiced, ofCheckout))
  return lines
}

function transactionLine(
  charge: Charge,
  target: Target,
  invoiced: Invoiced | undefined,
  ofCheckout: Names | undefined,
): Line {
  const price = minorNumber(amountOf(charge), charge.currency)
  return {
    record: 'transaction',
    names: nearest(ofCheckout, namesIn(target.metadata, charge.payment_intent, charge, charge.customer)),
    data: {
      id: recordId(charge.id),
      created_at: time(charge.created),
      profile_id: profileOf(charge),
      currency: charge.currency,
      price,
      price_usd: charge.currency === 'usd' ? price : null,
      sandbox: !charge.livemode,
      subscription_id: invoiced ? recordId(invoiced.subscriptionId) : null,
    },
  }
}

const profileOf = (charge: Stripe.Charge) => recordId(customerOf(charge) ?? guestId(charge))

/** The captured amount, or the requested one if it failed. */
const amountOf = ({ status, amount, amount_captured }: Stripe.Charge) =>
  status === 'succeeded' ? amount_captured : amount

/** The used card, if it is still attached to the customer and was not saved for payments in their presence only. */
export function usedCard(charge: Charge): string | undefined {
  const customer = charge.customer as AnyCustomer | null
  const intent = charge.payment_intent as Stripe.PaymentIntent | null
  const method = intent?.payment_method as Stripe.PaymentMethod | null | undefined
  if (!customer || customer.deleted || method?.type !== 'card') return undefined
  if (intent?.setup_future_usage === 'on_session') return undefined
  return idOf(method.customer) === customer.id ? method.id : undefined
}

function chargeDetails(charge: Stripe.Charge): PaymentDetails {
  const method = charge.payment_method_details
  return {
    ...noDetails,
    psp_transaction_id: charge.id,
    psp_transaction_type: 'sale',
    psp_status: charge.status,
    psp_date: time(charge.created),
    pm_type: textOr(method?.type),
    is_vaulted: customerOf(charge) !== undefined,
    ...cardDetails({ ...method?.card }),
    ...(charge.status === 'failed' && reasonOfError(errorOf(charge))),
  }
}

function errorOf({ failure_code, failure_message, outcome }: Stripe.Charge) {
  return {
    type: outcome?.type,
    code: failure_code,
    decline_code: outcome?.reason,
    advice_code: outcome?.advice_code,
    message: failure_message,
  }
}

/** Whether the money was paid back, and whether that failed, which may be later. A pending refund is neither. */
export function statusOfRefund({ status, failure_balance_transaction }: Stripe.Refund): {
  refunded: boolean
  failed: boolean
} {
  // Refunds that were made before Stripe gave them a status have succeeded.
  const refunded = status === 'succeeded' || status === null
  const failed = status === 'failed' || status === 'canceled'
  if (!refunded && !failed && status !== 'pending' && status !== 'requires_action')
    throw new Inconvertible(`has the unknown status ${JSON.stringify(status)}`)
  return { refunded: refunded || (failed && Boolean(failure_balance_transaction)), failed }
}

/**
 * A refund that is decided. One that failed after it had succeeded has a row for each, so that a reader of the report who
 * has seen the first gets the second. `failedAt` is the time of the second.
 */
export function refundLines(refund: Stripe.Refund & { failedAt: number }, target: Target): Line[] {
  const charge = refund.charge as Stripe.Charge
  const { refunded, failed } = statusOfRefund(refund)
  const { id, amount, currency, created, failedAt } = refund
  const moved = { id, name: id, amount, currency, type: 'refund' }
  const reason = { psp_status: 'succeeded', psp_reason_code: textOr(refund.reason) }
  const failure = { psp_status: refund.status, psp_reason_code: textOr(refund.failure_reason) ?? refund.status }
  return [
    ...(refunded ? [movementLine(charge, target, { ...moved, created, status: 'refunded', more: reason })] : []),
    ...(failed ? [movementLine(charge, target, { ...moved, created: failedAt, status: 'failed', more: failure })] : []),
  ]
}

/** A row for each time that the bank took the money, or gave it back. */
export function disputeLines(dispute: Stripe.Dispute, target: Target): Line[] {
  const charge = dispute.charge as Stripe.Charge
  const { id, currency } = dispute
  return disputeMovements({ ...dispute }).map(({ took, number, amount, created }) => {
    const type = took ? 'chargeback' : 'chargeback_reversal'
    const status = took ? 'refunded' : 'succeeded'
    const more = { psp_status: dispute.status, psp_reason_code: textOr(dispute.reason) }
    const name = number === 1 ? `${id} ${type}` : `${id} ${type} ${number}`
    return movementLine(charge, target, { id, name, amount, currency, created, type, status, more })
  })
}

interface Movement {
  id: string
  /** Tells the movements of one object apart. */
  name: string
  amount: number
  /** That of a dispute may be another one than the charge's. */
  currency: string
  created: number
  type: string
  status: 'succeeded' | 'failed' | 'refunded'
  more: Partial<PaymentDetails>
}

function movementLine(
  charge: Stripe.Charge,
  target: Target,
  { id, name, amount, currency, created, type, status, more }: Movement,
): Line {
  const failed = status === 'failed'
  return {
    record: 'payment',
    data: {
      ...basis(charge, target),
      trx_id: uuidOf(failed ? 'failure' : 'payment', name),
      trx_created_at: time(created),
      currency_code: currency.toUpperCase(),
      ...amounts(amount, currency),
      status,
      ...noDetails,
      psp_transaction_id: id,
      psp_transaction_type: type,
      psp_date: time(created),
      pm_type: textOr(charge.payment_method_details?.type),
      ...cardDetails({ ...charge.payment_method_details?.card }),
      ...more,
    },
  }
}

/** In major units; `amount_usd` of other currencies follows from the exchange rates. */
function amounts(stripeAmount: number, currency: string): { amount: unknown; amount_usd: unknown } {
  const amount = majorNumber(stripeAmount, currency)
  return { amount, amount_usd: currency === 'usd' ? amount : null }
}

/** The fields that all rows of a charge share. */
function basis(charge: Stripe.Charge, target: Target): Record<string, unknown> {
  const customer = charge.customer as AnyCustomer | null
  return {
    external_id: customer ? externalIdOf(customer, target) : guestId(charge),
    order_id: uuidOf('order', charge.id),
    currency_code: charge.currency.toUpperCase(),
    psp: PSP,
    psp_merchant_id: target.merchantId,
    psp_customer_id: customer?.id ?? null,
  }
}
