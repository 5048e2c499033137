// An erasure reaches Stripe where the organization asks for it: cards detached, the customer emptied or deleted, until it is done.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setOrganization } from '../../../src/core/tenants/tenants.ts'
import { until } from '../../support/cluster.ts'
import { startStripeBilling } from '../../support/stripe-billing.ts'

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
  const answer = await billing.server.api('/profiles/anonymize', { key: shop.projectKey, method: 'POST', body })
  assert.equal(answer.status, 200, answer.text)
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

test('on: the card is detached, the customer emptied, and nothing is charged any more', async () => {
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

test('404 for a profile that was not erased, in the words of one that does not exist', async () => {
  const { profileId } = await person()
  assert.equal((await receipt(profileId)).status, 404)
  assert.equal((await receipt('nobody')).status, 404)
})
