// Charges and refunds whose merchant account was disconnected since it was last used: nothing begins, and keys stay free.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { refund } from '../../../src/payments/billing/refund/refund.ts'
import { never, refundOf, setUpCharges } from './in-process.ts'
import { honest } from './scripted-provider.ts'

const setup = setUpCharges()
const { context, order, request } = setup

const message =
  'The saved card belongs to the payment provider "simulator", which is not set up here with the merchant account "merchant-1".'
const notSetUp = { status: 400, code: 'provider_not_set_up', message }

test('a charge: 400, the customer can be charged by another account at once, and the key is free', async () => {
  const connected = context({ merchantId: 'merchant-1', charge: never })
  // It is still open here when the charge is claimed.
  const disconnected = { ...connected, providers: { ...connected.providers, of: async () => undefined } }
  await assert.rejects(oneOffCharge(disconnected, setup.shop.id, request()), notSetUp)
  assert.equal(await order(), undefined)
  const response = await oneOffCharge(context(honest), setup.shop.id, request())
  assert.deepEqual([response.checkout_status, response.idempotent_replay], ['succeeded', false])
})

test('a refund: 400, another refund can begin, and the key is free', async () => {
  const connected = context({ ...honest, refund: never })
  const { order_id } = await oneOffCharge(connected, setup.shop.id, request())
  let asked = 0
  // It is disconnected between the check and the claim.
  const of: typeof connected.providers.of = async (...account) =>
    asked++ === 0 ? connected.providers.of(...account) : undefined
  const providers = { ...connected.providers, of }
  const asking = refundOf(setup.user, order_id)
  await assert.rejects(refund({ ...connected, providers }, setup.shop.id, asking), notSetUp)
  assert.deepEqual(await setup.db.query('select 1 from refunds where order_id = $1', [order_id]), [])
})
