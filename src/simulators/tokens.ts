// The simulator's tokens: each decides the outcome of a charge and of its refunds.

export interface Decline {
  code: string
  message: string
  type: string
  declineType: 'soft' | 'hard'
}

export interface Card {
  network: string
  first6: string
  last4: string
  productCode: string
  productName: string
}

/** How one charge or refund ends; `ending` is what the caller sees. */
export type Scenario =
  | { plan: 'settle'; decline?: Decline; ending: 'response' | 'drop' | 'error'; afterMs: number }
  | { plan: 'never' }
  | { plan: 'second_time' }
  | { plan: 'late'; afterMs: number }

export interface Token {
  card: Card
  charge: Scenario
  refund: Scenario
}

const visa: Card = { network: 'visa', first6: '424242', last4: '4242', productCode: 'F', productName: 'Visa Classic' }
const mastercard: Card = {
  ...visa,
  network: 'mastercard',
  first6: '555555',
  last4: '4444',
  productCode: 'MCC',
  productName: 'Mastercard Credit',
}

const succeed: Scenario = { plan: 'settle', ending: 'response', afterMs: 0 }

// Card numbers, codes and sentences are those of Stripe's test cards, so that reports look familiar.
const declines: Record<string, [last4: string, Decline]> = {
  pm_card_chargeDeclined: ['0002', decline('card_declined', 'The card was declined.', 'issuer_decline', 'soft')],
  pm_card_chargeDeclinedInsufficientFunds: [
    '9995',
    decline('insufficient_funds', 'The card has insufficient funds.', 'issuer_decline', 'soft'),
  ],
  pm_card_chargeDeclinedExpiredCard: ['0069', decline('expired_card', 'The card has expired.', 'invalid_card', 'hard')],
  pm_card_chargeDeclinedProcessingError: [
    '0119',
    decline('processing_error', 'The issuer could not process the payment.', 'processing_error', 'soft'),
  ],
  pm_card_chargeDeclinedLostCard: ['9987', decline('lost_card', 'The card was reported lost.', 'fraud', 'hard')],
  pm_card_authenticationRequired: [
    '3184',
    decline('authentication_required', 'The issuer asks for authentication.', 'authentication', 'soft'),
  ],
}

const refundDeclined = decline('refund_declined', 'The issuer did not take the refund.', 'issuer_decline', 'hard')

const charges: Record<string, Scenario> = {
  sim_charge_then_drop: { plan: 'settle', ending: 'drop', afterMs: 0 },
  sim_charge_then_500: { plan: 'settle', ending: 'error', afterMs: 0 },
  sim_drop_no_charge: { plan: 'never' },
  sim_error_500_then_ok: { plan: 'second_time' },
}

const refunds: Record<string, Scenario> = {
  sim_refund_then_drop: { plan: 'settle', ending: 'drop', afterMs: 0 },
  sim_refund_then_500: { plan: 'settle', ending: 'error', afterMs: 0 },
  sim_refund_drop: { plan: 'never' },
  sim_refund_error_500_then_ok: { plan: 'second_time' },
  sim_refund_fails: { plan: 'settle', decline: refundDeclined, ending: 'response', afterMs: 0 },
}

/** The meaning of a token. A charge with an unknown token is declined, like one with a card that was never saved. */
export function readToken(token: string): Token {
  if (token === 'pm_card_visa') return { card: visa, charge: succeed, refund: succeed }
  if (token === 'pm_card_mastercard') return { card: mastercard, charge: succeed, refund: succeed }
  const declined = get(declines, token)
  if (declined)
    return { card: { ...visa, first6: '400000', last4: declined[0] }, charge: failing(declined[1]), refund: succeed }
  const charge = get(charges, token) ?? timed(token, 'sim_')
  if (charge) return { card: visa, charge, refund: succeed }
  const refund = get(refunds, token) ?? timed(token, 'sim_refund_')
  if (refund) return { card: visa, charge: succeed, refund }
  const unknown = decline('payment_method_unknown', 'There is no such saved card.', 'invalid_request', 'hard')
  return { card: visa, charge: failing(unknown), refund: succeed }
}

/** A refund that the ledger refuses: what it would pay back was never charged, or is paid back already. */
export function refundRefusal(code: string, message: string): Decline {
  return decline(code, message, 'invalid_request', 'hard')
}

/** Seven digits are under three hours, which a timer can hold. */
function timed(token: string, prefix: string): Scenario | undefined {
  const [, word, digits] =
    /^(slow|late)_([0-9]{1,7})ms$/.exec(token.startsWith(prefix) ? token.slice(prefix.length) : '') ?? []
  const afterMs = Number(digits)
  if (word === 'slow') return { plan: 'settle', ending: 'response', afterMs }
  if (word === 'late') return { plan: 'late', afterMs }
  return undefined
}

function failing(reason: Decline): Scenario {
  return { plan: 'settle', decline: reason, ending: 'response', afterMs: 0 }
}

function decline(code: string, message: string, type: string, declineType: 'soft' | 'hard'): Decline {
  return { code, message, type, declineType }
}

function get<T>(table: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}
