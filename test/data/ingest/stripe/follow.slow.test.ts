// Following a Stripe account: what changes there changes here, and persons who were erased stay erased.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { line } from '../../../support/imports.ts'
import { savedCard } from '../../../support/simulators.ts'
import { until } from '../../../support/time.ts'
import { reapplyErasure } from '../erased-imports.ts'
import { accountFees, accountSums, openStripeImports, storedSums } from './stripe-imports.ts'

const all = await openStripeImports({ demoCustomers: 25 })
after(() => all.close())
const project = await all.imports.project()

const one = (table: string, id: string) =>
  all.imports.row(`select * from ${table} where project_id = $1 and id = $2`, [project.id, id])

async function monthly() {
  const product = await all.stripe.products.create({ name: 'Weekly' })
  return all.stripe.prices.create({
    product: product.id,
    currency: 'eur',
    unit_amount: 799,
    recurring: { interval: 'week' },
  })
}

/** Of all entries in the account's balance, as `accountFees` has them. */
const storedFees = async () => {
  const { sum } = await all.imports.row(
    `select sum(fee) * -100 as sum from (
       select distinct entry_id, fee from provider_fees where organization_id = $1) f`,
    [project.organizationId],
  )
  return `USD: ${Number(sum)}`
}

const state = async () =>
  (await all.imports.rows('select status from stripe_imports where project_id = $1', [project.id]))[0]
const transactions = async (subscription: string) =>
  Number(
    (
      await all.imports.row('select count(*) as n from transactions where project_id = $1 and subscription_id = $2', [
        project.id,
        subscription,
      ])
    ).n,
  )
/** Payments with a saved card. */
const cards = async (customer: string) =>
  Number(
    (
      await all.imports.row(
        `select count(*) as n from report_transactions
         where organization_id = $1 and psp_customer_id = $2 and payment_method_token is not null`,
        [project.organizationId, customer],
      )
    ).n,
  )

test('customers, products, subscriptions, payments, refunds and disputes change here while they change there', async () => {
  const { stripe, simulator } = all
  const controller = new AbortController()
  const following = all.run(project, { follow: true }, { signal: controller.signal })
  await until('the lists', async () => (await state())?.status === 'following')
  const [{ n: ofLists }] = (await all.imports.rows('select count(*) as n from events where project_id = $1', [
    project.id,
  ])) as [{ n: string }]
  assert.equal(ofLists, '0', 'history is not sent to webhooks')
  const { customer, payment_method } = await savedCard(stripe)
  const price = await monthly()
  const subscription = await stripe.subscriptions.create({ customer, items: [{ price: price.id }] })
  await until('the subscription', async () => (await one('subscriptions', subscription.id))?.status === 'active')
  assert.equal((await one('subscriptions', subscription.id)).product_id, price.product)
  await until('its transaction', async () => (await transactions(subscription.id)) === 1)
  await simulator.control(`/subscriptions/${subscription.id}/renew`)
  await until('its renewal', async () => (await transactions(subscription.id)) === 2)
  await stripe.customers.update(customer, { email: 'new@example.com' })
  await stripe.products.update(String(price.product), { name: 'Every week' })
  await until('the e-mail', async () => (await one('profiles', customer)).email === 'new@example.com')
  await until('the product', async () => (await one('products', String(price.product))).name === 'Every week')
  const [charge] = (await stripe.charges.list({ customer })).data
  await stripe.refunds.create({ charge: charge!.id, amount: 300 })
  await simulator.control('/disputes', { charge: (await stripe.charges.list({ customer })).data[1]!.id })
  await stripe.subscriptions.cancel(subscription.id)
  await until('the end', async () =>
    ['cancelled', 'expired'].includes((await one('subscriptions', subscription.id)).status!),
  )
  const account = await accountSums(stripe)
  const fees = await accountFees(stripe)
  await until('the same fees', async () => (await storedFees()) === fees.join())
  await until('the same sums', async () => (await storedSums(all, project)).join() === account.join())
  assert.equal(await cards(customer), 2)
  const written = await all.imports.rows('select distinct type from events where project_id = $1', [project.id])
  for (const type of ['subscription.created', 'subscription.renewed', 'profile.updated', 'transaction.created'])
    assert.ok(
      written.some((one) => one.type === type),
      `${type} is missing among ${JSON.stringify(written)}`,
    )
  await stripe.paymentMethods.detach(payment_method)
  await until('the card to go', async () => (await cards(customer)) === 0)
  controller.abort()
  assert.equal((await following).status, 'following')
})

test('a schedule that is made or released there has its subscription read again', async () => {
  const { stripe, simulator } = all
  const controller = new AbortController()
  const following = all.run(project, { follow: true }, { signal: controller.signal })
  const { customer } = await savedCard(stripe)
  const { id } = await stripe.subscriptions.create({ customer, items: [{ price: (await monthly()).id }] })
  await until('the subscription', async () => (await one('subscriptions', id))?.status === 'active')
  const schedule = { id: 'sub_sched_1', object: 'subscription_schedule' }
  const change = async (what: string, named: object, scheduled: object) => {
    const data = { object: { ...schedule, ...named } }
    const created = Math.floor(Date.now() / 1000)
    const event = { id: `evt_${what}`, object: 'event', type: `subscription_schedule.${what}`, created, data }
    const subscription = { ...(await stripe.subscriptions.retrieve(id)), ...scheduled }
    await simulator.control('/objects', { objects: [subscription, event] })
  }
  await change('created', { subscription: id, released_subscription: null }, { schedule: schedule.id })
  await until('the note', async () => (await one('subscriptions', id)).price_note !== null)
  await change('released', { subscription: null, released_subscription: id }, { schedule: null })
  await until('the note to go', async () => (await one('subscriptions', id)).price_note === null)
  controller.abort()
  await following
})

test('following ends with the signal, also while a call to Stripe is repeated', async () => {
  const { simulator } = all
  const controller = new AbortController()
  const statuses: string[] = []
  const onProgress = ({ status }: { status: string }) => void statuses.push(status)
  const following = all.run(project, { follow: true }, { signal: controller.signal, onProgress })
  await until('the lists', () => statuses.includes('following'))
  await simulator.control('/faults', { method: 'GET', path: '/v1/events', kind: 'error_before', times: 1000 })
  const calls = await simulator.calls()
  await until('a call that fails', async () => (await simulator.calls()) > calls)
  controller.abort()
  assert.equal((await following).status, 'following')
  await simulator.control('/faults/clear')
})

test('changes while no process follows are imported later', async () => {
  const { stripe } = all
  const { customer } = await savedCard(stripe)
  await stripe.customers.update(customer, { phone: '+15550001' })
  assert.equal((await all.run(project)).status, 'done')
  assert.equal((await one('profiles', customer)).phone, '+15550001')
})

test('a price that is archived there is archived here, and stays with its product', async () => {
  const { stripe } = all
  const [old, current] = [await monthly(), await monthly()]
  const product = String(current.product)
  const other = await stripe.prices.create({ product, currency: 'usd', unit_amount: 900 })
  await stripe.prices.update(other.id, { active: false })
  await stripe.prices.update(old.id, { active: false })
  assert.deepEqual((await all.run(project)).tally.rejects, [])
  const statuses = async (id: string) =>
    (JSON.parse(String((await one('products', id)).prices)) as { id: string; status: string }[])
      .map((price) => `${price.id} ${price.status}`)
      .sort()
  assert.deepEqual(await statuses(product), [`${current.id} active`, `${other.id} archived`].sort())
  assert.deepEqual(await statuses(String(old.product)), [`${old.id} archived`])
})

test('a product that is deleted there is archived here, and one that is not known makes none', async () => {
  await all.imports.run(project, [line.product({ id: 'prod_gone', status: 'active' })])
  const created = Math.floor(Date.now() / 1000)
  const events = ['prod_gone', 'prod_unknown'].map((id) => {
    const data = { object: { id, object: 'product' } }
    return { id: `evt_${id}`, object: 'event', type: 'product.deleted', created, data }
  })
  await all.simulator.control('/objects', { objects: events })
  assert.deepEqual((await all.run(project)).tally.rejects, [])
  assert.deepEqual(
    await all.imports.rows(
      `select id, status from products where project_id = $1 and id in ('prod_gone', 'prod_unknown')`,
      [project.id],
    ),
    [{ id: 'prod_gone', status: 'archived' }],
  )
})

test('persons who were erased stay erased, whatever Stripe still knows of them', async () => {
  const { stripe, imports } = all
  const { data } = await stripe.customers.list({ limit: 1 })
  const { id } = data[0]!
  // As after a restored backup: the same work as for a request, without a request.
  assert.equal((await reapplyErasure(all.imports.db, project.id, id)).erased, 1)
  await stripe.customers.update(id, { email: 'again@example.com', phone: '+1555' })
  await all.run(project, { external_id_key: 'user_id' })
  const profile = await one('profiles', id)
  assert.deepEqual([profile.email, profile.phone, profile.anonymized_at !== null], [null, null, true])
  const [customer] = await imports.rows('select email from customers where project_id = $1 and profile_id = $2', [
    project.id,
    id,
  ])
  assert.equal(customer!.email, null)
})
