// An import that the server carries out: started, shown and stopped through the operator's API, and gone on with elsewhere.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { carryOutImports, refreshFromStripe } from '../../../../src/data/ingest/stripe/background.ts'
import { type Held, holdImport } from '../../../../src/data/ingest/stripe/hold.ts'
import { openSource } from '../../../../src/data/ingest/stripe/start.ts'
import type { Db } from '../../../../src/lib/pg/db.ts'
import type { Query } from '../../../../src/lib/pg/types.ts'
import { checkImports } from '../../../../src/operator/doctor/imports.ts'
import { credentialsOf } from '../../../../src/payments/providers/account.ts'
import { startAdmin } from '../../../support/admin.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../../../support/events.ts'
import type { Json } from '../../../support/server.ts'
import { openStripeSimulator, savedCard, TEST_KEY } from '../../../support/simulators.ts'
import { machineSleeps, until } from '../../../support/time.ts'
import { serveInPlace } from './stripe-imports.ts'

const MERCHANT = 'main'
const simulator = await openStripeSimulator({ demoCustomers: 30 })
const events = await openEvents()
events.app.config.stripeApiUrl = simulator.url
const admin = await startAdmin(events)
await connect(MERCHANT, TEST_KEY)
after(async () => {
  await admin.stop()
  await events.close()
  await simulator.cleanUp()
})

async function connect(merchantId: string, key: string): Promise<void> {
  const sealed = events.app.seal.seal(key, credentialsOf({ organizationId: ORGANIZATION, psp: 'stripe', merchantId }))
  await events.app.db.query(
    `insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, credentials, credentials_last4,
       connected_at, created_at, updated_at)
     values ($1, 'stripe', $2, true, $3, '0000', db_clock(), db_clock(), db_clock())`,
    [ORGANIZATION, merchantId, sealed],
  )
}

const path = (merchant = MERCHANT) => `/projects/${PROJECT}/stripe-imports/${merchant}`
const status = async (merchant = MERCHANT) => (await admin.call('GET', path(merchant))).body.status

test('it is imported and followed in the background, and shown with its figures', async () => {
  assert.equal((await admin.call('GET', path())).status, 404)
  assert.equal((await admin.call('POST', path('nowhere'), {})).status, 404)
  const started = await admin.call('POST', path(), { follow: true, external_id_key: 'user_id' })
  assert.deepEqual([started.status, started.body.status], [200, 'waiting'])
  const stop = carryOutImports(events.app)
  await until('everything read', async () => (await status()) === 'following')
  const { body } = await admin.call('GET', path())
  assert.deepEqual([body.rejects, body.differences, body.error, body.step], [[], [], null, 'events'])
  assert.ok(body.figures.length > 10)
  assert.equal((await admin.call('GET', `/projects/${PROJECT}/stripe-imports`)).body.data[0].read, body.read)
  const { customer } = await savedCard(simulator.client())
  await until('the new customer', async () => (await profile(customer)) !== undefined)
  assert.deepEqual((await admin.call('DELETE', path())).body, { stopped: true })
  await stop()
  assert.equal(await status(), 'stopped')
})

const profile = async (id: string) =>
  (await events.app.db.query('select * from profiles where project_id = $1 and id = $2', [PROJECT, id]))[0]

test('an event is a hint: its object is read at Stripe and imported into the projects that follow the account', async () => {
  const stripe = simulator.client()
  const account = { organizationId: ORGANIZATION, merchantId: MERCHANT }
  const signal = new AbortController().signal
  const { id } = await stripe.customers.create({ email: 'hint@example.com' })
  const hint = { type: 'customer.created', data: { object: { object: 'customer', id, email: 'false@example.com' } } }
  assert.equal(await refreshFromStripe(events.app, account, [hint], signal), 0)
  await admin.call('POST', path(), { follow: true, external_id_key: 'user_id' })
  assert.equal(await refreshFromStripe(events.app, account, [hint, hint], signal), 1)
  assert.equal((await profile(id))!.email, 'hint@example.com')
  const unknown = { type: 'payout.paid', data: { object: { object: 'payout', id: 'po_1' } } }
  assert.equal(await refreshFromStripe(events.app, account, [unknown], signal), 0)
  // One that cannot be stored is named, and does not fail: sending the notification again would not help.
  const { data } = await stripe.subscriptions.list({ limit: 1 })
  await simulator.control('/objects', { objects: [{ ...data[0], status: 'hibernating' }] })
  const changed = { type: 'customer.subscription.updated', data: { object: data[0] } }
  const lines: string[] = []
  const onRejected = (line: string) => lines.push(line)
  assert.equal(await refreshFromStripe(events.app, account, [changed], signal, { onRejected }), 1)
  assert.deepEqual(lines, [`${data[0]!.id} has the unknown status "hibernating"`])
})

test('all payments of an invoice that came before it are linked to its subscription, also those behind the first ten', async () => {
  const stripe = simulator.client()
  const account = { organizationId: ORGANIZATION, merchantId: MERCHANT }
  const refreshed = (type: string, object: object) =>
    refreshFromStripe(events.app, account, [{ type, data: { object } }], new AbortController().signal)
  await admin.call('POST', path(), { follow: true, external_id_key: 'user_id' })
  const { customer, payment_method } = await savedCard(stripe)
  const { id: product } = await stripe.products.create({ name: 'In parts' })
  const recurring = { interval: 'month' } as const
  const price = await stripe.prices.create({ product, currency: 'usd', unit_amount: 1200, recurring })
  const { id } = await stripe.subscriptions.create({ customer, items: [{ price: price.id }] })
  const intents: string[] = []
  for (let n = 0; n < 12; n++) {
    const paid = { customer, payment_method, amount: 100, ago_s: 60 }
    intents.push((await simulator.control<{ id: string }>('/payments', paid)).id)
    await refreshed('payment_intent.succeeded', { object: 'payment_intent', id: intents[n] })
  }
  const [invoice] = (await stripe.invoices.list({ customer, expand: ['data.payments'] })).data
  const first = invoice!.payments!.data[0]!
  const data = intents.map((payment_intent, n) => ({
    ...{ ...first, id: `inpay_${n}`, payment: { type: 'payment_intent', payment_intent } },
  }))
  await simulator.control('/objects', { objects: [{ ...invoice, payments: { ...invoice!.payments, data } }] })
  // In the form of an old version of Stripe's API, which is that of the account.
  await refreshed('invoice.paid', { object: 'invoice', id: invoice!.id, subscription: id })
  const linked = await events.app.db.query(
    'select from transactions where project_id = $1 and profile_id = $2 and price = 100 and subscription_id = $3',
    [PROJECT, customer, id],
  )
  assert.equal(linked.length, 12)
})

test('a key that Stripe refuses fails the import with a sentence, and starting it again continues it', async () => {
  await connect('wrong', 'sk_live_000000000000')
  await admin.call('POST', path('wrong'), { external_id_key: 'user_id' })
  const stop = carryOutImports(events.app)
  await until('the failure', async () => (await status('wrong')) === 'failed')
  await stop()
  const { body } = await admin.call('GET', path('wrong'))
  assert.match(body.error, /^Stripe rejects the secret key/)
  assert.deepEqual(await checkImports(events.app.db), [
    {
      project_id: 'shop',
      check: 'imports',
      level: 'failed',
      message: `The import of the merchant account wrong into the project ${PROJECT}: ${body.error}`,
      fix: `Then continue it: tundish stripe-import start wrong --project ${PROJECT} --external-id-key user_id`,
    },
  ])
})

test('an account is read with the key that replaces the one before, and no longer once it is disconnected', async () => {
  const keys = ['sk_test_rotated0001', 'sk_test_rotated0002']
  const account = `/organizations/${ORGANIZATION}/merchant-accounts/stripe/rotated`
  const connectWith = async (secret_key: string) =>
    assert.equal((await admin.call('POST', `${account}/connect`, { sandbox: true, secret_key })).status, 200)
  await connectWith(keys[0]!)
  let laterMs = 0
  const { clock } = events.app
  const app = { ...events.app, clock: { ...clock, monotonicMs: () => clock.monotonicMs() + laterMs } }
  const name = { organizationId: ORGANIZATION, merchantId: 'rotated' }
  const source = await openSource(app, name, new AbortController().signal)
  const read = async () => (await source.page('/v1/customers', {})).data.length
  assert.ok((await read()) > 0)
  await connectWith(keys[1]!)
  await simulator.control('/keys/revoke', { key: keys[0]! })
  assert.ok((await Promise.all([read(), read()])).every(Boolean), 'with the new key')
  assert.equal((await admin.call('POST', `${account}/disconnect`)).status, 200)
  laterMs = 1000
  await assert.rejects(read(), /"rotated" is no longer connected to Stripe/)
  source.close()
})

/** A clock that pauses for some milliseconds at most. */
function impatient() {
  const { clock } = events.app
  return { ...clock, sleep: (ms: number, signal?: AbortSignal) => clock.sleep(Math.min(ms, 10), signal) }
}

/** Serves what the simulator responds, which `look` can change. */
function passOn(t: TestContext, look: (url: string, body: Json) => void): Promise<string> {
  return serveInPlace(t, async (request, response) => {
    const { authorization = '' } = request.headers
    const passed = await fetch(simulator.url + request.url, { headers: { authorization } })
    const body = (await passed.json()) as Json
    look(request.url!, body)
    response.writeHead(passed.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  })
}

test('an outage of Stripe does not end an import that follows an account, and is reported while it lasts', async (t) => {
  await connect('outage', TEST_KEY)
  await admin.call('POST', path('outage'), { follow: true })
  const { db } = events.app
  t.after(carryOutImports({ ...events.app, clock: impatient() }))
  const findOutage = async () => (await checkImports(db)).find(({ message }) => message.includes(' outage '))
  await until('everything read', async () => (await status('outage')) === 'following')
  assert.equal(await findOutage(), undefined)
  await simulator.control('/faults', { method: 'GET', path: '/v1/events', kind: 'error_before', times: 1_000_000 })
  await until('the outage', async () => (await admin.call('GET', path('outage'))).body.error !== null)
  const finding = await findOutage()
  assert.equal(finding?.level, 'warning')
  assert.match(finding.message, /: Stripe has not been readable for some minutes/)
  assert.equal(await status('outage'), 'following')
  await simulator.control('/faults/clear')
  const { customer } = await savedCard(simulator.client())
  await until('the new customer', async () => (await profile(customer)) !== undefined)
  await until('no error', async () => (await admin.call('GET', path('outage'))).body.error === null)
  await admin.call('DELETE', path('outage'))
})

test('after an outage in the midst of many changes only the others are read again', async (t) => {
  await admin.call('DELETE', path())
  const read: string[] = []
  const stripeApiUrl = await passOn(t, (url) => read.push(url))
  await connect('midst', TEST_KEY)
  await admin.call('POST', path('midst'), { follow: true })
  const app = { ...events.app, clock: impatient(), config: { ...events.app.config, stripeApiUrl } }
  const stop = carryOutImports(app)
  await until('everything read', async () => (await status('midst')) === 'following')
  await stop()
  const { customers } = simulator.client()
  const ids: string[] = []
  for (let n = 0; n < 6; n += 1) ids.push((await customers.create({ phone: '+15550' })).id)
  // The newest are read first.
  const failing = ids.slice(0, 3)
  const others = ids.slice(3)
  const fault = { method: 'GET', kind: 'error_before', times: 1_000_000 }
  await simulator.control('/faults', { ...fault, path: `/v1/customers/(${failing.join('|')})` })
  read.length = 0
  t.after(carryOutImports(app))
  await until('the outage', async () => (await admin.call('GET', path('midst'))).body.error !== null)
  await simulator.control('/faults/clear')
  await until('the rest', async () => (await profile(ids[0]!)) !== undefined)
  const isOf = (some: string[]) => (url: string) => some.some((id) => url.startsWith(`/v1/customers/${id}`))
  assert.equal(read.filter(isOf(others)).length, others.length)
  // The first one for some minutes, and the second one for seconds.
  const run = read.slice(read.findIndex(isOf(failing)))
  const end = run.findIndex((url) => url.startsWith('/v1/events?'))
  assert.equal(run.slice(0, end).filter(isOf(failing)).length, 13)
  await admin.call('DELETE', path('midst'))
})

test('a change that was stored before an outage, and that a failover has lost, is read again', async (t) => {
  await connect('both', TEST_KEY)
  await admin.call('POST', path('both'), { follow: true })
  const app = { ...events.app, clock: impatient() }
  const stop = carryOutImports(app)
  await until('everything read', async () => (await status('both')) === 'following')
  await stop()
  const { customers } = simulator.client()
  const failing = await customers.create({})
  await simulator.control('/faults', {
    ...{ method: 'GET', kind: 'error_before', times: 1_000_000 },
    path: `/v1/customers/${failing.id}`,
  })
  const { id } = await customers.create({ email: 'both@example.com' })
  t.after(carryOutImports(app))
  const isStored = async () => (await profile(id))?.email === 'both@example.com'
  await until('the other one', isStored)
  await until('the failure', async () => (await admin.call('GET', path('both'))).body.error !== null)
  await betweenRuns('both', async (query) => {
    await query(FORGET, [PROJECT, id])
    await query(`update stripe_imports set updated_at = updated_at - interval '1 hour' where psp_merchant_id = 'both'`)
  })
  await until('it again', isStored)
  await simulator.control('/faults/clear')
  await admin.call('DELETE', path('both'))
})

test('imports of two large accounts leave a third one its turn, and continue where they were', async (t) => {
  const begun: string[] = []
  let customers = 0
  const stripeApiUrl = await serveInPlace(t, async (request, response) => {
    const key = request.headers.authorization!.replace('Bearer ', '')
    const url = new URL(request.url!, simulator.url)
    const isEndless = key !== TEST_KEY && url.pathname === '/v1/customers'
    if (isEndless && !url.searchParams.has('starting_after')) begun.push(key)
    if (isEndless) url.searchParams.delete('starting_after')
    const passed = await fetch(url, { headers: { authorization: `Bearer ${TEST_KEY}` } })
    const body = (await passed.json()) as Json
    if (isEndless) {
      body.has_more = true
      body.data = Array.from({ length: 100 }, () => ({ ...body.data[0], id: `cus_${++customers}` }))
    }
    response.writeHead(passed.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  })
  const large = { first: 'sk_test_large1', second: 'sk_test_large2' }
  for (const [name, key] of Object.entries({ ...large, third: TEST_KEY })) {
    await connect(name, key)
    await admin.call('POST', path(name), { follow: true })
  }
  // Each time it is read, five minutes have passed.
  let nowMs = 0
  const clock = { ...impatient(), monotonicMs: () => (nowMs += 300_000) }
  t.after(carryOutImports({ ...events.app, clock, config: { ...events.app.config, stripeApiUrl } }))
  await until('the third account', async () => (await status('third')) === 'following')
  const read = async () => (await admin.call('GET', path('first'))).body.read
  const before = await read()
  await until('more of the first account', async () => (await read()) > before)
  assert.deepEqual(begun.toSorted(), Object.values(large))
  for (const name of ['first', 'second', 'third']) await admin.call('DELETE', path(name))
})

test('an account without new events is asked for events alone', async (t) => {
  const read: string[] = []
  const stripeApiUrl = await passOn(t, (url) => read.push(url))
  await connect('quiet', TEST_KEY)
  await admin.call('POST', path('quiet'), { follow: true })
  const config = { ...events.app.config, stripeApiUrl }
  t.after(carryOutImports({ ...events.app, clock: impatient(), config }))
  await until('everything read', async () => (await status('quiet')) === 'following')
  const { customer } = await savedCard(simulator.client())
  await until('the new customer', async () => (await profile(customer)) !== undefined)
  const isQuiet = () => read.slice(-3).every((url) => url.startsWith('/v1/events?'))
  await until('nothing else to be read', isQuiet)
  await admin.call('DELETE', path('quiet'))
})

test('an event that is listed late, behind a hundred newer ones that were read, is read', async (t) => {
  let isListed = false
  const stripeApiUrl = await passOn(t, (url, body) => {
    // All of this moment, however long the test takes.
    if (url.startsWith('/v1/events?'))
      body.data = body.data
        .filter(
          ({ data }: { data: { object: { email?: string } } }) => isListed || data.object.email !== 'late@example.com',
        )
        .map((event: object) => ({
          ...event,
          created: Math.floor((performance.timeOrigin + performance.now()) / 1000),
        }))
  })
  // The clock of this machine is an hour ahead of Stripe's.
  machineSleeps(t, 3_600_000)
  await connect('late', TEST_KEY)
  await admin.call('POST', path('late'), { follow: true })
  t.after(carryOutImports({ ...events.app, config: { ...events.app.config, stripeApiUrl } }))
  await until('everything read', async () => (await status('late')) === 'following')
  const { customers } = simulator.client()
  const { id } = await customers.create({ email: 'late@example.com' })
  const other = await customers.create({})
  for (let n = 0; n <= 200; n += 1) await customers.update(other.id, { email: `${n}@example.com` })
  await until('the newer events', async () => (await profile(other.id))?.email === '200@example.com')
  assert.equal(await profile(id), undefined)
  isListed = true
  await until('the late one', async () => (await profile(id)) !== undefined)
  await admin.call('DELETE', path('late'))
})

test('changes at Stripe are read if the database began the import with a clock that is an hour ahead', async (t) => {
  await connect('ahead', TEST_KEY)
  await admin.call('POST', path('ahead'), { follow: true })
  await events.app.db.query(
    "update stripe_imports set events_since = events_since + interval '1 hour' where psp_merchant_id = 'ahead'",
  )
  t.after(carryOutImports(events.app))
  await until('everything read', async () => (await status('ahead')) === 'following')
  const { id } = await simulator.client().customers.create({ email: 'now@example.com' })
  await until('the new customer', async () => (await profile(id)) !== undefined)
  await admin.call('DELETE', path('ahead'))
})

/** One in progress would save what it has read again. */
async function betweenRuns(merchantId: string, work: (query: Query) => Promise<void>): Promise<void> {
  let held: Held | undefined
  await until('no run', async () => {
    held = await holdImport(events.app.db, { organizationId: ORGANIZATION, projectId: PROJECT, merchantId })
    return held !== undefined
  })
  await work(held!.query)
  await held!.release()
}

const FORGET =
  'update profiles set email = null, email_folded = null, source_updated_at = null where project_id = $1 and id = $2'

test('changes that a failover has lost are read again', async (t) => {
  await connect('failover', TEST_KEY)
  await admin.call('POST', path('failover'), { follow: true })
  t.after(carryOutImports(events.app))
  await until('everything read', async () => (await status('failover')) === 'following')
  const { id } = await simulator.client().customers.create({ email: 'lost@example.com' })
  const isStored = async () => (await profile(id))?.email === 'lost@example.com'
  await until('the new customer', isStored)
  await betweenRuns('failover', async (query) => {
    await query(
      `with lost as (${FORGET})
       update stripe_imports set events_since = events_since - interval '1 minute' where project_id = $1 and psp_merchant_id = 'failover'`,
      [PROJECT, id],
    )
  })
  await until('the customer again', isStored)
  await admin.call('DELETE', path('failover'))
})

test('an account whose events Stripe no longer keeps is read again, without webhooks, and then followed', async (t) => {
  await admin.call('DELETE', path())
  const { quiet, app, runUntilFollowing } = await connectQuiet(t, 'paused')
  await runUntilFollowing()
  await app.db.query(
    "update stripe_imports set events_since = db_clock() - interval '31 days' where psp_merchant_id = 'paused'",
  )
  const [customer] = (await quiet.client().customers.list({ limit: 1 })).data
  await quiet.control('/objects', { objects: [{ ...customer, email: 'changed@example.com' }] })
  const written = async () => (await app.db.query('select count(*) as n from events'))[0]!.n
  const before = await written()
  const stop = carryOutImports(app)
  await until('the change', async () => (await profile(customer!.id))!.email === 'changed@example.com')
  await until('everything read again', async () => (await status('paused')) === 'following')
  assert.equal(await written(), before)
  const later = await savedCard(quiet.client())
  await until('the new customer', async () => (await profile(later.customer)) !== undefined)
  await admin.call('DELETE', path('paused'))
  await stop()
})

test('an account that has no events for weeks is not left behind', async (t) => {
  const { app, runUntilFollowing } = await connectQuiet(t, 'weeks')
  await runUntilFollowing()
  await app.db.query(
    "update stripe_imports set events_since = db_clock() - interval '28 days' where psp_merchant_id = 'weeks'",
  )
  t.after(carryOutImports(app))
  await until('the events to be read', async () => {
    const rows = await app.db.query(
      "select from stripe_imports where psp_merchant_id = 'weeks' and events_since > db_clock() - interval '2 days'",
    )
    return rows.length === 1
  })
  await admin.call('DELETE', path('weeks'))
})

/** Starts an import of an account without events. */
async function connectQuiet(t: TestContext, merchant: string) {
  const quiet = await openStripeSimulator({ demoCustomers: 3 })
  t.after(() => quiet.cleanUp())
  const app = { ...events.app, config: { ...events.app.config, stripeApiUrl: quiet.url } }
  await connect(merchant, TEST_KEY)
  await admin.call('POST', path(merchant), { follow: true })
  const runUntilFollowing = async () => {
    const stop = carryOutImports(app)
    await until('everything read', async () => (await status(merchant)) === 'following')
    await stop()
  }
  return { quiet, app, runUntilFollowing }
}

test('an import whose connection is lost during a commit is continued', async () => {
  await admin.call('DELETE', path())
  await connect('lost', TEST_KEY)
  await admin.call('POST', path('lost'), {})
  const { db } = events.app
  let isLost = false
  const connectOnce: Db['connect'] = async () => {
    const connection = await db.connect()
    const query: Query = async (statement, params) => {
      const rows = await connection.query(statement, params)
      if (statement !== 'commit' || isLost) return rows as never
      isLost = true
      throw new Error('Connection terminated unexpectedly')
    }
    return { ...connection, query }
  }
  const stop = carryOutImports({ ...events.app, db: { ...db, connect: connectOnce } })
  await until(
    'everything read',
    async () => (await status('lost')) !== 'waiting' && (await status('lost')) !== 'running',
  )
  await stop()
  assert.deepEqual([await status('lost'), isLost], ['done', true])
})
