// Imports of Stripe accounts that are not plain: trouble on the way, parts of an account, and what cannot be imported.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { StripeSource } from '../../../../src/data/ingest/stripe/source.ts'
import { figuresOf } from '../../../../src/data/ingest/stripe/tally.ts'
import { systemClock } from '../../../../src/lib/clock.ts'
import { line, storeOrder } from '../../../support/imports.ts'
import { savedCard, TEST_KEY } from '../../../support/simulators.ts'
import { differences, openStripeImports, serveInPlace } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())

const payments = (organizationId: string) =>
  all.imports.rows(
    `select psp_transaction_id as id, external_id, payment_method_token as token, psp_customer_id as customer
     from report_transactions where organization_id = $1 order by trx_created_at`,
    [organizationId],
  )

async function pay(
  customer: string | undefined,
  payment_method: string,
  more: Partial<Stripe.PaymentIntentCreateParams> = {},
) {
  const params = { amount: 1000, currency: 'usd', payment_method, confirm: true, off_session: true, ...more }
  const made = await all.stripe.paymentIntents.create(customer ? { ...params, customer } : params)
  return made.latest_charge as string
}

test('requests that Stripe refuses or drops are repeated', async () => {
  const { simulator, stripe } = all
  const project = await all.imports.project()
  await savedCard(stripe)
  for (const kind of ['busy', 'drop_before', 'error_before'])
    await simulator.control('/faults', { method: 'GET', path: '/v1/customers', kind, times: 1 })
  assert.deepEqual(differences(await all.run(project)), [])
})

test('bodies of another form, as a proxy may send them, are read again and end no import', async (t) => {
  const project = await all.imports.project()
  await savedCard(all.stripe)
  // Each list, and the account, is odd once.
  const pages = ['null', '[]', '{"data": {}}', '{"data": [], "has_more": null}', '{"data": [null], "has_more": false}']
  const odd = [
    ...pages.map((body) => [200, body] as const),
    ...[404, 404, 403, 400].map((status) => [status, '{"message": "no Route matched"}'] as const),
  ]
  const seen = new Set<string>()
  const apiUrl = await serveInPlace(t, async (request, response) => {
    const path = request.url!.split('?')[0]!
    const instead = seen.has(path) ? undefined : odd.pop()
    seen.add(path)
    const passed = instead ?? (await pass(request))
    response.writeHead(passed[0], { 'content-type': 'application/json' }).end(passed[1])
  })
  const state = await all.run(project, {}, { apiUrl })
  assert.deepEqual([odd, state.tally.rejects, differences(state)], [[], [], []])
})

test('a single object that a proxy does not find is read again, and one that Stripe does not have is not', async (t) => {
  let left = 2
  const apiUrl = await serveInPlace(t, async (request, response) => {
    const [status, body] = left-- > 0 ? [404, '{"message": "no Route matched"}'] : await pass(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  const source = new StripeSource({
    ...{ secretKey: TEST_KEY, apiUrl, clock: systemClock, signal: new AbortController().signal },
  })
  t.after(() => source.close())
  const { id } = await all.stripe.customers.create({ email: 'ada@example.com' })
  assert.equal((await source.one<Stripe.Customer>('customers', id))?.email, 'ada@example.com')
  assert.equal(await source.one('customers', 'cus_nowhere'), undefined)
})

async function pass(request: IncomingMessage): Promise<readonly [number, string]> {
  const passed = await fetch(all.simulator.url + request.url, { headers: { ...authorized(request) } })
  return [passed.status, await passed.text()]
}

const authorized = ({ headers }: IncomingMessage) => ({
  authorization: headers.authorization!,
  'stripe-version': String(headers['stripe-version']),
})

test('only what was made since a time, and what that refers to', async () => {
  const { stripe, simulator } = all
  const project = await all.imports.project()
  const old = await savedCard(stripe)
  await stripe.customers.create({ name: 'Nobody needs her' })
  const { now_ms } = await simulator.control<{ now_ms: number }>('/clock', { advance_ms: 10_000 })
  const charge = await pay(old.customer, old.payment_method)
  const state = await all.run(project, { since: new Date(now_ms).toISOString() })
  assert.deepEqual([state.tally.rejects, differences(state)], [[], []])
  const read = figuresOf(state.tally).map(({ kind, stripe, here }) => [kind, stripe.count, here.count])
  assert.deepEqual(read, [
    ['fees', 1, 1],
    ['payments', 1, 1],
  ])
  const [profile] = await all.imports.rows('select email from profiles where project_id = $1 and id = $2', [
    project.id,
    old.customer,
  ])
  assert.equal(profile!.email, 'grace@example.com')
  assert.deepEqual(
    (await payments(project.organizationId)).map(({ id }) => id),
    [charge],
  )
})

test('the saved card is the one that was used, else the default one, else none', async () => {
  const { stripe } = all
  const project = await all.imports.project()
  const { customer, payment_method: first } = await savedCard(stripe)
  const second = (await stripe.paymentMethods.attach('pm_card_mastercard', { customer })).id
  await pay(customer, first)
  const tokens = async () => {
    await all.run(project)
    return (await payments(project.organizationId)).filter((one) => one.customer === customer).map(({ token }) => token)
  }
  assert.deepEqual(await tokens(), [first])
  await stripe.customers.update(customer, { invoice_settings: { default_payment_method: second } })
  await stripe.paymentMethods.detach(first)
  assert.deepEqual(await tokens(), [second])
  const account = await stripe.paymentMethods.create({
    type: 'sepa_debit',
    sepa_debit: { iban: 'DE89370400440532013000' },
  })
  await stripe.paymentMethods.attach(account.id, { customer })
  await stripe.customers.update(customer, { invoice_settings: { default_payment_method: account.id } })
  assert.deepEqual(await tokens(), [null])
  await stripe.customers.update(customer, { invoice_settings: { default_payment_method: second } })
  await stripe.customers.del(customer)
  assert.deepEqual(await tokens(), [null])
})

test('a dispute that is lost gave back what had been refunded before', async () => {
  const { stripe, simulator } = all
  const project = await all.imports.project()
  const { customer, payment_method } = await savedCard(stripe)
  const charge = await pay(customer, payment_method)
  await stripe.refunds.create({ charge, amount: 250 })
  const { id } = await simulator.control<{ id: string }>('/disputes', { charge })
  await simulator.control(`/disputes/${id}/close`, { status: 'lost' })
  assert.deepEqual(differences(await all.run(project)), [])
  const rows = await all.imports.rows(
    `select psp_transaction_type as type, status, amount from report_transactions
     where organization_id = $1 and psp_transaction_id = $2 order by trx_created_at, 1`,
    [project.organizationId, id],
  )
  assert.deepEqual(rows, [
    { type: 'chargeback', status: 'refunded', amount: '10.00' },
    { type: 'chargeback_reversal', status: 'succeeded', amount: '2.50' },
  ])
})

test('a card that was saved for payments in the presence of its holder is not the saved card', async () => {
  const { stripe } = all
  const project = await all.imports.project()
  const customers: Record<string, string> = {}
  for (const usage of ['off_session', 'on_session'] as const) {
    const { id } = await stripe.customers.create({ name: usage })
    await pay(id, 'pm_card_visa', { setup_future_usage: usage, off_session: false })
    customers[usage] = id
  }
  await all.run(project)
  const saved = (await payments(project.organizationId)).filter(({ token }) => token !== null)
  const found = Object.entries(customers).filter(([, id]) => saved.some(({ customer }) => customer === id))
  assert.deepEqual(
    found.map(([usage]) => usage),
    ['off_session'],
  )
})

test('charges that Tundish made are left out; those of another installation are not', async () => {
  const { stripe, imports } = all
  const project = await imports.project()
  const { customer, payment_method } = await savedCard(stripe)
  const [ours, others] = [randomUUID(), randomUUID()]
  await storeOrder(imports.db, project, ours, 'k')
  const own = await pay(customer, payment_method, { metadata: { tundish_order: ours } })
  const foreign = await pay(customer, payment_method, { metadata: { tundish_order: others } })
  const lost = await pay(customer, payment_method, { metadata: { tundish_order: randomUUID(), tundish_key: 'a key' } })
  await stripe.refunds.create({ charge: own })
  const state = await all.run(project)
  assert.deepEqual([state.tally.own, differences(state)], [3, []])
  const ids = (await payments(project.organizationId)).map(({ id }) => id)
  assert.deepEqual([ids.includes(own), ids.includes(foreign), ids.includes(lost)], [false, true, false])
  const kept = await imports.rows('select provider_key, state from lost_movements where organization_id = $1', [
    project.organizationId,
  ])
  assert.deepEqual(kept, [{ provider_key: 'a key', state: 'moved' }])
})

test('a billing customer keeps the profile that it is linked to', async () => {
  const { stripe, imports } = all
  const project = await imports.project()
  await imports.run(project, [
    line.profile({ id: 'mine' }),
    line.customer({ external_id: 'user-7', profile_id: 'mine' }),
  ])
  const { id } = await stripe.customers.create({ email: 'seven@example.com', metadata: { user_id: 'user-7' } })
  await all.run(project, { external_id_key: 'user_id' })
  const [customer] = await imports.rows(
    'select profile_id, email from customers where organization_id = $1 and external_id = $2',
    [project.organizationId, 'user-7'],
  )
  assert.deepEqual(customer, { profile_id: 'mine', email: 'seven@example.com' })
  assert.equal(
    (await imports.rows('select 1 from profiles where project_id = $1 and id = $2', [project.id, id])).length,
    0,
  )
})

test('a list whose place was deleted in between is read from its beginning', async () => {
  const { stripe, imports } = all
  const project = await imports.project()
  const gone = await stripe.customers.create({ name: 'Gone' })
  await all.run(project)
  await imports.rows(
    `update stripe_imports set status = 'running', step = 'customers', after = $2 where project_id = $1`,
    [project.id, gone.id],
  )
  await stripe.customers.del(gone.id)
  const state = await all.run(project)
  assert.deepEqual([state.status, differences(state).map(({ kind }) => kind)], ['done', []])
})

test('a list whose last read objects are deleted between two pages goes on behind the others, with none twice', async () => {
  const { stripe, simulator } = all
  for (const name of ['One', 'Two', 'Three', 'Four', 'Five']) await stripe.customers.create({ name })
  const { signal } = new AbortController()
  const connection = { secretKey: TEST_KEY, apiUrl: simulator.url, clock: systemClock, callsPerSecond: 1000, signal }
  const source = new StripeSource(connection)
  const read: string[] = []
  let isFirst = true
  for await (const page of source.pages<{ id: string }>('/v1/customers', { limit: 3 })) {
    read.push(...page.map(({ id }) => id))
    if (isFirst) for (const id of read.slice(1)) await stripe.customers.del(id)
    isFirst = false
  }
  source.close()
  const left = []
  for await (const { id } of stripe.customers.list({ limit: 100 })) left.push(id)
  assert.deepEqual(read.toSpliced(1, 2), left)
})

test('texts that are longer than here are cut or left out, and named, and nothing else is lost', async () => {
  const { stripe } = all
  const project = await all.imports.project()
  const long = '😀'.repeat(500)
  const product = await stripe.products.create({ name: long, description: 'd'.repeat(4001) })
  // One request could not hold all of it.
  for (const part of ['a', 'b', 'c', 'd', 'e']) {
    const metadata = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`${part}${n}`, '漢'.repeat(500)]))
    await stripe.products.update(product.id, { metadata })
  }
  const customer = await stripe.customers.create({ phone: '1'.repeat(300), email: 'kept@example.com' })
  const state = await all.run(project)
  assert.equal(state.tally.shortened, 4)
  const ofThese = state.tally.rejects.filter((one) => one.startsWith(product.id) || one.startsWith(customer.id))
  assert.deepEqual(ofThese, [
    `${product.id} product.name was cut: it has more than 500 bytes`,
    `${product.id} product.description was cut: it has more than 4000 bytes`,
    `${product.id} product.metadata was left out: it has more than 64 KiB`,
    `${customer.id} profile.phone was left out: it has more than 256 bytes`,
  ])
  const stored = await all.imports.row(
    `select d.name, d.description, d.metadata::text, p.phone, p.email from products d join profiles p using (project_id)
     where project_id = $1 and d.id = $2 and p.id = $3`,
    [project.id, product.id, customer.id],
  )
  assert.deepEqual(stored, {
    name: `${'😀'.repeat(124)}…`,
    description: `${'d'.repeat(3997)}…`,
    metadata: '{}',
    phone: null,
    email: 'kept@example.com',
  })
})

test('a key that may not read fees imports everything else, and says so', async () => {
  const { simulator, stripe } = all
  const project = await all.imports.project()
  const { customer, payment_method } = await savedCard(stripe)
  const charge = await pay(customer, payment_method)
  await simulator.control('/faults', { path: '/v1/balance_transactions.*', kind: 'forbidden', times: 1000 })
  const { status, tally } = await all.run(project)
  const sentence =
    'balance_transactions were left out. The secret key may not read balance_transactions: give it the read permission at Stripe.'
  assert.deepEqual([status, tally.rejects.at(-1)], ['done', sentence])
  assert.ok((await payments(project.organizationId)).some(({ id }) => id === charge))
  const stored = () =>
    all.imports.rows('select 1 from provider_fees where organization_id = $1', [project.organizationId])
  assert.equal((await stored()).length, 0)
  await simulator.control('/faults/clear')
  assert.equal((await all.run(project)).status, 'done')
  assert.ok((await stored()).length > 0)
})

test('a key that may not read coupons ends the import with the name of the permission', async (t) => {
  const project = await all.imports.project()
  const { customer } = await savedCard(all.stripe)
  const { id: product } = await all.stripe.products.create({ name: 'Reduced' })
  const recurring = { interval: 'month' } as const
  const price = await all.stripe.prices.create({ product, currency: 'usd', unit_amount: 900, recurring })
  const { id: coupon } = await all.stripe.coupons.create({ percent_off: 10, duration: 'forever' })
  await all.stripe.subscriptions.create({ customer, items: [{ price: price.id }], discounts: [{ coupon }] })
  const message =
    "The provided key 'rk_live_…' does not have the required permissions for this endpoint on account 'acct_1'. Having the " +
    "'rak_coupon_read' permission would allow this request to continue."
  const apiUrl = await serveInPlace(t, async (request, response) => {
    const isForbidden = request.url!.includes('coupon')
    const passed = isForbidden
      ? undefined
      : await fetch(all.simulator.url + request.url, { headers: authorized(request) })
    response.writeHead(passed?.status ?? 403, { 'content-type': 'application/json' })
    response.end(passed ? await passed.text() : JSON.stringify({ error: { type: 'invalid_request_error', message } }))
  })
  await assert.rejects(all.run(project, {}, { apiUrl }), {
    message: 'The secret key may not read subscriptions: give it the read permission at Stripe (rak_coupon_read).',
  })
})
