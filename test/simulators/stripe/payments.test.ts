// Payments in the Stripe dialect, through Stripe's own client: states, declines, idempotency keys, faults, refunds, disputes.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Stripe } from 'stripe'
import { openStripeSimulator, savedCard } from '../../support/simulators.ts'

const simulator = await openStripeSimulator()
after(() => simulator.cleanUp())
const stripe = simulator.client()

const offSession = { off_session: true, error_on_requires_action: true } as const

async function prepare(token?: string, more: Partial<Stripe.PaymentIntentCreateParams> = {}, idempotencyKey?: string) {
  const card = await savedCard(stripe, token)
  const params = { amount: 1050, currency: 'usd', payment_method_types: ['card'], ...card, ...more }
  return stripe.paymentIntents.create(params, idempotencyKey ? { idempotencyKey } : {})
}

test('a payment is created unconfirmed, confirmed once, and found with its charge', async () => {
  const made = await prepare('pm_card_visa', { metadata: { tundish_order: 'order-1' } })
  assert.equal(made.status, 'requires_confirmation')
  const paid = await stripe.paymentIntents.confirm(made.id, offSession)
  assert.equal(paid.status, 'succeeded')
  assert.equal(paid.amount_received, 1050)
  const found = await stripe.paymentIntents.retrieve(made.id, { expand: ['latest_charge'] })
  const charge = found.latest_charge as Stripe.Charge
  assert.equal(charge.payment_method_details?.card?.last4, '4242')
  assert.equal(charge.metadata['tundish_order'], 'order-1')
  await assert.rejects(stripe.paymentIntents.confirm(made.id, offSession), { code: 'payment_intent_unexpected_state' })
  await assert.rejects(stripe.paymentIntents.cancel(made.id), { code: 'payment_intent_unexpected_state' })
})

const declines: [token: string, code: string, decline: string, advice: string | undefined][] = [
  ['pm_card_chargeDeclined', 'card_declined', 'generic_decline', undefined],
  ['pm_card_visa_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds', 'try_again_later'],
  ['pm_card_chargeDeclinedLostCard', 'card_declined', 'lost_card', 'do_not_try_again'],
  ['pm_card_chargeDeclinedExpiredCard', 'expired_card', 'expired_card', 'confirm_card_data'],
  ['pm_card_chargeDeclinedProcessingError', 'processing_error', 'processing_error', 'try_again_later'],
  ['pm_card_authenticationRequired', 'authentication_required', 'authentication_required', undefined],
  ['pm_sim_decline_do_not_honor', 'card_declined', 'do_not_honor', undefined],
]
for (const [token, code, decline, advice] of declines) {
  test(`402 for ${token}, and the payment can be cancelled`, async () => {
    const made = await prepare(token)
    const error = await rejection(stripe.paymentIntents.confirm(made.id, offSession))
    assert.ok(error instanceof Stripe.errors.StripeCardError)
    assert.deepEqual([error.statusCode, error.code, error.decline_code], [402, code, decline])
    assert.equal(error.payment_intent?.status, 'requires_payment_method')
    const found = await stripe.paymentIntents.retrieve(made.id)
    assert.equal(found.last_payment_error?.decline_code, decline)
    assert.equal(found.last_payment_error?.advice_code, advice)
    assert.equal((await stripe.paymentIntents.cancel(made.id, { cancellation_reason: 'abandoned' })).status, 'canceled')
    await assert.rejects(stripe.paymentIntents.confirm(made.id), { code: 'payment_intent_unexpected_state' })
  })
}

test('requires_action where the customer could be asked', async () => {
  const made = await prepare('pm_card_authenticationRequired')
  assert.equal((await stripe.paymentIntents.confirm(made.id)).status, 'requires_action')
})

test('an idempotency key repeats its outcome, refuses other parameters, and is forgotten after 24 hours', async () => {
  const card = await savedCard(stripe)
  const params = { amount: 500, currency: 'eur', ...card }
  const create = (amount = 500) => stripe.paymentIntents.create({ ...params, amount }, { idempotencyKey: 'once' })
  const first = await create()
  const again = await create()
  assert.equal(again.id, first.id)
  assert.equal(again.lastResponse.headers['idempotent-replayed'], 'true')
  await assert.rejects(create(501), { type: 'StripeIdempotencyError', statusCode: 400 })
  await simulator.control('/clock', { advance_ms: 24 * 3_600_000 - 60_000 })
  assert.equal((await create()).id, first.id)
  await simulator.control('/clock', { advance_ms: 60_000 })
  assert.notEqual((await create()).id, first.id)
})

test('a declined confirmation is repeated for its key, also after a restart', async () => {
  const made = await prepare('pm_card_chargeDeclined')
  const confirm = () => stripe.paymentIntents.confirm(made.id, offSession, { idempotencyKey: 'declined' })
  const first = await rejection(confirm())
  await simulator.stop()
  await simulator.start()
  assert.equal((await rejection(confirm())).charge, first.charge)
})

test('401 for another mode, a revoked key and none', async () => {
  for (const key of ['sk_live_0000', 'rubbish']) {
    await assert.rejects(simulator.client(key).balance.retrieve(), { type: 'StripeAuthenticationError' })
  }
  assert.equal((await simulator.client('rk_test_gone').balance.retrieve()).livemode, false)
  await simulator.control('/keys/revoke', { key: 'rk_test_gone' })
  await assert.rejects(simulator.client('rk_test_gone').balance.retrieve(), { type: 'StripeAuthenticationError' })
})

test('400 for a parameter that is unknown, missing or not an integer', async () => {
  const card = await savedCard(stripe)
  const wrong: [object, string][] = [
    [{ amount: 500, currency: 'usd', colour: 'red' }, 'parameter_unknown'],
    [{ currency: 'usd' }, 'parameter_missing'],
    [{ amount: '5.5', currency: 'usd' }, 'parameter_invalid_integer'],
    [{ amount: 49, currency: 'usd' }, 'amount_too_small'],
    [{ amount: 100_000_000, currency: 'usd' }, 'amount_too_large'],
  ]
  for (const [params, code] of wrong) {
    await assert.rejects(stripe.paymentIntents.create({ ...card, ...params } as never), { statusCode: 400, code })
  }
})

test('a late confirmation charges, unless the payment was cancelled in between; its key is in use until then', async () => {
  const [coming, stopped] = [await prepare('pm_sim_confirm_late_60000ms'), await prepare('pm_sim_confirm_late_60000ms')]
  const confirm = (id: string) => stripe.paymentIntents.confirm(id, offSession, { idempotencyKey: `late-${id}` })
  await assert.rejects(confirm(coming.id))
  await assert.rejects(confirm(stopped.id))
  await assert.rejects(confirm(coming.id), { statusCode: 409 })
  await stripe.paymentIntents.cancel(stopped.id)
  await simulator.control('/clock', { advance_ms: 60_000 })
  assert.equal((await stripe.paymentIntents.retrieve(coming.id)).status, 'succeeded')
  assert.equal((await stripe.paymentIntents.retrieve(stopped.id)).status, 'canceled')
  const charged = (await simulator.ledger()).map(({ payment_intent }) => payment_intent)
  assert.ok(charged.includes(coming.id) && !charged.includes(stopped.id))
})

test('refunds are bounded by the charge, and a failed one gives its amount back', async () => {
  const { id } = await paid()
  const part = await stripe.refunds.create({ payment_intent: id, amount: 1000, metadata: { tundish_refund: 'r-1' } })
  assert.equal(part.status, 'succeeded')
  await assert.rejects(stripe.refunds.create({ payment_intent: id, amount: 51 }), { param: 'amount' })
  await simulator.control(`/refunds/${part.id}/fail`)
  assert.equal((await stripe.refunds.retrieve(part.id)).status, 'failed')
  assert.equal((await stripe.refunds.create({ payment_intent: id })).amount, 1050)
  await assert.rejects(stripe.refunds.create({ payment_intent: id }), { code: 'charge_already_refunded' })
  const listed = await stripe.refunds.list({ payment_intent: id })
  assert.deepEqual(listed.data.map(({ status }) => status).sort(), ['failed', 'succeeded'])
})

test('a dispute takes the money, and gives it back when it is won', async () => {
  const { latest_charge: charge, id } = await paid()
  const { id: dispute } = await simulator.control<{ id: string }>('/disputes', { charge })
  assert.equal((await stripe.disputes.list({ payment_intent: id })).data[0]?.status, 'needs_response')
  await assert.rejects(stripe.refunds.create({ payment_intent: id }), { code: 'charge_disputed' })
  await simulator.control(`/disputes/${dispute}/close`, { status: 'won' })
  const closed = await stripe.disputes.retrieve(dispute)
  assert.equal(closed.status, 'won')
  assert.equal(
    closed.balance_transactions.reduce((sum, { net }) => sum + net, 0),
    0,
  )
})

async function paid() {
  const made = await prepare()
  return stripe.paymentIntents.confirm(made.id, offSession)
}

async function rejection(promise: Promise<unknown>): Promise<Stripe.errors.StripeError> {
  try {
    await promise
  } catch (error) {
    return error as Stripe.errors.StripeError
  }
  return assert.fail('It was not rejected.')
}
