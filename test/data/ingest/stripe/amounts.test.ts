// Amounts of imports from Stripe: those of other currencies in US dollars, and prices in tiers.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { storeRates } from '../../../../src/payments/billing/rates/store-rates.ts'
import { columns } from '../../../support/rows.ts'
import { savedCard } from '../../../support/simulators.ts'
import { differences, openStripeImports } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())

test('amounts in other currencies are given in US dollars too, where a rate of the day is known', async () => {
  const { stripe, imports } = all
  const project = await imports.project()
  const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  const rates = [
    { day, currencyCode: 'USD', perEuro: '1.2' },
    { day, currencyCode: 'JPY', perEuro: '160' },
  ]
  await storeRates(imports.db, rates, project.organizationId)
  const { customer, payment_method } = await savedCard(stripe)
  const made = []
  for (const currency of ['eur', 'jpy', 'chf', 'usd']) {
    const params = { amount: 1000, currency, customer, payment_method, confirm: true, off_session: true }
    made.push((await stripe.paymentIntents.create(params)).latest_charge as string)
  }
  await stripe.refunds.create({ charge: made[0]!, amount: 500, reason: 'duplicate' })
  const product = await stripe.products.create({ name: 'Monthly' })
  const recurring = { interval: 'month' } as const
  const price = await stripe.prices.create({ product: product.id, currency: 'eur', unit_amount: 2500, recurring })
  const { id } = await stripe.subscriptions.create({
    customer,
    default_payment_method: payment_method,
    items: [{ price: price.id }],
  })
  assert.deepEqual(differences(await all.run(project)), [])
  const report = await imports.rows(
    `select concat_ws(' ', psp_transaction_type, currency_code, psp_reason_code) as what, amount::text, amount_usd::text
     from report_transactions
     where organization_id = $1 and psp_customer_id = $2 and amount in (5, 10, 1000) order by 1`,
    [project.organizationId, customer],
  )
  assert.deepEqual(columns(report, 'what', 'amount', 'amount_usd'), [
    ['refund EUR duplicate', '5.00', '6.00'],
    ['sale CHF', '10.00', null],
    ['sale EUR', '10.00', '12.00'],
    ['sale JPY', '1000', '7.50'],
    ['sale USD', '10.00', '10.00'],
  ])
  const records = await imports.rows(
    `select currency, price, price_usd from transactions where project_id = $1 and id = any($2)
     union all select currency, price, price_usd from subscriptions where project_id = $1 and id = $3 order by 1, 2`,
    [project.id, made, id],
  )
  assert.deepEqual(columns(records, 'currency', 'price', 'price_usd'), [
    ['CHF', '1000', null],
    ['EUR', '1000', '1200'],
    ['EUR', '2500', '3000'],
    ['JPY', '1000', '750'],
    ['USD', '1000', '1000'],
  ])
})

test('a price in tiers is that of the first unit, one of packages that of a package, and of a subscription that of its quantity', async () => {
  const { stripe, imports } = all
  const project = await imports.project()
  const { customer, payment_method } = await savedCard(stripe)
  const product = await stripe.products.create({ name: 'Seats' })
  const tiers = [
    { up_to: 2, unit_amount: 500, flat_amount: 1000 },
    { up_to: 'inf' as const, unit_amount: 300 },
  ]
  const prices: Record<string, string[]> = {}
  for (const tiers_mode of ['graduated', 'volume'] as const) {
    const price = await stripe.prices.create({
      product: product.id,
      currency: 'usd',
      billing_scheme: 'tiered',
      tiers_mode,
      tiers,
      recurring: { interval: 'month' },
    })
    for (const quantity of [2, 5]) {
      const { id } = await stripe.subscriptions.create({
        customer,
        default_payment_method: payment_method,
        items: [{ price: price.id, quantity }],
      })
      prices[id] = [tiers_mode, String(quantity)]
    }
  }
  const transform_quantity = { divide_by: 5, round: 'down' } as const
  const recurring = { interval: 'month' } as const
  const packs = { product: product.id, currency: 'usd', unit_amount: 700, transform_quantity, recurring }
  await stripe.prices.create(packs)
  await all.run(project)
  const [stored] = await imports.rows(
    `select jsonb_path_query_array(prices::jsonb, '$[*].amount')::text as amounts from products
     where project_id = $1 and id = $2`,
    [project.id, product.id],
  )
  assert.equal(stored!.amounts, '[700, 1500, 1500]')
  const rows = await imports.rows('select id, price from subscriptions where project_id = $1 and id = any($2)', [
    project.id,
    Object.keys(prices),
  ])
  assert.deepEqual(Object.fromEntries(rows.map(({ id, price }) => [prices[id!]!.join(' '), price])), {
    'graduated 2': '2000',
    'graduated 5': '2900',
    'volume 2': '2000',
    'volume 5': '1500',
  })
})
