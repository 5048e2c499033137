// One person, one profile: a customer of Stripe is put together with the profile that the project has of the same person.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertExact, figuresOf } from '../../../support/figures.ts'
import { line, type Project, uuid } from '../../../support/imports.ts'
import { savedCard } from '../../../support/simulators.ts'
import { until } from '../../../support/time.ts'
import { reapplyErasure } from '../erased-imports.ts'
import { openStripeImports } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
const { stripe, imports } = all

const monthly = async () =>
  stripe.prices.create({
    product: (await stripe.products.create({ name: 'Monthly' })).id,
    currency: 'usd',
    unit_amount: 1999,
    recurring: { interval: 'month' },
  })

/** A customer with a paid subscription at Stripe, with this metadata of the subscription. */
async function subscriber(metadata: Record<string, string>, token = 'pm_card_visa') {
  const { customer } = await savedCard(stripe, token)
  const price = await monthly()
  const { id } = await stripe.subscriptions.create({ customer, items: [{ price: price.id }], metadata })
  return { customer, subscription: id }
}

const visit = (id: string) => [
  line.funnel({ id: 'quiz' }),
  line.profile({ id: `pro_${id}`, email: `${id}@example.com` }),
  line.session({ id: `ses_${id}`, profile_id: `pro_${id}`, funnel_id: 'quiz', funnel_version: 3, locale: 'de' }),
]
const row = (project: Project, table: string, where: string) =>
  imports.row(`select * from ${table} where project_id = $1 and ${where}`, [project.id])
const living = async (project: Project) =>
  (await imports.rows('select id from profiles where project_id = $1 and anonymized_at is null', [project.id])).map(
    ({ id }) => id,
  )
const waiting = async (project: Project) =>
  Number((await imports.row('select count(*) as n from waiting_links where project_id = $1', [project.id])).n)
const paidOf = async (project: Project) => {
  const [one] = await figuresOf(imports.db, project.id, 'sessions subscribed paid', { test: true })
  return [one?.sessions, one?.subscribed, one?.paid].map(Number)
}
const linked = async (project: Project, subscription: string) => {
  const { profile_id, session_id, funnel_id, funnel_version } = await row(
    project,
    'subscriptions',
    `id = '${subscription}'`,
  )
  return [profile_id, session_id, funnel_id, funnel_version]
}

test('what a subscription names is linked: one profile, its session and funnel, and a session that paid', async () => {
  const project = await imports.project()
  await imports.run(project, visit('ada'))
  const { customer, subscription } = await subscriber({ tundish_profile: 'pro_ada', tundish_session: 'ses_ada' })
  await all.run(project)
  assert.deepEqual(await linked(project, subscription), ['pro_ada', 'ses_ada', 'quiz', '3'])
  const paid = await row(project, 'transactions', `subscription_id = '${subscription}'`)
  assert.deepEqual([paid.profile_id, paid.session_id, paid.funnel_id], ['pro_ada', 'ses_ada', 'quiz'])
  assert.deepEqual(await imports.column(project, 'profiles', 'id', customer), undefined)
  const billed = await imports.row('select profile_id from customers where project_id = $1 and external_id = $2', [
    project.id,
    customer,
  ])
  assert.equal(billed.profile_id, 'pro_ada')
  await assertExact(imports.db, project.id)
  assert.deepEqual(await paidOf(project), [1, 1, 1])
  const before = await linked(project, subscription)
  await all.run(project)
  assert.deepEqual(await linked(project, subscription), before)
})

test('a session that comes after its payment is linked when it comes, whatever the order, and lines come twice', async () => {
  const project = await imports.project()
  const { subscription } = await subscriber({ tundish_session: 'ses_bob', tundish_funnel: 'quiz' })
  const state = await all.run(project)
  assert.deepEqual([state.status, state.tally.rejects], ['done', []])
  assert.ok((await waiting(project)) >= 2)
  for (const lines of [visit('bob').slice(0, 2), visit('bob').slice(2), visit('bob')]) {
    await imports.run(project, lines, { live: true })
    await assertExact(imports.db, project.id)
  }
  assert.deepEqual(await linked(project, subscription), ['pro_bob', 'ses_bob', 'quiz', '3'])
  assert.ok((await living(project)).includes('pro_bob'))
  assert.deepEqual(await paidOf(project), [1, 1, 1])
})

test('a name that belongs to no person is imported and waits', async () => {
  const project = await imports.project()
  const { customer, subscription } = await subscriber({ tundish_profile: 'pro_nobody' })
  const state = await all.run(project)
  assert.deepEqual([state.status, state.tally.rejects], ['done', []])
  assert.equal((await linked(project, subscription))[0], customer)
  const wait = await row(project, 'waiting_links', `id = '${customer}'`)
  assert.deepEqual([wait.field, wait.named], ['profile_id', 'pro_nobody'])
})

test('names of metadata can be others, and the nearest object decides', async () => {
  const project = await imports.project()
  await imports.run(project, [...visit('near'), ...visit('far')])
  const { customer, payment_method } = await savedCard(stripe)
  await stripe.customers.update(customer, { metadata: { user: 'pro_far' } })
  const intent = await stripe.paymentIntents.create({
    amount: 500,
    currency: 'usd',
    customer,
    payment_method,
    confirm: true,
    off_session: true,
    metadata: { user: 'pro_near' },
  })
  await all.run(project, { metadata: { profile: 'user' } })
  const payment = await row(project, 'transactions', `id = '${intent.latest_charge}'`)
  assert.equal(payment.profile_id, 'pro_near')
})

test('by customer: the payments of a known customer of Stripe are those of its profile', async () => {
  const project = await imports.project()
  const { customer, subscription } = await subscriber({})
  await imports.run(project, [
    ...visit('cleo'),
    line.customer({ external_id: 'user-cleo', profile_id: 'pro_cleo' }),
    line.payment({ external_id: 'user-cleo', trx_id: uuid(8801), psp: 'stripe', psp_customer_id: customer }),
  ])
  await all.run(project)
  assert.equal((await linked(project, subscription))[0], 'pro_cleo')
  assert.equal(await imports.column(project, 'profiles', 'id', customer), undefined)
})

test('by e-mail only where asked for, and never with two candidates', async () => {
  const address = 'grace@example.com'
  const { customer } = await subscriber({})
  const run = async (profiles: string[], options: object) => {
    const project = await imports.project()
    await imports.run(
      project,
      profiles.map((id) => line.profile({ id, email: address.toUpperCase() })),
    )
    await all.run(project, { ...options, since: new Date(Date.now() - 60_000).toISOString() })
    const alias = await imports.rows('select profile_id from profile_aliases where project_id = $1 and alias = $2', [
      project.id,
      customer,
    ])
    return alias[0]?.profile_id
  }
  assert.equal(await run(['pro_grace'], {}), undefined)
  assert.equal(await run(['pro_grace', 'pro_other'], { match_email: true }), undefined)
})

test('by e-mail: exactly one profile has the address, and one customer of Stripe', async () => {
  const project = await imports.project()
  const { id: only } = await stripe.customers.create({ email: 'UMA@example.com' })
  await stripe.customers.create({ email: 'two@example.com' })
  await stripe.customers.create({ email: 'two@example.com' })
  await imports.run(project, [
    line.profile({ id: 'pro_uma', email: 'Uma@example.com' }),
    line.profile({ id: 'pro_two', email: 'two@example.com' }),
  ])
  await all.run(project, { match_email: true })
  const aliases = await imports.rows('select alias, profile_id from profile_aliases where project_id = $1', [
    project.id,
  ])
  assert.deepEqual(aliases, [{ alias: only, profile_id: 'pro_uma' }])
})

test('a follower links what is named later, by merging the profile that it had made', async () => {
  const project = await imports.project()
  await imports.run(project, visit('dora'))
  const { customer, subscription } = await subscriber({})
  const controller = new AbortController()
  const following = all.run(project, { follow: true }, { signal: controller.signal })
  await until('the subscription', async () => (await linked(project, subscription).catch(() => []))[0] === customer)
  await stripe.subscriptions.update(subscription, { metadata: { tundish_session: 'ses_dora' } })
  await until('its link', async () => (await linked(project, subscription))[0] === 'pro_dora')
  await until('its session', async () => (await linked(project, subscription))[1] === 'ses_dora')
  const email = await imports.column(project, 'profiles', 'email', customer)
  assert.equal(email, null)
  await stripe.customers.del(customer)
  await stripe.products.create({ name: 'After the deletion' })
  await until(
    'the product',
    async () =>
      (await imports.rows(`select 1 from products where project_id = $1 and name = 'After the deletion'`, [project.id]))
        .length === 1,
  )
  const billed = await imports.row('select profile_id from customers where project_id = $1 and external_id = $2', [
    project.id,
    customer,
  ])
  assert.equal(billed.profile_id, 'pro_dora')
  assert.equal((await linked(project, subscription))[0], 'pro_dora')
  controller.abort()
  await following.catch(() => {})
  await assertExact(imports.db, project.id)
})

test('a customer who names an erased profile is erased with it, before and after', async () => {
  const project = await imports.project()
  await imports.run(project, visit('eve'))
  const { customer } = await subscriber({ tundish_session: 'ses_eve' })
  await reapplyErasure(imports.db, project.id, 'pro_eve')
  await all.run(project)
  assert.equal(await imports.column(project, 'profiles', 'id', customer), undefined)
  const billed = await imports.row(
    'select profile_id, email from customers where project_id = $1 and external_id = $2',
    [project.id, customer],
  )
  assert.deepEqual(billed, { profile_id: 'pro_eve', email: null })
})

/** A checkout session that was paid, with this metadata, and what was bought in it, with its own metadata. */
async function bought(metadata: Record<string, string>, own: Record<string, string> = {}) {
  const price = await monthly()
  const { id, url } = await stripe.checkout.sessions.create({
    mode: 'subscription',
    line_items: [{ price: price.id, quantity: 1 }],
    metadata,
    subscription_data: { metadata: own },
    success_url: 'https://shop.example.com/thanks',
  })
  assert.ok(url!.startsWith(`${all.simulator.url}/c/pay/cs_test_`))
  const paid = await all.simulator.control<{ subscription: string; customer: string }>(`/checkout/sessions/${id}/pay`, {
    email: 'buyer@example.com',
  })
  return paid
}

test('what a checkout session names is linked, unless the subscription names something nearer', async () => {
  const project = await imports.project()
  await imports.run(project, [...visit('fay'), ...visit('gus'), ...visit('hal')])
  const one = await bought({ tundish_profile: 'pro_fay', tundish_session: 'ses_fay' })
  await stripe.customers.update(one.customer, { metadata: { tundish_session: 'ses_hal' } })
  const two = await bought({ tundish_session: 'ses_hal' }, { tundish_session: 'ses_gus' })
  const state = await all.run(project)
  assert.deepEqual([state.status, state.tally.rejects], ['done', []])
  assert.deepEqual(await linked(project, one.subscription), ['pro_fay', 'ses_fay', 'quiz', '3'])
  assert.deepEqual(await linked(project, two.subscription), ['pro_gus', 'ses_gus', 'quiz', '3'])
  await assertExact(imports.db, project.id)
  assert.deepEqual(await paidOf(project), [3, 2, 2])
})

test('a follower links what a checkout session names, when it is paid', async () => {
  const project = await imports.project()
  await imports.run(project, visit('ida'))
  const controller = new AbortController()
  const following = all.run(project, { follow: true, since: new Date().toISOString() }, { signal: controller.signal })
  const { subscription } = await bought({ tundish_session: 'ses_ida' })
  await until('its session', async () => (await linked(project, subscription).catch(() => []))[1] === 'ses_ida')
  controller.abort()
  await following.catch(() => {})
  assert.equal((await linked(project, subscription))[0], 'pro_ida')
  await assertExact(imports.db, project.id)
})
