// Following an account with `since`: reading a customer again stores nothing that is older, and moves no sum.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { paidAt } from '../../../../src/core/records/payment-time.ts'
import { DAY_MS } from '../../../../src/lib/days.ts'
import { columns } from '../../../support/rows.ts'
import { savedCard } from '../../../support/simulators.ts'
import { openStripeImports } from './stripe-imports.ts'

const all = await openStripeImports({ demoCustomers: 25 })
after(() => all.close())
const { imports, stripe } = all

const since = new Date(Date.now() - 90 * DAY_MS).toISOString()

/** The number of payments, refunds and disputes by month. */
const months = (organizationId: string) =>
  imports.rows(
    `select to_char(${paidAt('r')} at time zone 'UTC', 'YYYY-MM') as month, count(*) as n, sum(amount) as sum
     from report_transactions r where organization_id = $1 group by 1 order by 1`,
    [organizationId],
  )

/** Touches each customer of the account, so that a follower reads all of their charges again. */
async function touchAll(): Promise<number> {
  let count = 0
  for await (const { id, deleted } of stripe.customers.list({ limit: 100 })) {
    if (deleted) continue
    const [method] = (await stripe.paymentMethods.list({ customer: id, limit: 1 })).data
    await stripe.customers.update(id, { invoice_settings: { default_payment_method: method?.id ?? '' } })
    await stripe.customers.update(id, { phone: '+15550100' })
    count += 1
  }
  return count
}

test('payments, refunds and people from before `since` are not stored by events about their customers', async () => {
  const project = await imports.project()
  await all.run(project, { since, follow: true }, { once: true })
  const before = await months(project.organizationId)
  const people = await imports.count(project, 'profiles')
  assert.ok((await touchAll()) > people)
  const { customer } = await savedCard(stripe)
  assert.equal((await all.run(project, { since, follow: true }, { once: true })).status, 'following')
  assert.equal(await imports.column(project, 'profiles', 'id', customer), customer)
  assert.deepEqual(await months(project.organizationId), before)
  assert.equal(await imports.count(project, 'profiles'), people + 1)
})

test('a customer read again by a follower keeps its latest payment, and no month changes', async () => {
  const project = await imports.project()
  const { customer } = await savedCard(stripe)
  const pay = (payment_method: string, days: number) =>
    all.simulator.control('/payments', { customer, payment_method, amount: 1999, ago_s: (days * DAY_MS) / 1000 })
  const replaced = (await stripe.paymentMethods.attach('pm_card_visa', { customer })).id
  const present = (await stripe.paymentMethods.attach('pm_card_mastercard', { customer })).id
  await pay(replaced, 60)
  await pay(present, 30)
  await all.run(project, { since: new Date(Date.now() - 40 * DAY_MS).toISOString(), follow: true }, { once: true })
  // Now without `since`: the older payment comes as a feed, after the newer one.
  await imports.db.query(`update stripe_imports set options = options || '{"since": null}' where project_id = $1`, [
    project.id,
  ])
  await stripe.customers.update(customer, { invoice_settings: { default_payment_method: present } })
  await all.run(project, { follow: true }, { once: true })
  const rows = await imports.rows(
    `select payment_method_token as token, trx_created_at > db_clock() - interval '1 day' as is_late
     from report_transactions r where organization_id = $1 and psp_customer_id = $2 order by ${paidAt('r')} desc`,
    [project.organizationId, customer],
  )
  assert.deepEqual(columns(rows, 'token', 'is_late'), [
    [present, 'f'],
    [replaced, 't'],
  ])
})

test('a payment since then of an older invoice is one for its subscription, which its lines may name alone', async () => {
  const project = await imports.project()
  const { customer, payment_method } = await savedCard(stripe)
  const { id: product } = await stripe.products.create({ name: 'By invoice' })
  const recurring = { interval: 'month' } as const
  const price = await stripe.prices.create({ product, currency: 'eur', unit_amount: 1999, recurring })
  const { id } = await stripe.subscriptions.create({ customer, items: [{ price: price.id }] })
  const [invoice] = (await stripe.invoices.list({ customer, expand: ['data.payments'] })).data
  const [line] = invoice!.lines.data
  const NAMING = [
    { subscription: id, parent: null },
    { subscription: null, parent: { subscription_item_details: { subscription: id }, invoice_item_details: null } },
    { subscription: null, parent: { subscription_item_details: null, invoice_item_details: { subscription: id } } },
  ]
  const charges = new Map<string, object>()
  for (const [n, naming] of NAMING.entries()) {
    const paid = { customer, payment_method, amount: 1999, ago_s: (10 * DAY_MS) / 1000 }
    const intent = await all.simulator.control<{ id: string; latest_charge: string }>('/payments', paid)
    const data = [{ ...invoice!.payments!.data[0], payment: { type: 'payment_intent', payment_intent: intent.id } }]
    const sent = {
      ...{ ...invoice, parent: null, id: `in_sent_${n}`, payments: { ...invoice!.payments, data } },
      lines: { ...invoice!.lines, data: [{ ...line, ...naming }] },
      created: Math.floor(Date.now() / 1000) - (60 * DAY_MS) / 1000,
    }
    await all.simulator.control('/objects', { objects: [sent] })
    charges.set(intent.latest_charge, naming)
  }
  await all.run(project, { since: new Date(Date.now() - 20 * DAY_MS).toISOString() })
  for (const [charge, naming] of charges)
    assert.equal(await imports.column(project, 'transactions', 'subscription_id', charge), id, JSON.stringify(naming))
})
