// Products, prices, subscriptions and invoices of the Stripe dialect, through Stripe's own client; and the demo account.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { columns } from '../../support/rows.ts'
import { openStripeSimulator, savedCard } from '../../support/simulators.ts'

const simulator = await openStripeSimulator()
after(() => simulator.cleanUp())
const stripe = simulator.client()

async function monthly(unit_amount = 1999) {
  const product = await stripe.products.create({ name: 'Monthly' })
  return stripe.prices.create({ product: product.id, currency: 'usd', unit_amount, recurring: { interval: 'month' } })
}

test('a subscription is paid when it is made and renewed, each time with an invoice that names its payment', async () => {
  const { customer } = await savedCard(stripe)
  const price = await monthly()
  const made = await stripe.subscriptions.create({ customer, items: [{ price: price.id }] })
  assert.deepEqual([made.status, made.items.data[0]!.price.id], ['active', price.id])
  const end = made.items.data[0]!.current_period_end
  const renewed = await simulator.control<Stripe.Subscription>(`/subscriptions/${made.id}/renew`)
  assert.equal(renewed.items.data[0]!.current_period_start, end)
  const invoices = await stripe.invoices.list({ subscription: made.id, expand: ['data.payments'] })
  assert.deepEqual(columns(invoices.data, 'billing_reason', 'status'), [
    ['subscription_cycle', 'paid'],
    ['subscription_create', 'paid'],
  ])
  const intent = invoices.data[0]!.payments!.data[0]!.payment.payment_intent as string
  assert.equal((await stripe.charges.list({ payment_intent: intent })).data[0]!.amount, 1999)
  assert.equal((await stripe.invoices.list({ subscription: made.id })).data[0]!.payments, undefined)
})

test('a subscription ends at once or with its period, pauses, and is past due when its card declines', async () => {
  const { customer } = await savedCard(stripe)
  const price = await monthly()
  const make = () => stripe.subscriptions.create({ customer, items: [{ price: price.id }] })
  const [one, two] = [await make(), await make()]
  assert.equal((await stripe.subscriptions.cancel(one.id)).status, 'canceled')
  await stripe.subscriptions.update(two.id, { cancel_at_period_end: true })
  assert.equal((await simulator.control<Stripe.Subscription>(`/subscriptions/${two.id}/renew`)).status, 'canceled')
  assert.deepEqual((await stripe.subscriptions.list({ customer })).data, [])
  assert.equal((await stripe.subscriptions.list({ customer, status: 'all' })).data.length, 2)
  const poor = await savedCard(stripe, 'pm_card_chargeDeclined')
  const declined = await stripe.subscriptions.create({ customer: poor.customer, items: [{ price: price.id }] })
  assert.equal(declined.status, 'incomplete')
})

test('the demo account has a history in several currencies, the newest first, and everything refers to what is there', async (t) => {
  const demo = await openStripeSimulator({ demoCustomers: 60 })
  t.after(() => demo.cleanUp())
  const stripe = demo.client()
  const charges: Stripe.Charge[] = []
  for await (const charge of stripe.charges.list({ limit: 100, expand: ['data.payment_intent.payment_method'] }))
    charges.push(charge)
  assert.ok(charges.length > 60)
  assert.ok(new Set(charges.map(({ currency }) => currency)).size > 3)
  assert.ok(charges.some(({ status }) => status === 'failed'))
  assert.ok(charges.every(({ created }, n) => n === 0 || created <= charges[n - 1]!.created))
  assert.ok((await stripe.refunds.list({ limit: 100 })).data.length > 0)
  const subscriptions = await stripe.subscriptions.list({ limit: 100, status: 'all', expand: ['data.customer'] })
  assert.ok(subscriptions.data.every(({ customer }) => typeof customer === 'object'))
})
