// The rules of a charge. Each has a name, which is the error code, and a sentence for the caller. The claim evaluates them.
import { ApiError, tryLater } from '../../../lib/errors.ts'
import { formatMinor, MAX_MINOR, readCurrency, toMinor, tooManyDecimals } from '../../../lib/money.ts'
import { shorten } from '../../../lib/text.ts'
import { amountRefused, amountRule, notPositive } from '../body.ts'
import type { ChargeRequest } from './request.ts'

/** The rules that the claim's statement judges, in the order of the contract; the first that is broken is returned. */
export type Rule =
  | 'one_off_charge_disabled'
  /** The amount breaks a rule that needs no database: see `exactAmount`. */
  | 'amount_refused'
  | 'amount_above_maximum'
  /** An account was not listed since a backup was restored, or since a failover lost commits: the key may have been charged there. */
  | 'restore_not_reconciled'
  | 'unknown_customer'
  /** The organization has caps, and its counters were not locked: claim again with the lock. */
  | 'caps_not_locked'
  | 'charge_cap_reached'
  /** It would pass a cap together with charges that were claimed at the same time: claim again. */
  | 'cap_contended'
  | 'no_successful_payment'
  | 'no_saved_card'
  | 'currency_not_offered'
  /** The merchant account of the saved card was not among those that take a charge now. */
  | 'provider_not_ready'
  | 'charge_in_progress'

/** Why no order was made. */
export type Refusal = {
  /** The first rule that is broken; null: another charge of the customer began or settled at the same time, so claim again. */
  rule: Rule | null
  /** The organization's maximum in the currency, in major units. */
  maximum: string
  card_psp: string | null
  card_psp_merchant_id: string | null
  /** The accounts that were not listed, as a list of names; null unless that is the broken rule. */
  unlisted: string | null
  /** The cap that was reached; null unless that is the broken rule. */
  cap_scope: 'customer' | 'organization' | null
  cap_per: string | null
  cap_currency: string | null
  cap_most: string | null
  /** Whether the customer has a charge in progress. */
  is_busy: boolean
}

type Sentence = (request: ChargeRequest, refusal: Refusal) => string

const SENTENCES: Record<
  Exclude<
    Rule,
    'caps_not_locked' | 'cap_contended' | 'amount_refused' | 'provider_not_ready' | 'restore_not_reconciled'
  >,
  Sentence
> = {
  one_off_charge_disabled: () =>
    'Custom charges are not enabled for this organization. Its operator enables them with "tundish org set ID --one-off-charge on".',
  amount_above_maximum: ({ currencyCode, amountSent }, { maximum }) =>
    amountRule(`must be at most ${maximum} ${currencyCode}, the organization's maximum`, amountSent),
  unknown_customer: ({ externalId }) => `There is no customer with the external_id "${shorten(externalId, 64)}".`,
  charge_cap_reached: (_request, { cap_scope, cap_per, cap_currency, cap_most }) =>
    `The ${cap_scope === 'customer' ? 'customer' : 'organization'} would exceed the cap of ${cap_most} ${cap_currency || 'charges'} a ${cap_per}.`,
  no_successful_payment: () => 'The customer has no successful payment yet.',
  no_saved_card: () => 'The customer has no saved card.',
  currency_not_offered: ({ currencyCode }) =>
    `currency_code "${currencyCode}" is not offered by the merchant account of the saved card.`,
  charge_in_progress: () => 'Another charge of this customer is in progress.',
}

/** The refusal of a charge that breaks this rule. */
export function refusalOf(rule: keyof typeof SENTENCES, request: ChargeRequest, refusal: Refusal): ApiError {
  const sentence = SENTENCES[rule](request, refusal)
  return new ApiError(400, rule, sentence, rule === 'one_off_charge_disabled' ? { extra: { code: rule } } : {})
}

// An operator has to run a command, or a worker lists an account.
const RETRY_AFTER_S = 10

/** The 503 for a key that may have been charged before the restore, at an account that was not listed since. */
export function notReconciled({ unlisted }: Refusal): ApiError {
  return tryLater(
    'restore_not_reconciled',
    `The database was restored, and this key may have been charged before: nothing was begun. Its operator has to compare these merchant accounts first, with "tundish reconcile": ${unlisted}.`,
    RETRY_AFTER_S,
  )
}

export const inProgressRefusal = () =>
  new ApiError(400, 'charge_in_progress', 'Another charge of this customer is in progress.')

/** The amount in minor units, or the refusal of an amount that no charge can have. */
export function exactAmount({ amount, amountSent, currencyCode }: ChargeRequest): bigint | ApiError {
  if (amount.digits <= 0n) return notPositive(amountSent)
  // A currency that is no longer in use is known to the import only.
  if (readCurrency(currencyCode) === undefined) {
    return new ApiError(400, 'unknown_currency', `currency_code "${currencyCode}" is not a currency of ISO 4217.`)
  }
  const minor = toMinor(amount, currencyCode)
  if (minor === undefined) {
    return amountRefused('amount_too_many_decimals', tooManyDecimals(currencyCode), amountSent)
  }
  if (minor <= MAX_MINOR) return minor
  const most = `${formatMinor(MAX_MINOR, currencyCode)} ${currencyCode}`
  return amountRefused('amount_too_large', `must be at most ${most}`, amountSent)
}
