// A random Stripe account: objects of every shape that Stripe publishes, which refer to each other as at Stripe.
import { DAY_S } from '../../src/lib/days.ts'
import { openRandom, type Random } from '../../src/lib/seeded-random.ts'
import { addCatalogue, addDiscounts, chooseItem } from './catalogue.ts'
import { addCard, addPayment } from './movements.ts'
import { type Fields, type Flavor, randomObject } from './random-object.ts'

const FLAVORS: Flavor[] = [
  { nulls: 0.3, optionals: 0.5, unknowns: 0.01 },
  { nulls: 0.3, optionals: 0.3, unknowns: 0.15 },
  { nulls: 1, optionals: 0, unknowns: 0 },
  { nulls: 0, optionals: 1, unknowns: 0 },
]
const CURRENCIES = ['usd', 'usd', 'usd', 'eur', 'eur', 'jpy', 'isk', 'mga', 'kwd', 'bgn', 'hrk', 'ugx', 'xyz']

/** What the makers of objects share. */
export interface Making {
  random: Random
  flavor: Flavor
  /** All objects, in the order of their times. */
  objects: Fields[]
  id(prefix: string): string
  /** A time in the last two years, in seconds. */
  time(): number
  currency(): string
  make<T extends Fields>(type: string, given: T): T & Fields
}

/** The objects of the account of a seed; `length` is the number of objects of lists that may be longer than a page. */
export function randomAccount(seed: number): Fields[] {
  const random = openRandom(seed)
  const flavor = FLAVORS[seed % FLAVORS.length]!
  const now = Math.floor(Date.now() / 1000)
  let made = 0
  const making: Making = {
    random,
    flavor,
    objects: [],
    id: (prefix) => `${prefix}_${seed}x${++made}`,
    time: () => now - random.integer(1, 700) * DAY_S,
    currency: () => random.pick(CURRENCIES),
    make: (type, given) => {
      const object = randomObject(random, flavor, type, given)
      if ('object' in object && 'id' in object) making.objects.push(object)
      return object
    },
  }
  const catalogue = addCatalogue(making)
  for (let n = random.integer(1, 3); n > 0; n--) {
    const customer = addCustomer(making, catalogue.coupons)
    for (let m = random.integer(0, 2); m > 0; m--) addSubscription(making, catalogue, customer)
    for (let m = random.integer(0, 2); m > 0; m--) addPayment(making, customer, making.currency())
  }
  // Of a guest.
  if (random.chance(0.3)) addPayment(making, null, making.currency())
  return making.objects
}

function addCustomer(making: Making, coupons: Fields[]): string {
  const { random, id, time, make } = making
  const customer = id('cus')
  if (random.chance(0.1)) {
    making.objects.push({ id: customer, object: 'customer', deleted: true })
    return customer
  }
  const [given] = random.chance(0.2) ? addDiscounts(making, coupons, 1) : []
  const discount = given ? { ...making.objects.find((one) => one['id'] === given)!, customer } : null
  make('Customer', {
    ...{ id: customer, object: 'customer', created: time(), discount, livemode: false, default_source: null },
    invoice_settings: { custom_fields: null, default_payment_method: null, footer: null, rendering_options: null },
  })
  return customer
}

function addSubscription(making: Making, catalogue: ReturnType<typeof addCatalogue>, customer: string): void {
  const { random, flavor, id, time, make } = making
  const subscription = id('sub')
  const first = chooseItem(making, catalogue, subscription)
  const price = first['price'] as Fields
  const options = Object.keys((price['currency_options'] as object | undefined) ?? {})
  const currency = random.chance(0.7) ? String(price['currency']) : random.pick([...options, making.currency()])
  const more = random.chance(0.06) ? random.integer(10, 130) : random.integer(0, 2)
  const others = Array.from({ length: more }, () => chooseItem(making, catalogue, subscription, currency))
  const data = flavor.nulls === 1 && random.chance(0.2) ? [] : [first, ...others]
  const timeOrNull = () => (random.chance(flavor.nulls) ? null : time())
  const created = time()
  const items = { object: 'list', data, has_more: false, url: '/v1/subscription_items' }
  make('Subscription', {
    ...{
      id: subscription,
      object: 'subscription',
      created,
      currency,
      customer,
      items,
      livemode: false,
      start_date: created,
    },
    discounts: addDiscounts(making, catalogue.coupons, random.chance(0.3) ? random.integer(1, 2) : 0),
    ...{ canceled_at: timeOrNull(), ended_at: timeOrNull(), trial_start: timeOrNull(), trial_end: timeOrNull() },
    cancel_at: random.chance(0.8) ? null : time() + 1000 * DAY_S,
    pending_update: null,
    default_payment_method: random.chance(0.5) ? addCard(making, 'pm', customer) : null,
    default_source: null,
    ...(random.chance(0.25) && { status: 'canceled' }),
  })
  for (let n = random.integer(0, 2); n > 0; n--) addInvoice(making, { subscription, customer, currency })
}

function addInvoice(making: Making, of: { subscription: string; customer: string; currency: string }): void {
  const { random, id, time, make } = making
  const { subscription, customer, currency } = of
  const invoice = id('in')
  const created = time()
  const count = random.chance(0.1) ? 12 : random.integer(0, 2)
  const data = Array.from({ length: count }, () => {
    const paid = addPayment(making, customer, currency)
    const payment = paid.intent
      ? { type: 'payment_intent', payment_intent: paid.intent }
      : { type: 'charge', charge: paid.charge }
    return randomObject(random, making.flavor, 'InvoicePayment', {
      id: id('inpay'),
      object: 'invoice_payment',
      invoice,
      payment,
    })
  })
  const line = () => ({
    ...randomObject(random, making.flavor, 'InvoiceLineItem', { id: id('il'), object: 'line_item', currency }),
    period: { start: created, end: created + 30 * DAY_S },
  })
  make('Invoice', {
    ...{ id: invoice, object: 'invoice', created, currency, customer, livemode: false },
    parent: {
      quote_details: null,
      subscription_details: { metadata: null, subscription },
      type: 'subscription_details',
    },
    payments: { object: 'list', data, has_more: false, url: '/v1/invoice_payments' },
    lines: { object: 'list', data: random.chance(0.7) ? [line()] : [], has_more: false, url: '/v1/lines' },
  })
}
