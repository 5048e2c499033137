// The price of a subscription: what its next full period costs at Stripe, with all that a price there may consist of.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { savedCard } from '../../../support/simulators.ts'
import { openStripeImports } from './stripe-imports.ts'

type PriceParams = Partial<Stripe.PriceCreateParams>
type Item = { price: PriceParams; quantity?: number; coupon?: Partial<Stripe.CouponCreateParams> }

const all = await openStripeImports()
after(() => all.close())
const { customer, payment_method } = await savedCard(all.stripe)
const buyer: { customer: string; default_payment_method: string } = { customer, default_payment_method: payment_method }

async function priceOf(params: PriceParams): Promise<string> {
  const product = params.product ?? (await all.stripe.products.create({ name: 'Plan' })).id
  const recurring = { interval: 'month' } as const
  return (await all.stripe.prices.create({ currency: 'usd', recurring, ...params, product })).id
}

const couponOf = async (params: Partial<Stripe.CouponCreateParams>) =>
  (await all.stripe.coupons.create({ duration: 'forever', ...params })).id

async function subscribe(items: Item[], more: Partial<Stripe.SubscriptionCreateParams> = {}): Promise<string> {
  const made = []
  for (const { price, coupon, ...item } of items)
    made.push({
      price: await priceOf(price),
      ...item,
      ...(coupon && { discounts: [{ coupon: await couponOf(coupon) }] }),
    })
  return (await all.stripe.subscriptions.create({ ...buyer, items: made, ...more })).id
}

const discounted = async (params: Partial<Stripe.CouponCreateParams>) => ({
  discounts: [{ coupon: await couponOf(params) }],
})
const many = (count: number, price: PriceParams): Item[] => Array.from({ length: count }, () => ({ price }))
const decimal = (text: string) => ({ unit_amount_decimal: text as never })
const tiers = [
  { up_to: 5, unit_amount: 500, flat_amount: 1000 },
  { up_to: 'inf' as const, unit_amount_decimal: '0.5' as never },
]
const tiered = { billing_scheme: 'tiered', tiers_mode: 'graduated', tiers } as const
const year = { recurring: { interval: 'year' } as const }
const metered = { recurring: { interval: 'month', usage_type: 'metered' } as const }

const cases: [what: string, price: string, subscription: () => Promise<string>][] = [
  ['0.4 cents for each of 1000', 'USD 400', () => subscribe([{ price: decimal('0.4'), quantity: 1000 }])],
  ['half a cent, to the even one', 'USD 0', () => subscribe([{ price: decimal('0.5') }])],
  ['one cent and a half, to the even one', 'USD 2', () => subscribe([{ price: decimal('1.5') }])],
  ['rounded once: 3 × 0.5 cents', 'USD 2', () => subscribe(many(3, decimal('0.5')))],
  [
    'packages of five for seven units',
    'USD 2000',
    () => subscribe([{ price: { unit_amount: 1000, transform_quantity: { divide_by: 5, round: 'up' } }, quantity: 7 }]),
  ],
  [
    'whole packages of five for seven units',
    'USD 1000',
    () =>
      subscribe([{ price: { unit_amount: 1000, transform_quantity: { divide_by: 5, round: 'down' } }, quantity: 7 }]),
  ],
  [
    '10 a month and 120 a year',
    'USD 2000',
    () => subscribe([{ price: { unit_amount: 1000 } }, { price: { unit_amount: 12_000, ...year } }]),
  ],
  [
    '120 a year and 7 a week, in weeks',
    'USD 930',
    () =>
      subscribe([
        { price: { unit_amount: 12_000, ...year } },
        { price: { unit_amount: 700, recurring: { interval: 'week' } } },
      ]),
  ],
  ['25 items', 'USD 2500', () => subscribe(many(25, { unit_amount: 100 }))],
  ['graduated tiers with decimals', 'USD 3505', () => subscribe([{ price: tiered, quantity: 15 }])],
  ['tiers by volume', 'USD 8', () => subscribe([{ price: { ...tiered, tiers_mode: 'volume' }, quantity: 15 }])],
  ['metered usage', 'USD 1000 *', () => subscribe([{ price: { unit_amount: 1000 } }, { price: metered }])],
  [
    'in euros of a price in dollars',
    'EUR 1200',
    () => subscribe([{ price: { unit_amount: 1000, currency_options: OPTIONS } }], { currency: 'eur' }),
  ],
  [
    'in yen of a price in dollars',
    'JPY 1500',
    () => subscribe([{ price: { unit_amount: 1000, currency_options: OPTIONS } }], { currency: 'jpy' }),
  ],
  [
    'in euros in tiers',
    'EUR 900',
    () =>
      subscribe(
        [
          {
            price: { ...tiered, currency_options: { eur: { tiers: [{ up_to: 'inf', unit_amount: 300 }] } } },
            quantity: 3,
          },
        ],
        {
          currency: 'eur',
        },
      ),
  ],
  ['a quarter off forever', 'USD 750', async () => subscribe(TEN, await discounted({ percent_off: 25 }))],
  ['a third off, rounded', 'USD 667', async () => subscribe(TEN, await discounted({ percent_off: 33.33 }))],
  ['an amount off', 'USD 700', async () => subscribe(TEN, await discounted({ amount_off: 300, currency: 'usd' }))],
  [
    'more off than it costs',
    'USD 0',
    async () => subscribe(TEN, await discounted({ amount_off: 3000, currency: 'usd' })),
  ],
  [
    'a coupon for once',
    'USD 1000',
    async () => subscribe(TEN, await discounted({ percent_off: 50, duration: 'once' })),
  ],
  [
    'a coupon that ends with this period',
    'USD 1000',
    async () => subscribe(TEN, await discounted({ percent_off: 50, duration: 'repeating', duration_in_months: 1 })),
  ],
  [
    'a coupon for a year',
    'USD 500',
    async () => subscribe(TEN, await discounted({ percent_off: 50, duration: 'repeating', duration_in_months: 12 })),
  ],
  [
    'a coupon on one of two items',
    'USD 1500',
    () => subscribe([{ price: { unit_amount: 1000 }, coupon: { percent_off: 50 } }, ...TEN]),
  ],
  [
    'a coupon for one product of two',
    'USD 1800',
    async () => {
      const { id: product } = await all.stripe.products.create({ name: 'Reduced' })
      const items = [{ price: { unit_amount: 1000, product } }, ...TEN]
      return subscribe(items, await discounted({ percent_off: 20, applies_to: { products: [product] } }))
    },
  ],
  [
    'an amount off in euros',
    'EUR 1000',
    async () => {
      const coupon = { amount_off: 300, currency: 'usd', currency_options: { eur: { amount_off: 200 } } }
      const items = [{ price: { unit_amount: 1000, currency_options: OPTIONS } }]
      return subscribe(items, { currency: 'eur', ...(await discounted(coupon)) })
    },
  ],
]
const OPTIONS = { eur: { unit_amount: 1200 }, jpy: { unit_amount: 1500 } }
const TEN: Item[] = [{ price: { unit_amount: 1000 } }]

test('the price of a subscription is what its next full period costs', async () => {
  const made = new Map<string, string>()
  for (const [what, , subscription] of cases) made.set(await subscription(), what)
  const project = await all.imports.project()
  const { tally } = await all.run(project)
  assert.deepEqual(tally.rejects, [])
  const rows = await all.imports.rows(
    'select id, currency, price, price_note from subscriptions where project_id = $1',
    [project.id],
  )
  const found = rows.map(({ id, currency, price, price_note }) => [
    made.get(id!),
    `${currency} ${price}${price_note === null ? '' : ' *'}`,
  ])
  assert.deepEqual(Object.fromEntries(found), Object.fromEntries(cases.map(([what, price]) => [what, price])))
  const notes = new Set(rows.map(({ price_note }) => price_note))
  assert.deepEqual([...notes].sort(), ['Metered usage is not included.', null])
})

test("a customer's coupon counts where the subscription has none", async () => {
  const { stripe, simulator } = all
  const { customer, payment_method } = await savedCard(stripe)
  const coupon = await couponOf({ percent_off: 10 })
  const alone = await stripe.subscriptions.create({
    ...{ customer, default_payment_method: payment_method },
    items: [{ price: await priceOf({ unit_amount: 1000 }) }],
  })
  const discount = { id: 'di_customer', object: 'discount', end: null, start: 1, source: { coupon, type: 'coupon' } }
  await simulator.control('/objects', { objects: [{ ...(await stripe.customers.retrieve(customer)), discount }] })
  const project = await all.imports.project()
  await all.run(project)
  const [row] = await all.imports.rows('select price from subscriptions where project_id = $1 and id = $2', [
    project.id,
    alone.id,
  ])
  assert.equal(row!.price, '900')
})

test('a subscription with a schedule or a trial offer has a note, because what follows may have another price', async () => {
  const { stripe, simulator } = all
  const schedule = 'sub_sched_introduction'
  const cases = { scheduled: TEN, both: [...TEN, { price: metered }], over: TEN, trying: TEN }
  const ids = new Map<string, string>()
  for (const [what, items] of Object.entries(cases)) {
    const id = await subscribe(items)
    if (what === 'over') await stripe.subscriptions.cancel(id)
    const made = await stripe.subscriptions.retrieve(id)
    const trial = { current_trial: { trial_offer: 'to_1', start_date: made.created, end_date: made.created + 60 } }
    const data = made.items.data.map((item) => ({ ...item, ...(what === 'trying' && trial) }))
    const changed = what === 'trying' ? { items: { ...made.items, data } } : { schedule }
    await simulator.control('/objects', { objects: [{ ...made, ...changed }] })
    ids.set(id, what)
  }
  const project = await all.imports.project()
  await all.run(project)
  const rows = await all.imports.rows(
    'select id, price, price_note from subscriptions where project_id = $1 and id = any($2)',
    [project.id, [...ids.keys()]],
  )
  const note = 'A subscription schedule at Stripe may change the price.'
  assert.deepEqual(Object.fromEntries(rows.map(({ id, price, price_note }) => [ids.get(id!), [price, price_note]])), {
    scheduled: ['1000', note],
    both: ['1000', `Metered usage is not included. ${note}`],
    over: ['1000', null],
    trying: ['1000', 'The end of a trial offer at Stripe may change the price.'],
  })
})
