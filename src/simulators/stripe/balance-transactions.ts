// Balance transactions: the change of the account's balance by a charge, refund or dispute, in the account's currency.
import type { Stripe } from 'stripe'
import { decimalsOf } from './amounts.ts'
import { type Call, type Dialect, existing, inPath, route, text } from './call.ts'
import { LIST_PARAMS, list, matching } from './lists.ts'
import { behaviourOf } from './payment-methods.ts'

type BalanceTransaction = Stripe.BalanceTransaction

export const ACCOUNT_CURRENCY = 'usd'

// Invented exchange rates: units of the account's currency for one unit of another; 1 for currencies that are not listed.
const RATES: Record<string, number> = {
  eur: 1.08,
  gbp: 1.27,
  huf: 0.0028,
  isk: 0.0072,
  jpy: 0.0067,
  kwd: 3.25,
  mga: 0.00022,
}

// The usual fee for a card: 2.9 % and 30 of the smallest units.
const PERCENT = 2.9
const FIXED = 30

export const balanceTransactionRoutes = [
  route('GET', '/v1/balance_transactions', [...LIST_PARAMS, 'currency', 'payout', 'source', 'type'], listAll),
  route('GET', '/v1/balance_transactions/:id', [], (dialect, call) => inPath(dialect, call, 'balance_transaction')),
]

function listAll(dialect: Dialect, call: Call): object {
  const payout = text(call, 'payout')
  const own = payout === undefined ? undefined : new Set(existing(dialect, 'payout', payout, 'payout').entries)
  const found = matching(dialect, call, 'balance_transaction', ['currency', 'source', 'type'])
  return list(
    call,
    found.filter(({ id }) => !own || own.has(id)),
  )
}

export interface Posting {
  /** The charge, refund or dispute. */
  source: string
  /** In Stripe's units of `currency`; negative when the account pays. */
  amount: number
  currency: string
  /** In the account's currency. */
  fee: number
  type: 'adjustment' | 'charge' | 'refund' | 'refund_failure'
  category: string
  description: string
}

/** Enters a movement of money into the balance. */
export function post(dialect: Dialect, { currency, ...posting }: Posting): BalanceTransaction {
  const exchange_rate = currency === ACCOUNT_CURRENCY ? null : rateOf(currency)
  return enter(dialect, { ...posting, amount: exchanged(posting.amount, currency), exchange_rate })
}

interface Entry extends Omit<Posting, 'currency' | 'source' | 'type'> {
  source: string | null
  type: Posting['type'] | 'payout' | 'payout_failure' | 'stripe_fee'
  exchange_rate?: number | null
}

/** Enters an amount in the account's currency. */
export function enter({ state }: Dialect, entry: Entry): BalanceTransaction {
  const { source, amount, fee, type, category, description, exchange_rate = null } = entry
  return state.put({
    id: state.newId('txn'),
    object: 'balance_transaction',
    amount,
    available_on: state.now(),
    balance_type: 'payments',
    created: state.now(),
    currency: ACCOUNT_CURRENCY,
    description,
    exchange_rate,
    fee,
    fee_details: fee === 0 ? [] : [feeDetail(fee, type === 'adjustment' ? 'Dispute fee' : 'Stripe processing fees')],
    net: amount - fee,
    reporting_category: category,
    source,
    status: 'available',
    type,
  } satisfies BalanceTransaction)
}

/** The fee of a charge, in the account's currency. */
function cardFee(amount: number, currency: string): number {
  return exchanged((amount * PERCENT) / 100 + FIXED, currency)
}

/** A charge that succeeded enters the balance: at once, or later where its card says so. */
export function postCharge(dialect: Dialect, charge: Stripe.Charge): Stripe.Charge {
  const { balanceAfterMs } = behaviourOf(dialect, charge.payment_method!)
  if (balanceAfterMs === undefined) return entered(dialect, charge)
  dialect.state.schedule('post_charge', charge.id, balanceAfterMs)
  return charge
}

/** Posts a charge that was postponed, and emits the event. */
export function postWaitingCharge(dialect: Dialect, id: string): void {
  const charge = existing(dialect, 'charge', id, 'charge')
  dialect.emit('charge.updated', entered(dialect, charge), { balance_transaction: null })
}

function entered(dialect: Dialect, charge: Stripe.Charge): Stripe.Charge {
  const { id, amount, currency } = charge
  const fee = cardFee(amount, currency)
  const posting = {
    source: id,
    amount,
    currency,
    fee,
    type: 'charge',
    category: 'charge',
    description: 'Charge',
  } as const
  return dialect.state.put({ ...charge, balance_transaction: post(dialect, posting).id })
}

/** An amount in the account's currency. */
function exchanged(amount: number, currency: string): number {
  return Math.round(amount * rateOf(currency) * 10 ** (decimalsOf(ACCOUNT_CURRENCY) - decimalsOf(currency)))
}

function rateOf(currency: string): number {
  return RATES[currency] ?? 1
}

function feeDetail(amount: number, description: string): Stripe.BalanceTransaction.FeeDetail {
  return { amount, application: null, currency: ACCOUNT_CURRENCY, description, type: 'stripe_fee' }
}
