// Payments of the dialect: created, captured, cancelled and refunded, as the workflow of an account would do.
import { readCurrency } from '../../lib/money.ts'
import { invalid, notFound, PrimerError } from './errors.ts'
import { methodOf } from './methods.ts'
import type { Payment, State, Status, Transaction } from './state.ts'
import { type Behaviour, behaviourOf, type Decline } from './tokens.ts'

export interface Context {
  state: State
  /** Sends a webhook with the payment as it is then. */
  emit(eventType: 'PAYMENT.STATUS' | 'PAYMENT.REFUND', payment: Payment): void
}

type Fields = Record<string, unknown>

const CREATE = [
  'orderId',
  'currencyCode',
  'amount',
  'order',
  'paymentMethodToken',
  'customerId',
  'customer',
  'metadata',
  'paymentMethod',
  'expand',
]
const PROCESSORS = [
  ['STRIPE', 'acct_sim'],
  ['ADYEN', 'TundishECOM'],
] as const

function check(body: Fields, known: readonly string[]): void {
  const other = Object.keys(body).find((name) => !known.includes(name))
  if (other !== undefined) throw invalid(other, 'Unknown field.')
}

function textIn(body: Fields, name: string): string {
  const value = body[name]
  if (typeof value !== 'string' || value === '' || value.length > 255) throw invalid(name, 'Value must be a string.')
  return value
}

function amountIn(body: Fields): number {
  const { amount } = body
  if (!Number.isSafeInteger(amount) || (amount as number) < 0) throw invalid('amount', 'Value must be a valid integer')
  return amount as number
}

function metadataIn(body: Fields): Payment['metadata'] {
  const metadata = (body['metadata'] ?? {}) as Payment['metadata']
  for (const [key, value] of Object.entries(metadata)) {
    if (key === '') throw new PrimerError(400, 'MetadataContainsEmptyKey', 'Metadata field contains empty string key.')
    if (typeof value !== 'string' && !Number.isSafeInteger(value))
      throw invalid('metadata', 'Values must be strings or integers.')
  }
  return metadata
}

export function create({ state, emit }: Context, body: Fields): Payment {
  check(body, CREATE)
  const [orderId, currencyCode, token] = ['orderId', 'currencyCode', 'paymentMethodToken'].map((name) =>
    textIn(body, name),
  )
  const amount = amountIn(body)
  if (readCurrency(currencyCode!) !== currencyCode) throw invalid('currencyCode', 'Invalid type for `currencyCode`')
  const metadata = metadataIn(body)
  const behaviour = behaviourOf(token!)
  if (state.isDeleted(token!))
    throw new PrimerError(400, 'InvalidPaymentInstrumentToken', 'Invalid payment instrument.')
  const customerId = typeof body['customerId'] === 'string' ? body['customerId'] : state.ownerOf(token!)
  if (customerId !== undefined) state.vault(token!, customerId)
  const id = state.newId()
  const date = state.now()
  const transactions = behaviour.attempts.map((decline, n) =>
    attempt({ date: later(date, n), amount, currencyCode: currencyCode!, orderId: orderId! }, n, decline, behaviour),
  )
  const last = transactions.at(-1)!
  const reason = last.processorStatusReason
  const { paymentType } = (body['paymentMethod'] ?? {}) as Fields
  const payment = state.put({
    ...{ id, date, dateUpdated: date, status: last.processorStatus, cardTokenType: 'CARD_PAN' },
    ...{ orderId: orderId!, currencyCode: currencyCode!, amount },
    ...(customerId !== undefined && { customerId }),
    metadata,
    paymentMethod: methodOf(token!, paymentType),
    processor: {
      name: last.processorName,
      processorMerchantId: last.processorMerchantId,
      amountCaptured: capturedOf(last.processorStatus, amount),
      amountRefunded: 0,
    },
    ...(behaviour.needsAction && {
      requiredAction: {
        name: '3DS_AUTHENTICATION',
        description: 'The customer must authenticate.',
        clientToken: 'eyJ',
      },
    }),
    ...(reason !== undefined && { statusReason: reason }),
    transactions,
  })
  if (behaviour.settlesAfterMs !== undefined) state.schedule('settle', id, behaviour.settlesAfterMs)
  emit('PAYMENT.STATUS', payment)
  return payment
}

const capturedOf = (status: Status, amount: number) =>
  status === 'SETTLED' ? amount : status === 'PARTIALLY_SETTLED' ? Math.ceil(amount / 2) : 0

const later = (date: string, ms: number) => new Date(Date.parse(`${date}Z`) + ms).toISOString().replace('Z', '000')

function attempt(
  sale: Pick<Transaction, 'date' | 'amount' | 'currencyCode' | 'orderId'>,
  n: number,
  decline: Decline | null,
  { approved }: Behaviour,
): Transaction {
  const [processorName, processorMerchantId] = PROCESSORS[n % PROCESSORS.length]!
  const status = decline === null ? approved : decline.type === 'ISSUER_DECLINED' ? 'DECLINED' : 'FAILED'
  return {
    ...sale,
    transactionType: 'SALE',
    processorTransactionId: `${processorName.toLowerCase()}_${sale.orderId.slice(0, 12)}_${n}`,
    processorName,
    processorMerchantId,
    processorStatus: status,
    cardTokenType: 'CARD_PAN',
    ...(decline !== null && { processorStatusReason: decline }),
  }
}

export function existing(state: State, id: string): Payment {
  const payment = state.find(id)
  if (!payment) throw notFound()
  return payment
}

function become({ state, emit }: Context, payment: Payment, status: Status, more: Partial<Transaction> = {}): Payment {
  const last = payment.transactions.findLastIndex(({ transactionType }) => transactionType === 'SALE')
  const transactions = payment.transactions.map((one, n) =>
    n === last ? { ...one, processorStatus: status, ...more } : one,
  )
  const { requiredAction: _action, ...rest } = payment
  const processor = { ...payment.processor, amountCaptured: capturedOf(status, payment.amount) }
  const changed = state.put({ ...rest, status, processor, transactions, dateUpdated: state.now() })
  emit('PAYMENT.STATUS', changed)
  return changed
}

export function capture(context: Context, id: string, body: Fields): Payment {
  check(body, ['amount', 'final', 'order', 'metadata', 'expand'])
  const payment = existing(context.state, id)
  if (payment.status !== 'AUTHORIZED')
    throw new PrimerError(400, 'PaymentIsNotAuthorizedYet', 'The payment is not authorized.')
  return become(context, payment, 'SETTLED')
}

export function cancel(context: Context, id: string, body: Fields): Payment {
  check(body, ['reason', 'expand'])
  const payment = existing(context.state, id)
  const { reason } = body
  if (payment.status !== 'PENDING' && payment.status !== 'AUTHORIZED' && payment.status !== 'FAILED')
    throw new PrimerError(400, 'PaymentError', `The payment is ${payment.status}`)
  return become(context, payment, 'CANCELLED', typeof reason === 'string' ? { reason } : {})
}

/** Settles a payment that was not decided yet. */
export function settle(context: Context, id: string): void {
  const payment = context.state.find(id)
  if (payment?.status === 'PENDING' || payment?.status === 'SETTLING') become(context, payment, 'SETTLED')
}

export function refund(context: Context, id: string, body: Fields): Payment {
  check(body, ['amount', 'orderId', 'reason', 'transactionEventId', 'expand'])
  const { state, emit } = context
  const payment = existing(state, id)
  const { amountCaptured, amountRefunded } = payment.processor
  const open = amountCaptured - amountRefunded
  if (amountCaptured > 0 && open === 0)
    throw new PrimerError(409, 'PaymentAlreadyRefunded', 'The payment has already been fully refunded.')
  const amount = body['amount'] === undefined ? open : amountIn(body)
  if (amount > open || amount === 0)
    throw new PrimerError(422, 'UnprocessableRefundAmount', `Cannot refund this payment with the amount ${amount}.`)
  const how = behaviourOf(payment.paymentMethod.paymentMethodToken).refund
  const status = how === 'pending' ? 'PENDING' : how === 'fails' ? 'FAILED' : 'SETTLED'
  const sale = payment.transactions.findLast(({ transactionType }) => transactionType === 'SALE')!
  const made: Transaction = {
    // As in Primer's example, the refund has the processor's id of the charge.
    ...{ ...sale, transactionType: 'REFUND', amount, date: state.now(), processorStatus: status },
    orderId: typeof body['orderId'] === 'string' ? body['orderId'] : payment.orderId,
    ...(typeof body['reason'] === 'string' && { reason: body['reason'] }),
    ...(status === 'FAILED' && { processorStatusReason: { type: 'GATEWAY_REJECTED', message: 'The refund failed.' } }),
  }
  const n = payment.transactions.length
  const changed = putRefunds(state, payment, [...payment.transactions, made])
  if (how === 'pending') state.schedule('refund', `${id} ${n}`, 3_600_000)
  else emit('PAYMENT.REFUND', changed)
  if (how === 'fails_later') state.schedule('fail_refund', `${id} ${n}`, 86_400_000)
  return changed
}

function putRefunds(state: State, payment: Payment, transactions: Transaction[]): Payment {
  const counted = transactions.filter((one) => one.transactionType === 'REFUND' && one.processorStatus !== 'FAILED')
  const amountRefunded = counted.reduce((sum, { amount }) => sum + amount, 0)
  return state.put({
    ...payment,
    dateUpdated: state.now(),
    transactions,
    processor: { ...payment.processor, amountRefunded },
  })
}

/** Ends a refund that is pending, or fails one that had succeeded. */
export function endRefund({ state, emit }: Context, target: string, status: 'SETTLED' | 'FAILED'): void {
  const [id, place] = target.split(' ')
  const payment = state.find(id!)
  if (!payment?.transactions[Number(place)]) throw notFound()
  const transactions = payment.transactions.map((one, n) =>
    n === Number(place) ? { ...one, processorStatus: status } : one,
  )
  emit('PAYMENT.REFUND', putRefunds(state, payment, transactions))
}
