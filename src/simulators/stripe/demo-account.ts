// A made-up account with a history of two years, to import from: the same customers and payments for the same seed.
import { DAY_S } from '../../lib/days.ts'
import type { Form } from '../../lib/http/form.ts'
import { openRandom, type Random } from '../../lib/seeded-random.ts'
import { type Dialect, perform, quiet, type Route } from './call.ts'
import { customerRoutes } from './customers.ts'
import { closeDispute, openDispute } from './disputes.ts'
import { StripeError } from './errors.ts'
import { idOf, pay } from './payment-intents.ts'
import { paymentMethodRoutes } from './payment-methods.ts'
import { productRoutes } from './products.ts'
import { failRefund, refund } from './refunds.ts'
import type { State } from './state.ts'
import { renew, subscriptionRoutes } from './subscriptions.ts'

export interface DemoAccountOptions {
  customers: number
  seed: number
}

/** An action at a time, in seconds since 1970. */
interface Action {
  at: number
  act: () => void
}

const ROUTES: readonly Route[] = [...customerRoutes, ...paymentMethodRoutes, ...productRoutes, ...subscriptionRoutes]
const YEARS = 2 * 365 * DAY_S
// Amounts in Stripe's units, with currencies of none, two and three decimals and of Stripe's own rules.
const PLANS = [
  { name: 'Monthly', interval: 'month', amounts: { usd: 1999, eur: 1899, gbp: 1599, jpy: 2980, isk: 249_000 } },
  { name: 'Quarterly', interval: 'month', count: 3, amounts: { usd: 4499, eur: 4299, kwd: 13_500, huf: 1_599_000 } },
  { name: 'Yearly', interval: 'year', amounts: { usd: 11_999, eur: 10_999, mga: 540_000 } },
] as const
const CARDS = ['pm_card_visa', 'pm_card_mastercard', 'pm_card_amex', 'pm_card_visa_debit', 'pm_card_jcb']
const DECLINING = ['pm_card_chargeDeclinedInsufficientFunds', 'pm_card_chargeDeclinedExpiredCard']
const NAMES = ['Ada', 'Bea', 'Carl', 'Dora', 'Emil', 'Fay', 'Gus', 'Hana', 'Ivo', 'June', 'Kai', 'Lena', 'Max', 'Noor']
const COUNTRIES = ['US', 'DE', 'GB', 'JP', 'IS', 'KW', 'HU', 'MG']

/** Fills the account, oldest objects first; no events are recorded of it. */
export function fillDemoAccount(dialect: Dialect, { customers, seed }: DemoAccountOptions): void {
  const { state } = dialect
  const random = openRandom(seed)
  const end = state.now()
  const history = openHistory(state, end)
  const prices = state.inThePast(end - YEARS - DAY_S, () => makePlans(quiet(dialect)))
  for (let n = 1; n <= customers; n += 1) {
    const at = end - YEARS + Math.floor((n / (customers + 1)) * YEARS)
    history.add(at, () => live({ dialect: quiet(dialect), random, history, prices, now: at }, n))
  }
  history.run()
}

interface Life {
  dialect: Dialect
  random: Random
  history: ReturnType<typeof openHistory>
  prices: string[]
  now: number
}

/** The actions of one customer: signs up, subscribes, pays, and sometimes more. */
function live(life: Life, n: number): void {
  const { dialect, random, history, prices, now } = life
  const customer = makeCustomer(dialect, random, n)
  if (random.chance(0.04)) return
  const card = random.chance(0.04) ? random.pick(DECLINING) : random.pick(CARDS)
  const { id: method } = perform(dialect, ROUTES, 'POST', `/v1/payment_methods/${card}/attach`, { customer })
  if (random.chance(0.6))
    perform(dialect, ROUTES, 'POST', `/v1/customers/${customer}`, {
      invoice_settings: { default_payment_method: method },
    })
  if (random.chance(0.15)) history.add(now + DAY_S, () => buy(life, customer, method))
  if (random.chance(0.01)) history.add(now + 2 * DAY_S, () => buy(life, undefined, 'pm_card_visa'))
  if (random.chance(0.8)) subscribe(life, customer, random.pick(prices))
  if (random.chance(0.02)) history.add(now + 400 * DAY_S, () => leave(dialect, customer))
  else if (random.chance(0.05)) history.add(now + 200 * DAY_S, () => detach(dialect, method))
}

function makePlans(dialect: Dialect): string[] {
  return PLANS.flatMap(({ name, interval, amounts, ...plan }) => {
    const product = perform(dialect, ROUTES, 'POST', '/v1/products', { name })
    const recurring = { interval, interval_count: String('count' in plan ? plan.count : 1) }
    return Object.entries(amounts).map(([currency, amount]) => {
      const params = { product: product.id, currency, unit_amount: String(amount), recurring }
      return perform(dialect, ROUTES, 'POST', '/v1/prices', params).id
    })
  })
}

function makeCustomer(dialect: Dialect, random: Random, n: number): string {
  const name = random.pick(NAMES)
  const params: Form = {
    name,
    email: `${name.toLowerCase()}.${n}@example.com`,
    address: { country: random.pick(COUNTRIES) },
    ...(random.chance(0.3) && { phone: `+1555${String(n).padStart(7, '0')}` }),
    ...(random.chance(0.5) && { preferred_locales: ['en-US'] }),
    ...(random.chance(0.8) && { metadata: { user_id: `user-${n}` } }),
  }
  return perform(dialect, ROUTES, 'POST', '/v1/customers', params).id
}

function subscribe(life: Life, customer: string, price: string): void {
  const { dialect, random } = life
  const params: Form = { customer, items: [{ price }], ...(random.chance(0.15) && { trial_period_days: '7' }) }
  const subscription = perform(dialect, ROUTES, 'POST', '/v1/subscriptions', params).id
  mayReturn(life, customer)
  renewLater(life, subscription, customer, random.integer(0, 8))
}

/** Renews it this many times, then it ends in one of several ways, or not at all. */
function renewLater(life: Life, id: string, customer: string, periods: number): void {
  const { dialect, random, history } = life
  const found = dialect.state.find('subscription', id)!
  if (['canceled', 'incomplete', 'past_due'].includes(found.status)) return
  const end = found.items.data[0]!.current_period_end
  const isCanceled = () => dialect.state.find('subscription', id)!.status === 'canceled'
  if (periods === 0) {
    const ending = random.pick(['cancel', 'later', 'pause', 'stay', 'stay'])
    const change = (params: Form, method: Route['method'] = 'POST') =>
      history.add(end - DAY_S, () => {
        // Its customer may have left before.
        if (isCanceled()) return
        perform(dialect, ROUTES, method, `/v1/subscriptions/${id}`, params)
      })
    if (ending === 'cancel') change({}, 'DELETE')
    if (ending === 'later') change({ cancel_at_period_end: 'true' })
    if (ending === 'pause') change({ pause_collection: { behavior: 'void' } })
  }
  history.add(end, () => {
    if (isCanceled()) return
    renew(dialect, id)
    mayReturn(life, customer)
    if (periods > 0) renewLater(life, id, customer, periods - 1)
  })
}

/** A single payment; one without a customer is a guest's. */
function buy(life: Life, customer: string | undefined, payment_method: string): void {
  try {
    pay(life.dialect, { amount: 1500, currency: 'usd', payment_method, ...(customer && { customer }) })
  } catch (error) {
    if (!(error instanceof StripeError)) throw error
  }
  if (customer) mayReturn(life, customer)
}

/** Possible consequences of a customer's latest charge: a refund, whole or in part, kept or failed; a dispute, open, won or lost. */
function mayReturn({ dialect, random, history }: Life, customer: string): void {
  const charge = dialect.state.related('charge', 'customer', customer).at(-1)
  if (charge?.status !== 'succeeded' || charge.amount_refunded > 0 || charge.disputed) return
  const later = (act: () => void) => history.add(charge.created + random.integer(1, 30) * DAY_S, act)
  if (random.chance(0.06)) {
    const part = charge.currency === 'usd' && random.chance(0.4) ? 500 : charge.amount
    later(() => {
      const made = refund(dialect, charge, part, {}, 'requested_by_customer')
      if (random.chance(0.05)) failRefund(dialect, made.id)
    })
  } else if (random.chance(0.01)) {
    later(() => {
      const dispute = openDispute(dialect, charge.id)
      const status = random.pick(['won', 'lost', undefined] as const)
      if (status) later(() => closeDispute(dialect, dispute.id, status))
    })
  }
}

function leave(dialect: Dialect, customer: string): void {
  for (const { id, status } of dialect.state.related('subscription', 'customer', customer))
    if (status !== 'canceled') perform(dialect, ROUTES, 'DELETE', `/v1/subscriptions/${id}`, {})
  perform(dialect, ROUTES, 'DELETE', `/v1/customers/${customer}`, {})
}

function detach(dialect: Dialect, method: string): void {
  if (idOf(dialect.state.find('payment_method', method)!.customer))
    perform(dialect, ROUTES, 'POST', `/v1/payment_methods/${method}/detach`, {})
}

/** Runs actions in the order of their times, up to `end`; each may add later ones. */
function openHistory(state: State, end: number) {
  // The latest first, so that the next one is the last.
  const actions: Action[] = []
  return {
    add(at: number, act: () => void) {
      if (at > end) return
      let [low, high] = [0, actions.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if (actions[middle]!.at > at) low = middle + 1
        else high = middle
      }
      actions.splice(low, 0, { at, act })
    },
    run() {
      for (let next = actions.pop(); next; next = actions.pop()) state.inThePast(next.at, next.act)
    },
  }
}
