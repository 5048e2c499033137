// The lists of the dialect: payments as summaries, late by a minute as Primer says, and the saved tokens of a customer.
import { invalid } from './errors.ts'
import { cardOf } from './methods.ts'
import type { Payment, State } from './state.ts'

const FILTERS = ['order_id', 'customer_id', 'from_date', 'to_date', 'status', 'limit', 'cursor']

export function listPayments(state: State, query: Record<string, string>, lagMs: number): object {
  const other = Object.keys(query).find((name) => !FILTERS.includes(name))
  if (other !== undefined) throw invalid(other, 'Unknown filter.')
  const { limit = '100', cursor } = query
  if (!/^([1-9][0-9]?|100)$/.test(limit)) throw invalid('limit', 'Ensure this value is between 1 and 100')
  const found = state.all().filter((one) => msOf(one.date) <= state.nowMs() - lagMs && matches(one, query))
  const newest = found.reverse()
  const from =
    cursor === undefined ? 0 : newest.findIndex(({ id }) => id === Buffer.from(cursor, 'base64url').toString()) + 1
  const page = newest.slice(from, from + Number(limit))
  const isLast = from + page.length >= newest.length
  return {
    data: page.map(summaryOf),
    ...(!isLast && { nextCursor: Buffer.from(page.at(-1)!.id).toString('base64url') }),
  }
}

const msOf = (date: string) => Date.parse(/Z|[+-]\d\d:\d\d$/.test(date) ? date : `${date}Z`)

function matches(
  payment: Payment,
  { order_id, customer_id, from_date, to_date, status }: Record<string, string>,
): boolean {
  // "Payments related to this order ID": also by a refund that has it.
  const isRelated = () => payment.transactions.some(({ orderId }) => orderId === order_id)
  return (
    (order_id === undefined || payment.orderId === order_id || isRelated()) &&
    (customer_id === undefined || customer_id.split(',').includes(payment.customerId ?? '')) &&
    (status === undefined || status.split(',').includes(payment.status)) &&
    (from_date === undefined || msOf(payment.date) >= msOf(from_date)) &&
    (to_date === undefined || msOf(payment.date) <= msOf(to_date))
  )
}

function summaryOf({ id, date, dateUpdated, status, orderId, currencyCode, amount, metadata, processor }: Payment) {
  const { name, processorMerchantId } = processor
  return {
    id,
    date,
    dateUpdated,
    status,
    orderId,
    processor: { name, processorMerchantId },
    currencyCode,
    amount,
    metadata,
  }
}

export function listTokens(state: State, { customer_id }: Record<string, string>): object {
  if (!customer_id) throw invalid('customer_id', 'field required')
  const data = state.tokensOf(customer_id).map((token) => ({
    ...{ createdAt: state.now(), deleted: false, token, tokenType: 'MULTI_USE', paymentMethodType: 'PAYMENT_CARD' },
    ...{ paymentMethodData: cardOf(), customerId: customer_id, default: false },
  }))
  return { data }
}
