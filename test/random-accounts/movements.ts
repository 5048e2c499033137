// The payments of a random account, with their refunds, disputes and entries of the balance.
import type { Making } from './account.ts'
import type { Fields } from './random-object.ts'

/** A charge, mostly with its PaymentIntent; returns their ids. */
export function addPayment(
  making: Making,
  customer: string | null,
  currency: string,
): { charge: string; intent: string | null } {
  const { random, id, time, make } = making
  const charge = id('ch')
  const created = time()
  // Two last digits that are zero are whole krónur.
  const amount = random.integer(1, 900) * 100
  const intent = random.chance(0.85) ? addIntent(making, { customer, currency, amount, charge, created }) : null
  const isUnknown = random.chance(making.flavor.unknowns)
  // Of Stripe's older API.
  const card =
    intent === null && customer !== null && random.chance(0.5) ? addCard(making, 'card', customer) : undefined
  const status = isUnknown ? 'new_at_stripe' : random.pick(['succeeded', 'succeeded', 'succeeded', 'failed', 'pending'])
  const made = make('Charge', {
    ...{ id: charge, object: 'charge', created, currency, customer, payment_intent: intent, livemode: false, status },
    ...{ amount, amount_captured: amount, captured: random.chance(0.95), metadata: {} },
    ...{ balance_transaction: null, failure_balance_transaction: null, refunds: null, source: null },
    ...(card && { payment_method: card }),
  })
  const details = made['payment_method_details']
  if (details && random.chance(0.5)) Object.assign(details, { type: 'card' })
  addEntry(making, charge, { amount, currency, type: 'charge' })
  if (random.chance(0.3)) addRefund(making, { charge, intent, currency, amount })
  if (random.chance(0.12)) addDispute(making, { charge, intent, currency, amount })
  return { charge, intent }
}

interface Paid {
  charge: string
  intent: string | null
  currency: string
  amount: number
}

/** A card of the customer, mostly still attached; returns its id. */
export function addCard({ random, id, time, make }: Making, prefix: 'card' | 'pm', customer: string | null): string {
  const card = id(prefix)
  make('PaymentMethod', {
    ...{ id: card, object: 'payment_method', type: 'card', created: time(), livemode: false, metadata: {} },
    customer: random.chance(0.8) ? customer : null,
  })
  return card
}

function addIntent(making: Making, given: Omit<Paid, 'intent'> & Fields): string {
  const { random, id, make } = making
  const { charge, created, customer, currency, amount } = given
  const intent = id('pi')
  const isCard = random.chance(0.4)
  const method = isCard ? addCard(making, 'pm', customer as string | null) : random.chance(0.5) ? id('pm') : null
  if (method && !isCard)
    make('PaymentMethod', { id: method, object: 'payment_method', created, customer, livemode: false, metadata: {} })
  make('PaymentIntent', {
    ...{ id: intent, object: 'payment_intent', created, customer, currency, amount, latest_charge: charge },
    ...{ livemode: false, metadata: {}, payment_method: method, payment_method_options: null, next_action: null },
    ...{ last_payment_error: null, amount_received: amount },
  })
  return intent
}

function addRefund(making: Making, { charge, intent, currency, amount }: Paid): void {
  const { random, flavor, id, time, make } = making
  const statuses = ['succeeded', 'succeeded', 'succeeded', 'pending', 'requires_action', 'failed', 'canceled', null]
  const isLost = random.chance(0.2)
  const refund = id('re')
  const part = random.integer(1, amount / 100) * 100
  make('Refund', {
    ...{ id: refund, object: 'refund', created: time(), currency, amount: part, balance_transaction: null },
    charge: isLost ? null : charge,
    payment_intent: isLost && random.chance(0.5) ? null : intent,
    status: random.chance(flavor.unknowns) ? 'new_at_stripe' : random.pick(statuses),
  })
  addEntry(making, refund, { amount: -part, currency, type: 'refund' })
}

function addDispute(making: Making, { charge, intent, currency, amount }: Paid): void {
  const { random, id, time, make } = making
  const dispute = id('dp')
  const entry = (sum: number) => ({
    ...addEntry(making, dispute, { amount: sum, currency, type: 'adjustment' }),
    created: time(),
  })
  const withdrawn = random.chance(0.7)
  const entries = [...(withdrawn ? [entry(-amount)] : []), ...(withdrawn && random.chance(0.4) ? [entry(amount)] : [])]
  make('Dispute', {
    ...{ id: dispute, object: 'dispute', created: time(), currency, amount, charge, payment_intent: intent },
    ...{ balance_transactions: entries, livemode: false, metadata: {} },
  })
}

function addEntry({ random, id, time, make }: Making, source: string, given: Fields): Fields {
  const fee = random.integer(0, 500) * 100
  const net = Number(given['amount']) - fee
  return make('BalanceTransaction', {
    ...{ id: id('txn'), object: 'balance_transaction', created: time(), source, fee, net, fee_details: [] },
    ...given,
  })
}
