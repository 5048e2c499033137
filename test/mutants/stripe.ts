// Mutants of Stripe's adapter, of connecting an account, and of comparing with it.
import type { Mutants } from './mutant.ts'

const charges = ['test/payments/providers/stripe/charges.test.ts']
const reconciled = ['test/payments/billing/stripe-reconcile.test.ts']

export const stripeMutants: Mutants = {
  'processing-payment-overlooked': {
    does: 'takes another payment of a key for the charge than the one that the bank is processing',
    file: 'payments/providers/stripe/intents.ts',
    code: `succeeded: 0, unknown: 1, failed: 2, unconfirmed: 3,`,
    bug: `succeeded: 0, unknown: 4, failed: 2, unconfirmed: 3,`,
    foundBy: charges,
  },
  'other-payment-of-a-key-left-open': {
    does: 'leaves another payment of a key uncancelled',
    file: 'payments/providers/stripe/intents.ts',
    code: `(outcome === 'failed' || outcome === 'unconfirmed')`,
    bug: `outcome === 'failed'`,
    foundBy: charges,
  },
  'currencies-not-compared': {
    does: 'takes a charge of the same number in another currency for the same',
    file: 'payments/billing/reconcile/compare.ts',
    code: `if (row.currency_code !== currencyCode || minorUnits`,
    bug: `if (minorUnits`,
    foundBy: reconciled,
  },
  'confirmed-later-not-listed': {
    does: 'lists no payment that was made before the instant to list from and confirmed after it',
    file: 'payments/providers/stripe/movements.ts',
    code: `- CONFIRM_WITHIN_S, DAY_S]`,
    bug: `- CONFIRM_WITHIN_S * 0, DAY_S]`,
    foundBy: ['test/payments/providers/stripe/around-charges.test.ts'],
  },
  'old-dispute-not-listed': {
    does: 'lists no dispute that was opened more than twelve days before',
    file: 'payments/providers/stripe/disputes.ts',
    code: `const DECIDED_WITHIN_S = 120 * DAY_S`,
    bug: `const DECIDED_WITHIN_S = 12 * DAY_S`,
    foundBy: reconciled,
  },
  'live-account-becomes-a-sandbox': {
    does: 'connects a live account with a test key',
    file: 'payments/providers/connect.ts',
    code: `if (was !== null && was !== isSandbox)`,
    bug: `if (was && !isSandbox)`,
    foundBy: ['test/payments/providers/connect.test.ts'],
  },
}
