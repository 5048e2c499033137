// Primer's payments as profiles, customers, transactions and payments.
import { formatMinor } from '../../../lib/money.ts'
import { charged } from '../../../payments/providers/primer/charges.ts'
import { attemptsOf, detailsOf, isCit } from '../../../payments/providers/primer/details.ts'
import type { Payment } from '../../../payments/providers/primer/objects.ts'
import { refundsIn } from '../../../payments/providers/primer/refunds.ts'
import { fieldsOf, textOf } from '../../../payments/providers/transport.ts'
import type { Line } from '../line-import.ts'
import { rawNumber, recordId, uuidOf } from '../stripe/convert.ts'

export interface PrimerTarget {
  organizationId: string
  projectId: string
  merchantId: string
  isSandbox: boolean
}

/** The id of the billing customer: the `customerId` of the payment; without one each payment has its own customer. */
export const externalIdOf = ({ id, customer }: Payment) => customer ?? `guest_${id}`

/** A profile and a customer with the same id, for a person whose profile is not here yet. A customer that is here only gets the profile. */
export function personLines(payment: Payment, here: { isCustomer: boolean; isProfile: boolean }): Line[] {
  const externalId = externalIdOf(payment)
  const id = recordId(externalId)
  const person = fieldsOf(payment.body['customer'])
  const email = textOf(person['emailAddress'])
  const country = textOf(fieldsOf(person['billingAddress'])['countryCode'])
  const profile = { record: 'profile', data: { id, created_at: payment.date, email, country } }
  return [
    ...(here.isProfile ? [] : [profile]),
    { record: 'customer', data: { external_id: externalId, ...(!here.isCustomer && { email }), profile_id: id } },
  ]
}

export interface Known {
  /** Whether the payment method is saved at Primer and can be charged. */
  isSaved: boolean
  /** The profile of the customer. */
  profileId: string
}

/** The rows of a payment that is decided: one for each attempt, the refunds, and a transaction if it succeeded. */
export function paymentLines(payment: Payment, target: PrimerTarget, { isSaved, profileId }: Known): Line[] {
  const { status, asked } = payment
  const hasSucceeded = status === 'SETTLED' || status === 'PARTIALLY_SETTLED'
  const hasFailed = status === 'DECLINED' || status === 'FAILED'
  const { failedAttempts, isFallback } = attemptsOf(payment)
  const is_cit = isCit(payment) ?? null
  const rows: Line[] = failedAttempts.map(({ details, isFallback: is_fallback }, n) =>
    row(payment, target, {
      ...{ purpose: 'failure', id: `${payment.id} attempt ${n}`, at: details.psp_date },
      ...{ minor: asked.amountMinor, status: 'failed', more: { ...details, is_fallback, is_cit } },
    }),
  )
  if (!hasSucceeded && !hasFailed) return rows
  const minor = hasSucceeded ? charged(payment) : asked.amountMinor
  const details = { ...detailsOf(payment, hasFailed), is_fallback: isFallback, is_cit }
  const token = hasSucceeded && isSaved ? payment.token : null
  rows.push(
    row(payment, target, {
      ...{ purpose: 'payment', id: payment.id, at: details.psp_date, minor },
      ...{ status: hasSucceeded ? 'succeeded' : 'failed', more: { ...details, payment_method_token: token } },
    }),
  )
  if (!hasSucceeded) return rows
  const paidAt = details.psp_date ?? payment.date
  return [...rows, transactionLine(payment, target, { minor, paidAt, profileId }), ...refundLines(payment, target)]
}

function refundLines(payment: Payment, target: PrimerTarget): Line[] {
  return refundsIn(payment).flatMap(({ status, transactionId, amountMinor, at, details }) => {
    if (status === 'pending') return []
    const failed = status === 'failed'
    return [
      row(payment, target, {
        ...{ purpose: failed ? 'failure' : 'payment', id: transactionId, at, minor: amountMinor },
        ...{ status: failed ? 'failed' : 'refunded', more: { ...details } },
      } as const),
    ]
  })
}

interface Row {
  purpose: 'payment' | 'failure'
  /** Unique at Primer. */
  id: string
  at: string | null
  minor: bigint
  status: 'succeeded' | 'failed' | 'refunded'
  more: Record<string, unknown>
}

function row(payment: Payment, { merchantId }: PrimerTarget, { purpose, id, at, minor, status, more }: Row): Line {
  const { currencyCode } = payment.asked
  const amount = rawNumber(formatMinor(minor, currencyCode))
  const known = Object.entries(more).filter(([, value]) => value !== null)
  return {
    record: 'payment',
    data: {
      external_id: externalIdOf(payment),
      order_id: uuidOf('order', `primer ${payment.id}`),
      trx_id: uuidOf(purpose, `primer ${id}`),
      trx_created_at: at ?? payment.date,
      ...{ currency_code: currencyCode, amount, amount_usd: currencyCode === 'USD' ? amount : null, status },
      ...{ psp: 'primer', psp_merchant_id: merchantId, psp_customer_id: payment.customer },
      ...Object.fromEntries(known),
      psp_date: at ?? payment.date,
    },
  }
}

interface Paid {
  minor: bigint
  paidAt: string | null
  profileId: string
}

/** At the time of its row in the payment report. */
function transactionLine(payment: Payment, { isSandbox }: PrimerTarget, { minor, paidAt, profileId }: Paid): Line {
  const currency = payment.asked.currencyCode.toLowerCase()
  const price = Number(minor)
  return {
    record: 'transaction',
    data: {
      ...{ id: recordId(payment.id), created_at: paidAt, profile_id: profileId },
      ...{ currency, price, price_usd: currency === 'usd' ? price : null, sandbox: isSandbox, subscription_id: null },
    },
  }
}
