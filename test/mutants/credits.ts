// Mutants of the ledger of credits, and of automatic top-ups.
import type { Mutants } from './mutant.ts'

const ACCOUNT = 'payments/billing/credits/account.ts'
const ledger = ['test/payments/billing/credits/ledger.test.ts']
const ofCharges = ['test/payments/billing/credits/charges.test.ts']
const topUps = ['test/payments/billing/top-up.test.ts']

export const creditMutants: Mutants = {
  'held-credits-spent': {
    does: 'spends credits that a hold has reserved',
    file: ACCOUNT,
    code: `if (amount > this.available) return undefined\n    return this.#use('spent'`,
    bug: `if (amount > this.balance) return undefined\n    return this.#use('spent'`,
    foundBy: ledger,
  },
  'credits-used-last-first': {
    does: 'uses credits first that expire last',
    file: 'payments/billing/credits/parts.ts',
    code: `return one.expiresAt < other.expiresAt ? -1 : 1`,
    bug: `return one.expiresAt > other.expiresAt ? -1 : 1`,
    foundBy: ledger,
  },
  'debt-of-credits-forgotten': {
    does: 'lets a grant be spent whole although it has a debt to pay',
    file: ACCOUNT,
    code: `remaining: amount - this.#paysDebt(amount),`,
    bug: `remaining: amount,`,
    foundBy: ofCharges,
  },
  'credits-spent-again': {
    does: 'spends again under a key that was used',
    file: 'payments/billing/credits/calls.ts',
    code: `if (before) return replay(ask, before)`,
    bug: `if (before && before.request !== ask.request) return replay(ask, before)`,
    foundBy: ledger,
  },
  'reused-key-of-credits': {
    does: 'returns for a key that was used for something else the response to that',
    file: 'payments/billing/credits/calls.ts',
    code: `if (request !== ask.request) throw keyReused()`,
    bug: `if (request === '') throw keyReused()`,
    foundBy: ledger,
  },
  'held-credits-expire': {
    does: 'lets credits expire that a hold has reserved',
    file: ACCOUNT,
    code: `let protectedByHolds = this.held`,
    bug: `let protectedByHolds = 0n`,
    foundBy: ['test/payments/billing/credits/expiry.test.ts'],
  },
  'credits-revoked-again': {
    does: 'revokes the whole share with each partial refund',
    file: ACCOUNT,
    code: `if (share > lot.revoked) this.#revoke(lot, share - lot.revoked,`,
    bug: `if (share > lot.revoked) this.#revoke(lot, share,`,
    foundBy: ofCharges,
  },
  'returned-credits-keep-their-expiry': {
    does: 'gives credits back that expire when they would have without the dispute',
    file: 'payments/billing/credits/parts.ts',
    code: `instantFromMicros(microsFromInstant(now) + leftMicros)`,
    bug: `(now && expiresAt)`,
    foundBy: ofCharges,
  },
  'returned-credits-never-expire': {
    does: 'gives credits back without an expiry',
    file: 'payments/billing/credits/parts.ts',
    code: `return leftMicros > 0n ?`,
    bug: `return leftMicros > 0n && now === '' ?`,
    foundBy: ofCharges,
  },
  'disputed-credits-left': {
    does: 'leaves the credits of a charge whose money a dispute has taken',
    file: 'payments/billing/ledger/dispute.ts',
    code: `const isTaken = change.takes || order.is_disputed_otherwise\n  const part`,
    bug: `const isTaken = change.takes && order.is_disputed_otherwise\n  const part`,
    foundBy: 'simulation',
  },
  'entries-of-credits-go-back': {
    does: 'stamps an entry before the one before it when the clock of the database is set back',
    file: 'payments/billing/credits/save.ts',
    code: `set last_entry_at = greatest(db_clock(), c.last_entry_at + interval '1 microsecond')`,
    bug: `set last_entry_at = greatest(db_clock(), least(c.last_entry_at, db_clock()) + interval '1 microsecond')`,
    foundBy: 'simulation',
  },
  'share-of-credits-not-rounded': {
    does: 'revokes a share with more decimals than the unit has',
    file: 'payments/billing/credits/amount.ts',
    code: `return ((credits * part) / whole / step) * step`,
    bug: `return step > 0n ? (credits * part) / whole : 0n`,
    foundBy: ofCharges,
  },
  'rule-of-another-currency': {
    does: 'grants by a rule for another currency',
    file: 'payments/billing/credits/grants.ts',
    code: 'and r.currency_code = ${currency} and r.charged',
    bug: 'and ${currency} is not null and r.charged',
    foundBy: ofCharges,
  },
  'credits-low-with-each-spend': {
    does: 'sends credits.low with each spend below the limit',
    file: 'payments/billing/credits/events.ts',
    code: `availableBefore < lowBelow || `,
    bug: '',
    foundBy: ledger,
  },
  'accounts-of-credits-not-locked': {
    does: 'lets concurrent spends overwrite each other’s sums',
    file: 'payments/billing/credits/store.ts',
    code: `order by c.organization_id, c.external_id, c.unit for no key update of c`,
    bug: `order by c.organization_id, c.external_id, c.unit`,
    foundBy: ['test/payments/billing/credits/races.test.ts'],
  },
  'hold-captured-again': {
    does: 'keeps a hold open of which a part was captured',
    file: ACCOUNT,
    code: `this.#end(hold, 'captured')`,
    bug: `if (amount === hold.amount) this.#end(hold, 'captured')`,
    foundBy: ledger,
  },
  'caps-without-lock': {
    does: 'charges without a look at the caps',
    file: 'payments/billing/charge/claim.ts',
    code: "when not a.is_locked and ${HAS_CAPS} then 'caps_not_locked'",
    bug: "when not a.is_locked and ${HAS_CAPS} and false then 'caps_not_locked'",
    foundBy: ['test/payments/billing/caps.test.ts'],
  },
  'top-up-without-turns': {
    does: 'sends the key of the first top-up with every later one',
    file: 'payments/billing/top-up/run.ts',
    code: `set turn = t.turn + 1,`,
    bug: `set turn = t.turn,`,
    foundBy: topUps,
  },
  'top-up-after-a-decline': {
    does: 'tops up again after a decline',
    file: 'payments/billing/top-up/run.ts',
    code: `checkout_status === 'failed' ? { orderId: order_id } : undefined`,
    bug: `checkout_status === 'cancelled' ? { orderId: order_id } : undefined`,
    foundBy: topUps,
  },
  'top-up-of-what-was-refunded': {
    does: 'charges the card again for credits that a refund has revoked',
    file: 'payments/billing/credits/due-top-ups.ts',
    code: `entry.account === 'revoked' && entry.amount < 0n`,
    bug: `entry.account === 'revoked' && entry.amount > 0n`,
    foundBy: topUps,
  },
  'top-up-beyond-its-day': {
    does: 'tops up once more than a day allows',
    file: 'payments/billing/top-up/run.ts',
    code: '>= t.most_per_${period}',
    bug: '> t.most_per_${period}',
    foundBy: topUps,
  },
}
