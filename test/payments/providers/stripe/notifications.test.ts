// The object that each of Stripe's events is about.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readStripeEvent } from '../../../../src/payments/providers/stripe/notifications.ts'

const hintOf = (type: string, object: object) =>
  readStripeEvent({ id: 'evt_1', object: 'event', type, created: 1, data: { object } })?.hint

test('the outcome of a payment is about the charge; its creation, which is sent before it is confirmed, about nothing', () => {
  const payment = { id: 'pi_1', metadata: { tundish_order: 'order-1' } }
  const charge = { about: 'charge', orderId: 'order-1', handle: 'pi_1' }
  for (const outcome of ['succeeded', 'payment_failed', 'processing', 'canceled'])
    assert.deepEqual(hintOf(`payment_intent.${outcome}`, payment), charge)
  assert.deepEqual(hintOf('payment_intent.created', payment), { about: 'nothing' })
})

test('a card of the older API is a saved card, and what else a customer may pay with is not', () => {
  const card = { id: 'card_1', object: 'card', customer: 'cus_1' }
  for (const change of ['created', 'updated', 'expiring', 'deleted'])
    assert.deepEqual(hintOf(`customer.source.${change}`, card), { about: 'card', token: 'card_1' })
  assert.deepEqual(hintOf('customer.source.deleted', { id: 'ba_1', object: 'bank_account' }), { about: 'nothing' })
})
