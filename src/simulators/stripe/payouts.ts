// Payouts: what is in the balance goes to the bank, all at once; an account's own fees and adjustments.
import type { Stripe } from 'stripe'
import { DAY_S } from '../../lib/days.ts'
import { ACCOUNT_CURRENCY, enter } from './balance-transactions.ts'
import { type Dialect, existing } from './call.ts'
import { invalid } from './errors.ts'
import { readRoutes } from './lists.ts'
import { nulls } from './nulls.ts'
import type { Objects } from './state.ts'

/** As the API shows it: without the entries, which only the list of balance transactions shows. */
export const shown = ({ entries: _entries, ...payout }: Objects['payout']): Stripe.Payout => payout

export const payoutRoutes = readRoutes('/v1/payouts', 'payout', ['status'], shown)

/** Pays out everything that is in the balance, as Stripe does every day or week. undefined if there is nothing to pay. */
export function payOut(dialect: Dialect): Stripe.Payout | undefined {
  const { state, livemode } = dialect
  const paid = new Set(state.all('payout').flatMap(({ entries }) => entries))
  const waiting = state.all('balance_transaction').filter(({ id, created }) => created <= state.now() && !paid.has(id))
  const amount = waiting.reduce((sum, { net }) => sum + net, 0)
  if (amount <= 0) return undefined
  const id = state.newId('po')
  const posting = {
    source: id,
    amount: -amount,
    fee: 0,
    type: 'payout',
    category: 'payout',
    description: 'STRIPE PAYOUT',
  } as const
  const own = enter(dialect, posting)
  const payout: Objects['payout'] = {
    id,
    object: 'payout',
    amount,
    ...nulls('application_fee application_fee_amount destination failure_balance_transaction failure_code'),
    ...nulls('failure_message original_payout payout_method reversed_by statement_descriptor trace_id'),
    arrival_date: (Math.floor(state.now() / DAY_S) + 2) * DAY_S,
    automatic: true,
    balance_transaction: own.id,
    created: state.now(),
    currency: ACCOUNT_CURRENCY,
    description: 'STRIPE PAYOUT',
    livemode,
    metadata: {},
    method: 'standard',
    reconciliation_status: 'completed',
    source_type: 'card',
    status: 'paid',
    type: 'bank_account',
    entries: [own.id, ...waiting.map(({ id: entry }) => entry)],
  }
  state.put(payout)
  for (const type of ['payout.created', 'payout.paid'] as const) dialect.emit(type, shown(payout))
  return shown(payout)
}

/** The bank returns a payout: its money is in the balance again, for the next one. */
export function failPayout(dialect: Dialect, id: string): Stripe.Payout {
  const before = existing(dialect, 'payout', id, 'id', 404)
  if (before.status !== 'paid') throw invalid('Only a payout that was paid can fail.', { param: 'id' })
  const { amount } = before
  const back = enter(dialect, {
    ...{ source: id, amount, fee: 0, type: 'payout_failure', category: 'payout_reversal' },
    description: 'PAYOUT FAILURE',
  })
  const failed = {
    ...before,
    ...{ status: 'failed', failure_code: 'account_closed', failure_message: 'The bank account has been closed.' },
    failure_balance_transaction: back.id,
  }
  return dialect.emit('payout.failed', shown(dialect.state.put(failed)), { status: 'paid' })
}

/** A fee of the account, such as that of Radar, or an adjustment; `amount` is negative where the account pays. */
export function adjust(dialect: Dialect, { amount, type }: { amount: number; type: 'stripe_fee' | 'adjustment' }) {
  const description = type === 'stripe_fee' ? 'Radar for Fraud Teams' : 'Correction by Stripe'
  const category = type === 'stripe_fee' ? 'fee' : 'other_adjustment'
  return enter(dialect, { source: null, amount, fee: 0, type, category, description })
}
