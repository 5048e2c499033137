// Objects of an account that cannot be stored: each is named with its id and the reason, and everything else is imported.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { dryRun } from '../../../../src/data/ingest/stripe/dry-run.ts'
import { StripeSource } from '../../../../src/data/ingest/stripe/source.ts'
import { systemClock } from '../../../../src/lib/clock.ts'
import type { Project } from '../../../support/imports.ts'
import { savedCard, silent, TEST_KEY } from '../../../support/simulators.ts'
import { MERCHANT, openStripeImports, serveInPlace } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
const put = (...objects: object[]) => all.simulator.control('/objects', { objects })
const ids: Record<'product' | 'ugx' | 'subscription' | 'charge' | 'orphan' | 'odd' | 'oddCharge' | 'strange', string> =
  await fill()

/** An account with one of everything that ended an import. */
async function fill(): Promise<typeof ids> {
  const { stripe } = all
  const { customer, payment_method } = await savedCard(stripe)
  const product = await stripe.products.create({ name: 'Sold in shillings, too' })
  const recurring = { interval: 'month' } as const
  const ugx = await stripe.prices.create({ product: product.id, currency: 'ugx', unit_amount: 500_000, recurring })
  const usd = await stripe.prices.create({ product: product.id, currency: 'usd', unit_amount: 1999, recurring })
  const items = [{ price: usd.id }]
  const subscription = await stripe.subscriptions.create({ customer, items, default_payment_method: payment_method })
  const odd = await stripe.subscriptions.create({ customer, items, default_payment_method: payment_method })
  await put({ ...(await stripe.subscriptions.retrieve(odd.id)), status: 'hibernating' })
  const ofAccount = { id: 'sub_account', customer: null, customer_account: 'acct_1' }
  await put({ ...(await stripe.subscriptions.retrieve(subscription.id)), ...ofAccount })
  const [oddCharge, charge] = (await stripe.charges.list({ customer })).data
  const refund = await stripe.refunds.create({ charge: charge!.id, amount: 300 })
  const orphan = { ...refund, id: 're_orphan', charge: null, payment_intent: null, balance_transaction: null }
  await put(orphan, { ...charge, id: 'ch_strange', currency: 'btc', payment_intent: null, balance_transaction: null })
  return {
    ...{ product: product.id, ugx: ugx.id, subscription: subscription.id, charge: charge!.id, orphan: orphan.id },
    ...{ odd: odd.id, oddCharge: oddCharge!.id, strange: 'ch_strange' },
  }
}

const named = () => [
  `${ids.ugx} has an amount in UGX, a currency that cannot be converted`,
  `${ids.odd} has the unknown status "hibernating"`,
  'sub_account belongs to no customer',
  `${ids.strange} has an amount that cannot be converted: 1999 BTC`,
  `${ids.orphan} belongs to no charge, so it is not the money of a payment here`,
]

const one = (table: string, project: Project, id: string) =>
  all.imports.rows(`select * from ${table} where project_id = $1 and id = $2`, [project.id, id])

test('an account with objects that cannot be stored is imported to its end, and each of them is named', async () => {
  const project = await all.imports.project()
  // Some again, because their events are read after the lists.
  const lines = new Set<string>()
  const { status, tally } = await all.run(project, {}, { onRejected: (line) => lines.add(line) })
  assert.deepEqual([status, tally.rejects.toSorted(), tally.rejected], ['done', named().toSorted(), 5])
  assert.deepEqual([...lines].sort(), named().toSorted())
  const [product] = await one('products', project, ids.product)
  const prices = JSON.parse(product!.prices!) as { currency: string }[]
  assert.deepEqual(
    prices.map(({ currency }) => currency),
    ['USD'],
  )
  const [paid] = await one('transactions', project, ids.charge)
  assert.equal(paid!.subscription_id, ids.subscription)
  // The money of a subscription that cannot be stored counts without it.
  const [alone] = await one('transactions', project, ids.oddCharge)
  assert.deepEqual([alone!.price, alone!.subscription_id], ['1999', null])
})

test('a resumed import goes on behind the objects that it left out', async () => {
  const project = await all.imports.project()
  await all.run(project)
  await all.imports.rows(
    `update stripe_imports set status = 'failed', step = 'charges', after = null where project_id = $1`,
    [project.id],
  )
  assert.equal((await all.run(project)).status, 'done')
})

test('a dry run names the same objects, and stores nothing', async () => {
  const project = await all.imports.project()
  const { signal } = new AbortController()
  const connection = {
    secretKey: TEST_KEY,
    apiUrl: all.simulator.url,
    clock: systemClock,
    callsPerSecond: 1000,
    signal,
  }
  const source = new StripeSource(connection)
  const target = {
    ...{ organizationId: project.organizationId, projectId: project.id, merchantId: MERCHANT },
    externalIdKey: undefined,
  }
  const app = { db: all.imports.db, log: silent as never }
  const lines: string[] = []
  const options = { since: undefined, signal, onProgress() {}, onRejected: (line: string) => lines.push(line) }
  const tally = await dryRun(app, source, target, options).finally(() => source.close())
  assert.deepEqual([tally.rejected, lines.toSorted()], [5, named().toSorted()])
  const [row] = await all.imports.rows('select count(*) as n from products where project_id = $1', [project.id])
  assert.equal(row!.n, '0')
})

test('a follower names a change that cannot be stored, and goes on', async () => {
  const project = await all.imports.project()
  const { stripe } = all
  await all.run(project)
  const lines: string[] = []
  await stripe.subscriptions.update(ids.odd, { metadata: { changed: 'yes' } })
  const { customer } = await savedCard(stripe)
  const state = await all.run(project, { follow: true }, { once: true, onRejected: (line) => lines.push(line) })
  assert.equal(state.status, 'following')
  assert.ok(lines.includes(`${ids.odd} has the unknown status "hibernating"`))
  assert.equal((await one('profiles', project, customer)).length, 1)
})

test('a follower goes on behind events of another form', async (t) => {
  const project = await all.imports.project()
  const { simulator, stripe } = all
  await all.run(project)
  const { customer } = await savedCard(stripe)
  const datas = [
    undefined,
    null,
    1,
    [],
    {},
    { object: null },
    { object: 'x' },
    { object: { object: 'price', id: 'price_1' } },
  ]
  const objects = ['customer', 'subscription', 'payment_method', 'card', 'charge'].flatMap((object) =>
    [null, 1, {}, []].map((id) => ({ object: { object, id, customer: id }, previous_attributes: id ?? 'text' })),
  )
  const odd = [...datas, ...objects].map((data, n) => ({
    id: `evt_odd${n}`,
    type: null,
    created: n % 2 === 0 ? null : 'x',
    data,
  }))
  const apiUrl = await serveInPlace(t, async (request, response) => {
    const headers = { authorization: request.headers.authorization! }
    const body = (await (await fetch(simulator.url + request.url, { headers })).json()) as { data: object[] }
    if (request.url!.startsWith('/v1/events')) body.data.unshift(...odd)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const state = await all.run(project, { follow: true }, { once: true, apiUrl })
  assert.equal(state.status, 'following')
  assert.equal((await one('profiles', project, customer)).length, 1)
})

test('a payment in a currency that is no longer legal tender is imported', async () => {
  const project = await all.imports.project()
  const { stripe } = all
  const paid = await stripe.charges.retrieve(ids.charge)
  const old = { ...paid, payment_intent: null, balance_transaction: null, created: paid.created - 400 * 86_400 }
  await put({ ...old, id: 'ch_lev', currency: 'bgn' }, { ...old, id: 'ch_kuna', currency: 'hrk' })
  const { tally } = await all.run(project)
  assert.equal(tally.rejected, 5)
  const rows = await all.imports.rows(
    `select currency_code, amount from report_transactions
     where organization_id = $1 and psp_transaction_id = any($2) order by 1`,
    [project.organizationId, ['ch_lev', 'ch_kuna']],
  )
  assert.deepEqual(rows, [
    { currency_code: 'BGN', amount: '19.99' },
    { currency_code: 'HRK', amount: '19.99' },
  ])
  assert.equal((await one('transactions', project, 'ch_lev'))[0]!.currency, 'BGN')
})

test('a customer or product that cannot be stored ends no import where others refer to it', async () => {
  const project = await all.imports.project()
  const { stripe } = all
  const { customer, payment_method } = await savedCard(stripe)
  const product = await stripe.products.create({ name: 'Sold by the month' })
  const price = { product: product.id, currency: 'usd', unit_amount: 700, recurring: { interval: 'month' } } as const
  const items = [{ price: (await stripe.prices.create(price)).id }]
  await stripe.subscriptions.create({ customer, items, default_payment_method: payment_method })
  const guest = { id: 'ch_guest', customer: null, payment_intent: null, balance_transaction: null, created: 10 ** 12 }
  const [made] = (await stripe.refunds.list({ charge: ids.charge })).data
  await put(
    { ...(await stripe.customers.retrieve(customer)), created: 10 ** 12 },
    { ...product, created: 10 ** 12 },
    { ...(await stripe.charges.retrieve(ids.charge)), ...guest },
    { ...made!, id: 're_guest', charge: 'ch_guest', payment_intent: null, balance_transaction: null },
  )
  const lines: string[] = []
  const state = await all.run(project, {}, { onRejected: (line) => lines.push(line) })
  assert.equal(state.status, 'done')
  for (const id of [customer, product.id, 'ch_guest'])
    assert.ok(lines.includes(`${id} has a time that cannot be stored: 1000000000000`), lines.join('\n'))
})
