// Each merchant account has its own circuit: one that fails takes no charges from others.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startBilling } from '../../support/billing.ts'

const billing = await startBilling({}, { worker: false })
after(() => billing.stop())

// As many failures in a row open a circuit.
const FAILURES = 20

test('503 for the merchant account that fails, 200 for others of the same organization and of another', async () => {
  const [shop, other] = [await billing.organization(), await billing.organization()]
  const failing = await Promise.all(
    Array.from({ length: FAILURES }, () => shop.customer({ token: 'sim_drop_no_charge', merchantId: 'failing' })),
  )
  const good = await shop.customer({ merchantId: 'failing' })
  const neighbours = await Promise.all(['good', 'failing'].map((merchantId) => other.customer({ merchantId })))
  const sibling = await shop.customer({ merchantId: 'good' })
  for (const response of await Promise.all(failing.map((user) => shop.charge(user))))
    assert.equal(response.body.checkout_status, 'processing', response.text)

  const refused = await shop.charge(good)
  assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '5'], refused.text)
  for (const response of [
    await shop.charge(sibling),
    ...(await Promise.all(neighbours.map((user) => other.charge(user)))),
  ])
    assert.equal(response.body.checkout_status, 'succeeded', response.text)
})

test('503 for a merchant account that fails, after 200 for a payment that names no account', async () => {
  const shop = await billing.organization()
  const nameless = await shop.customer({ merchantId: null })
  const charged = await shop.charge(nameless)
  assert.equal(charged.body.checkout_status, 'succeeded', charged.text)
  const failing = await Promise.all(
    Array.from({ length: FAILURES }, () => shop.customer({ token: 'sim_drop_no_charge', merchantId: 'broken' })),
  )
  await Promise.all(failing.map((user) => shop.charge(user)))
  const refused = await shop.charge(await shop.customer({ merchantId: 'broken' }))
  assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '5'], refused.text)
})

test('503 for payments that name no account, when their calls fail', async () => {
  const shop = await billing.organization()
  const failing = await Promise.all(
    Array.from({ length: FAILURES }, () => shop.customer({ token: 'sim_drop_no_charge', merchantId: null })),
  )
  await Promise.all(failing.map((user) => shop.charge(user)))
  const refused = await shop.charge(await shop.customer({ merchantId: null }))
  assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '5'], refused.text)
  const named = await shop.charge(await shop.customer({ merchantId: 'good' }))
  assert.equal(named.body.checkout_status, 'succeeded', named.text)
})
