// Which card of a customer at Stripe is saved here: also those that only Stripe's older API or a subscription knows.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { savedCard } from '../../../support/simulators.ts'
import { openStripeImports } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
const { imports, stripe, simulator } = all

const cardOf = async (organizationId: string, customer: string) => {
  const rows = await imports.rows(
    `select payment_method_token as token from report_transactions
     where organization_id = $1 and psp_customer_id = $2 order by psp_date desc, trx_id limit 1`,
    [organizationId, customer],
  )
  return rows[0]?.token
}

const pay = (customer: string, payment_method: string) =>
  simulator.control<{ latest_charge: string }>('/payments', { customer, payment_method, amount: 1999, ago_s: 3600 })

test('a card of the older API, of a charge without a PaymentIntent, as long as the customer has it', async () => {
  const project = await imports.project()
  const { customer, payment_method } = await savedCard(stripe)
  const { latest_charge } = await pay(customer, payment_method)
  const charge = await stripe.charges.retrieve(latest_charge)
  const method = await stripe.paymentMethods.retrieve(payment_method)
  const later = charge.created + 60
  const objects = [
    { ...method, id: 'card_1Older', customer },
    { ...method, id: 'card_1Gone', customer: null },
    { ...charge, id: 'ch_1Older', payment_intent: null, payment_method: 'card_1Older', created: later },
  ]
  await simulator.control('/objects', { objects })
  await all.run(project)
  assert.equal(await cardOf(project.organizationId, customer), 'card_1Older')
  const gone = { ...charge, id: 'ch_1Gone', payment_intent: null, payment_method: 'card_1Gone', created: later + 60 }
  await simulator.control('/objects', { objects: [gone] })
  const other = await imports.project()
  await all.run(other)
  assert.equal(await cardOf(other.organizationId, customer), null)
})

test('the card with which a subscription goes on, after the one that paid was detached', async () => {
  const project = await imports.project()
  const { customer, payment_method } = await savedCard(stripe)
  const product = await stripe.products.create({ name: 'Monthly' })
  const price = await stripe.prices.create({
    product: product.id,
    currency: 'usd',
    unit_amount: 999,
    recurring: { interval: 'month' },
  })
  const { id } = await stripe.subscriptions.create({
    customer,
    items: [{ price: price.id }],
    default_payment_method: payment_method,
  })
  await all.run(project, { follow: true }, { once: true })
  assert.equal(await cardOf(project.organizationId, customer), payment_method)
  const next = (await stripe.paymentMethods.attach('pm_card_mastercard', { customer })).id
  await stripe.subscriptions.update(id, { default_payment_method: next })
  await stripe.paymentMethods.detach(payment_method)
  await all.run(project, { follow: true }, { once: true })
  assert.equal(await cardOf(project.organizationId, customer), next, 'followed')
  const other = await imports.project()
  await all.run(other)
  assert.equal(await cardOf(other.organizationId, customer), next, 'imported')
})

test('pages that are longer than a response may be are read in parts', async () => {
  const project = await imports.project()
  const description = 'x'.repeat(100_000)
  for (let n = 0; n < 90; n += 1) await stripe.customers.create({ description })
  const { tally } = await all.run(project)
  assert.deepEqual(tally.rejects, [])
  assert.ok((await imports.count(project, 'profiles')) >= 90)
})
