// An erasure reaches Stripe where the organization asks for it: cards detached, the customer emptied or deleted, until it is done.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { setOrganization } from '../../../src/core/tenants/tenants.ts'
import { checkAccounts } from '../../../src/operator/doctor/payments.ts'
import { addPayment } from '../../support/billing.ts'
import { type Line, line, textOf } from '../../support/imports.ts'
import { savedCard } from '../../support/simulators.ts'
import { MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'
import { until } from '../../support/time.ts'

const billing = await startStripeBilling()
after(() => billing.stop())
const { stripe } = billing
const shop = await billing.shop()

let made = 0
/** A profile whose card is saved at Stripe. */
async function person() {
  const profileId = `pro_${++made}`
  const { external_id: user, ...card } = await shop.customerWithCard('pm_card_visa', profileId)
  return { ...card, profileId, user }
}

async function erase(profileId: string) {
  const body = { profile_ids: [profileId] }
  const response = await billing.server.api('/profiles/anonymize', { key: shop.projectKey, method: 'POST', body })
  assert.equal(response.status, 200, response.text)
}

const receipt = (profileId: string) => billing.server.admin(`/projects/${shop.projectId}/erasures/${profileId}`)

const isDone = async (profileId: string) => (await receipt(profileId)).body.at_provider[0]?.['status'] === 'done'
const set = (eraseAtProvider: 'off' | 'on' | 'delete') => setOrganization(billing.db, shop.id, { eraseAtProvider })
const customerAt = (id: string) => stripe.client().customers.retrieve(id)

test('off: the customer at Stripe stays, and so does the card', async () => {
  await set('off')
  const { customer, profileId, user } = await person()
  await erase(profileId)
  assert.deepEqual((await receipt(profileId)).body.at_provider, [])
  assert.equal(((await customerAt(customer)) as { email: string }).email, 'grace@example.com')
  assert.equal((await shop.charge(user)).body.checkout_status, 'succeeded')
})

test('on: the card is detached, the customer emptied, and nothing is charged from then on', async () => {
  await set('on')
  const { customer, profileId, user } = await person()
  await erase(profileId)
  assert.equal((await shop.charge(user)).body.message, 'The customer has no saved card.')
  await until('it to be erased at Stripe', () => isDone(profileId))
  const there = (await customerAt(customer)) as { email: string | null; name: string | null }
  assert.deepEqual([there.email || null, there.name || null], [null, null])
  const cards = await stripe.client().customers.listPaymentMethods(customer)
  assert.deepEqual(cards.data, [])
})

test('on: a payment after the erasure, with a new customer and card, can be charged; one with a known customer cannot', async () => {
  await set('on')
  const { customer, profileId, user } = await person()
  await billing.db.query('update report_transactions set psp_customer_id = $2 where external_id = $1', [user, customer])
  await erase(profileId)
  const pay = async (token: string, psp_customer_id: string) => {
    const id = await addPayment(billing.db, shop.id, user, { psp: 'stripe', merchantId: MERCHANT, token })
    await billing.db.query(
      'update report_transactions set psp_date = db_clock(), psp_customer_id = $2 where order_id = $1',
      [id, psp_customer_id],
    )
  }
  const back = await savedCard(stripe.client())
  await pay(back.payment_method, customer)
  assert.equal((await shop.charge(user)).body.message, 'The customer has no saved card.')
  await pay(back.payment_method, back.customer)
  assert.equal((await shop.charge(user)).body.checkout_status, 'succeeded')
})

test('delete: the customer at Stripe is deleted; the receipt says so', async () => {
  await set('delete')
  const { customer, payment_method, profileId } = await person()
  await erase(profileId)
  await until('it to be erased at Stripe', () => isDone(profileId))
  assert.equal((await customerAt(customer)).deleted, true)
  const [row] = (await receipt(profileId)).body.at_provider
  assert.deepEqual([row!['target'], row!['how'], row!['why']], [payment_method, 'delete', null])
})

test('a provider that fails is asked again, until it is done', async () => {
  await set('on')
  const { profileId } = await person()
  await stripe.control('/faults', { method: 'GET', path: '/v1/payment_methods/.*', kind: 'error_before', times: 1 })
  await stripe.control('/faults', { method: 'POST', path: '/v1/customers/.*', kind: 'drop_after', times: 1 })
  await erase(profileId)
  // Not minutes later.
  const hurry = () =>
    billing.db.query('update provider_erasures set next_attempt_at = db_clock() where attempts = 2 and done_at is null')
  await until('it to be erased at Stripe', async () => (await hurry()) && isDone(profileId))
  const [row] = await billing.db.query('select attempts from provider_erasures where profile_id = $1', [profileId])
  assert.ok(Number(row!.attempts) >= 2, row!.attempts!)
})

test('the receipt names the permission that a restricted key lacks', async (t) => {
  t.after(() => stripe.control('/faults/clear'))
  await set('on')
  const { profileId } = await person()
  const forbidden = { kind: 'forbidden', permission: 'rak_customer_write', times: 1000 }
  await stripe.control('/faults', { method: 'POST', path: '/v1/customers/.*', ...forbidden })
  await erase(profileId)
  const why = async () => (await receipt(profileId)).body.at_provider[0]?.['why']
  await until('an attempt', async () => Boolean(await why()))
  assert.equal(await why(), 'the key lacks the permission "rak_customer_write"')
})

for (const [how, method] of [
  ['on', 'POST'],
  ['delete', 'DELETE'],
] as const) {
  test(`${how}: an erasure that is broken off between two calls leaves nothing of the customer`, async () => {
    await set(how)
    const { customer, profileId } = await person()
    await stripe.client().paymentMethods.attach('pm_card_mastercard', { customer })
    await stripe.control('/faults', { method, path: '/v1/customers/.*', kind: 'error_before', times: 1 })
    await stripe.control('/faults', { method: 'POST', path: '/v1/payment_methods/.*', kind: 'error_before', times: 1 })
    await erase(profileId)
    // Not minutes later.
    const hurry = () =>
      billing.db.query(
        `update provider_erasures set next_attempt_at = db_clock(), why = null
         where profile_id = $1 and why is not null and done_at is null`,
        [profileId],
      )
    await until('it to be erased at Stripe', async () => (await hurry()) && isDone(profileId))
    const there = (await customerAt(customer)) as { deleted?: boolean; email?: string | null; name?: string | null }
    if (how === 'delete') return assert.equal(there.deleted, true)
    assert.deepEqual([there.email || null, there.name || null], [null, null])
    assert.deepEqual((await stripe.client().customers.listPaymentMethods(customer)).data, [])
  })
}

const emailAt = async (id: string) => ((await customerAt(id)) as { email: string | null }).email || null
const comesBack = (customer: string) => stripe.client().customers.update(customer, { email: 'again@example.com' })

/** Imports a payment of a new customer with a profile. */
async function imported(profileId: string, payment: object) {
  const external_id = `of-${profileId}`
  const lines = [
    line.profile({ id: profileId }),
    line.customer({ external_id, profile_id: profileId }),
    line.payment({ external_id, order_id: randomUUID(), psp: 'stripe', psp_merchant_id: MERCHANT, ...payment }),
  ]
  await importLines(lines)
}

async function importLines(lines: Line[]) {
  const headers = ['Content-Type', 'application/x-ndjson']
  const call = { method: 'POST', body: textOf(lines), headers }
  const { status, body } = await billing.server.admin(`/projects/${shop.projectId}/import`, call)
  assert.deepEqual([status, body['written']], [200, lines.length], JSON.stringify(body))
}

test('a person who comes back as the same customer of Stripe is erased there again, each time', async () => {
  await set('on')
  const { customer, profileId } = await person()
  await erase(profileId)
  await until('it to be erased at Stripe', () => isDone(profileId))
  await comesBack(customer)
  await erase(profileId)
  await until('the same profile', async () => (await emailAt(customer)) === null && isDone(profileId))
  await comesBack(customer)
  const next = `${profileId}_again`
  await imported(next, { psp_customer_id: customer })
  await erase(next)
  await until('the next profile', async () => (await emailAt(customer)) === null && isDone(next))
  // Both receipts are complete.
  assert.ok(await isDone(profileId))
})

test('a payment whose card was detached leads to the customer; without one the receipt and the doctor say so', async () => {
  await set('on')
  const { customer, payment_method } = await savedCard(stripe.client())
  const params = { amount: 1000, currency: 'usd', customer, payment_method, confirm: true, off_session: true }
  const { latest_charge } = await stripe.client().paymentIntents.create(params)
  await stripe.client().paymentMethods.detach(payment_method)
  await imported('by-charge', { payment_method_token: payment_method, psp_transaction_id: latest_charge })
  await erase('by-charge')
  await until('it to be erased at Stripe', () => isDone('by-charge'))
  assert.equal(await emailAt(customer), null)

  const { customer: lost, payment_method: card } = await savedCard(stripe.client())
  await stripe.client().paymentMethods.detach(card)
  await imported('by-nothing', { payment_method_token: card })
  await erase('by-nothing')
  const status = async () => (await receipt('by-nothing')).body.at_provider[0]
  await until('the end of the search', async () => (await status())?.['status'] !== 'pending')
  assert.equal((await status())!['status'], 'unreachable')
  assert.match(String((await status())!['why']), /^no customer is found there/)
  assert.equal(await emailAt(lost), 'grace@example.com')
  const findings = await checkAccounts(billing.db)
  assert.ok(findings.some(({ message }) => message === '1 erasure at payment providers found no customer there.'))
})

test('a payment without a card leads to the customer', async () => {
  await set('on')
  const { customer, payment_method } = await savedCard(stripe.client())
  const params = { amount: 1000, currency: 'usd', customer, payment_method, confirm: true, off_session: true }
  const { id } = await stripe.client().paymentIntents.create(params)
  await imported('by-intent', { psp_transaction_id: id })
  await erase('by-intent')
  await until('it to be erased at Stripe', () => isDone('by-intent'))
  assert.equal(await emailAt(customer), null)
})

test('an imported customer without a payment is erased, also as the customer of the organization’s own profile', async () => {
  await set('on')
  const made = async (user_id: string) =>
    (await stripe.client().customers.create({ email: 'ida@example.com', metadata: { user_id } })).id
  const [alone, linked] = [await made('user-42'), await made('user-43')]
  await importLines([line.profile({ id: 'own' }), line.customer({ external_id: 'user-43', profile_id: 'own' })])
  const path = `/projects/${shop.projectId}/stripe-imports/${MERCHANT}`
  await billing.server.admin(path, { method: 'POST', body: { external_id_key: 'user_id' } })
  await until('the import', async () => (await billing.server.admin(path)).body['status'] === 'done')
  for (const [profileId, customer] of [
    [alone, alone],
    ['own', linked],
    // The profile of the import, whose billing customer is linked to the other one.
    [linked, linked],
  ] as const) {
    await comesBack(customer)
    await erase(profileId)
    await until(`${profileId} to be erased at Stripe`, async () => (await emailAt(customer)) === null)
    await until('its receipt', () => isDone(profileId))
  }
})

test('404 for a profile that was not erased, in the words of one that does not exist', async () => {
  const { profileId } = await person()
  assert.equal((await receipt(profileId)).status, 404)
  assert.equal((await receipt('nobody')).status, 404)
})
