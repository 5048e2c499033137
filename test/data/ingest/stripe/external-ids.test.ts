// With ids of the client in the metadata of customers: who paid does not change because a customer is deleted or changed at Stripe.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { savedCard } from '../../../support/simulators.ts'
import { openStripeImports } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
const { imports, stripe } = all
const KEY = { external_id_key: 'user_id', follow: true }

async function payer(user_id: string) {
  const { customer, payment_method } = await savedCard(stripe)
  await stripe.customers.update(customer, { metadata: { user_id } })
  const pay = () =>
    all.simulator.control<{ latest_charge: string }>('/payments', { customer, payment_method, amount: 1999, ago_s: 60 })
  return { customer, pay }
}

const paidBy = async (organizationId: string, customer: string) =>
  (
    await imports.rows(
      `select psp_transaction_type || ' ' || external_id as one from report_transactions
       where organization_id = $1 and psp_customer_id = $2 order by trx_created_at`,
      [organizationId, customer],
    )
  ).map(({ one }) => one)

const follow = (project: { id: string; organizationId: string }) => all.run(project, KEY, { once: true })

test('the payments of a customer that is deleted at Stripe stay with it, and so do its later refunds and charges', async () => {
  const project = await imports.project()
  const { customer, pay } = await payer('user-42')
  const { latest_charge } = await pay()
  await follow(project)
  assert.deepEqual(await paidBy(project.organizationId, customer), ['sale user-42'])
  // Not read before the customer is deleted.
  await pay()
  await stripe.customers.del(customer)
  await follow(project)
  await stripe.refunds.create({ charge: latest_charge, amount: 500 })
  await follow(project)
  assert.deepEqual(await paidBy(project.organizationId, customer), ['sale user-42', 'sale user-42', 'refund user-42'])
})

test('the stored payments of a customer whose metadata names another one stay; later ones belong to the other', async () => {
  const project = await imports.project()
  const { customer, pay } = await payer('user-1')
  await pay()
  await follow(project)
  await stripe.customers.update(customer, {
    metadata: { user_id: 'user-2' },
    invoice_settings: { default_payment_method: '' },
  })
  const { latest_charge } = await pay()
  await stripe.charges.update(latest_charge, { metadata: { note: 'an event for it' } })
  await follow(project)
  assert.deepEqual((await paidBy(project.organizationId, customer)).sort(), ['sale user-1', 'sale user-2'])
})

test('Stripe’s own id is replaced once the client’s id is known', async () => {
  const project = await imports.project()
  const { customer, pay } = await payer('user-7')
  await pay()
  await all.run(project, {}, { once: true })
  assert.deepEqual(await paidBy(project.organizationId, customer), [`sale ${customer}`])
  await follow(project)
  assert.deepEqual(await paidBy(project.organizationId, customer), ['sale user-7'])
})

test('a customer whose metadata cannot be an id keeps its payments under Stripe’s id, and is named', async () => {
  const project = await imports.project()
  const { customer, pay } = await payer('x'.repeat(257))
  await pay()
  const customers = await stripe.customers.retrieve(customer)
  await all.simulator.control('/objects', { objects: [{ ...customers, metadata: { user_id: 'user\n8' } }] })
  const lines: string[] = []
  const { tally } = await all.run(project, KEY, { once: true, onRejected: (line) => lines.push(line) })
  assert.deepEqual(await paidBy(project.organizationId, customer), [`sale ${customer}`])
  const why = `metadata.user_id is no external_id, and Stripe's id was taken: it must have 1 to 256 characters and no control characters`
  assert.deepEqual([tally.rejected, [...new Set(lines)]], [0, [`${customer} ${why}`]])
})

test('customers whose id an old program chose are known by it, for an erasure at Stripe', async () => {
  const project = await imports.project()
  const { customer } = await savedCard(stripe)
  const id = 'user 17/äö'
  const chosen = { ...(await stripe.customers.retrieve(customer)), id }
  await all.simulator.control('/objects', { objects: [chosen, { ...chosen, id: 'gone 18', deleted: true }] })
  await all.run(project, {}, { once: true })
  const rows = await imports.rows(
    `select customer from provider_customers where organization_id = $1 and external_id like '% %' order by 1`,
    [project.organizationId],
  )
  assert.deepEqual(rows, [{ customer: id }])
})
