// A payout as the API shows it.
import type { Stripe } from 'stripe'
import type { Objects } from './state.ts'

/** Without the entries, which only the list of balance transactions shows. */
export const shown = ({ entries: _entries, ...payout }: Objects['payout']): Stripe.Payout => payout
