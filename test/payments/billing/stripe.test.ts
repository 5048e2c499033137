// Charges and refunds through Stripe, from the billing API to the simulator with Stripe's API.
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { settled } from '../../support/billing.ts'
import { startStripeBilling } from '../../support/stripe-billing.ts'
import { until } from '../../support/time.ts'

const billing = await startStripeBilling()
after(() => billing.stop())
const shop = await billing.shop()
afterEach(() => billing.assertSameMoney())

test('a charge succeeds at Stripe once, and its replay charges nothing', async () => {
  const { external_id, customer } = await shop.customerWithCard()
  const first = await shop.charge(external_id, { idempotency_key: 'once' })
  assert.equal(first.body.checkout_status, 'succeeded', first.text)
  const again = await shop.charge(external_id, { idempotency_key: 'once' })
  assert.deepEqual(again.body, { ...first.body, idempotent_replay: true })
  const [charge, ...others] = await billing.charged(first.body.order_id)
  assert.equal(others.length, 0)
  const intent = await billing.client.paymentIntents.retrieve(charge!.payment_intent!)
  assert.deepEqual([intent.amount, intent.currency, intent.customer], [1050, 'usd', customer])
  const [row] = await shop.report({ order_id: first.body.order_id })
  assert.equal(row.psp_transaction_id, intent.id)
  assert.equal(row.pm_data_last4, '4242')
})

const declines: [token: string, sentence: string, code: string][] = [
  ['pm_card_chargeDeclined', 'Your card was declined.', 'generic_decline'],
  ['pm_card_chargeDeclinedInsufficientFunds', 'Your card has insufficient funds.', 'insufficient_funds'],
  ['pm_card_chargeDeclinedExpiredCard', 'Your card has expired.', 'expired_card'],
  ['pm_card_chargeDeclinedLostCard', 'Your card was declined.', 'lost_card'],
  ['pm_sim_decline_pickup_card', 'Your card was declined.', 'pickup_card'],
  ['pm_sim_decline_fraudulent', 'Your card was declined.', 'fraudulent'],
  [
    'pm_sim_decline_try_again_later',
    'Your bank could not process the payment. Please try again later.',
    'try_again_later',
  ],
  [
    'pm_sim_decline_withdrawal_count_limit_exceeded',
    "Your card's limit is reached. Please use another card.",
    'withdrawal_count_limit_exceeded',
  ],
  [
    'pm_sim_decline_currency_not_supported',
    'This payment is not possible with your card. Please use another card.',
    'currency_not_supported',
  ],
  ['pm_sim_decline_incorrect_cvc', 'Your card can no longer be used. Please use another card.', 'incorrect_cvc'],
  ['pm_sim_decline_expired_payment_method', 'Your card has expired.', 'expired_payment_method'],
  [
    'pm_sim_decline_payment_intent_action_required',
    'Your bank asks you to confirm the payment, which is not possible here. Please use another card.',
    'payment_intent_action_required',
  ],
  [
    'pm_sim_decline_card_decline_rate_limit_exceeded',
    'Your bank could not process the payment. Please try again later.',
    'card_decline_rate_limit_exceeded',
  ],
  [
    'pm_card_authenticationRequired',
    'Your bank asks you to confirm the payment, which is not possible here. Please use another card.',
    'authentication_required',
  ],
]
for (const [token, sentence, code] of declines) {
  test(`${token}: failed, "${sentence}"`, async () => {
    const { external_id } = await shop.customerWithCard(token)
    const { body } = await shop.charge(external_id)
    assert.deepEqual([body.checkout_status, body.failed_message_for_user], ['failed', sentence])
    assert.equal(body.action_required_token, '')
    const [row] = await shop.report({ order_id: body.order_id })
    assert.deepEqual([row.status, row.psp_reason_code], ['failed', code])
  })
}

const unknown: [token: string, end: string][] = [
  ['pm_sim_confirm_drop_after', 'succeeded'],
  ['pm_sim_confirm_error_after', 'succeeded'],
  ['pm_sim_confirm_drop_before', 'cancelled'],
  ['pm_sim_confirm_error_before', 'cancelled'],
  ['pm_sim_confirm_locked', 'cancelled'],
  ['pm_sim_prepare_drop_before', 'cancelled'],
  ['pm_sim_prepare_drop_after', 'cancelled'],
  ['pm_sim_prepare_error_after', 'cancelled'],
  ['pm_sim_confirm_late_60000ms', 'cancelled'],
]
/** All at once, because each is looked up only a second later. */
let outcomes: ReturnType<typeof settleUnknown> | undefined
const settleUnknown = () =>
  Promise.all(
    unknown.map(async ([token]) => {
      const { external_id } = await shop.customerWithCard(token)
      const charge = () => shop.charge(external_id, { idempotency_key: 'k' })
      return { body: (await charge()).body, last: (await settled(charge)).body }
    }),
  )
for (const [n, [token, end]] of unknown.entries()) {
  test(`${token}: processing, then ${end}`, async () => {
    outcomes ??= settleUnknown()
    const { body, last } = (await outcomes)[n]!
    assert.deepEqual([body.checkout_status, last.checkout_status], ['processing', end])
    await billing.stripe.control('/clock', { advance_ms: 60_000 })
    assert.equal((await billing.charged(body.order_id)).length, end === 'succeeded' ? 1 : 0)
  })
}

test('503 for a key that was turned away before anything was begun; the same key charges later', async () => {
  const { external_id } = await shop.customerWithCard()
  await billing.stripe.control('/faults', { method: 'POST', path: '/v1/payment_intents', kind: 'busy' })
  const busy = await shop.charge(external_id, { idempotency_key: 'again' })
  assert.equal(busy.status, 503, busy.text)
  assert.ok(Number(busy.headers['retry-after']) > 0)
  const { body } = await shop.charge(external_id, { idempotency_key: 'again' })
  assert.deepEqual([body.checkout_status, body.idempotent_replay], ['succeeded', false])
})

test('400 for an amount that Stripe cannot charge, and the key stays free', async () => {
  const { external_id } = await shop.customerWithCard()
  const small = await shop.charge(external_id, { amount: '0.49', idempotency_key: 'small' })
  assert.deepEqual([small.status, small.body.message], [400, 'amount must be at least 0.50 USD with Stripe.'])
  const step = await shop.charge(external_id, { amount: '1.234', currency_code: 'KWD', idempotency_key: 'small' })
  assert.equal(step.status, 400)
  const { body } = await shop.charge(external_id, { amount: '1.230', currency_code: 'KWD', idempotency_key: 'small' })
  assert.equal(body.checkout_status, 'succeeded')
})

test('a refund is made at Stripe once; a full one revokes the consumable', async () => {
  const { external_id } = await shop.customerWithCard()
  const { body: charge } = await shop.charge(external_id)
  const refund = () => shop.refund(external_id, charge.order_id, { amount: '4.00', idempotency_key: 'part' })
  const first = await refund()
  assert.deepEqual([first.body.refund_status, first.body.consumable_revoked], ['succeeded', false], first.text)
  await refund()
  const rest = await shop.refund(external_id, charge.order_id)
  assert.deepEqual([rest.body.refund_status, rest.body.consumable_revoked], ['succeeded', true], rest.text)
  const refunds = (await billing.stripe.ledger()).filter(({ type }) => type === 'refund')
  assert.equal(refunds.filter(({ metadata }) => metadata['tundish_refund'] === first.body.refund_id).length, 1)
})

test('a refund whose response was lost is found in the list', async () => {
  const { external_id } = await shop.customerWithCard('pm_sim_refund_drop_after')
  const { body: charge } = await shop.charge(external_id)
  const { body } = await shop.refund(external_id, charge.order_id)
  assert.equal(body.refund_status, 'processing')
  await until('the refund to be found', async () => {
    const [asset] = await shop.consumables(external_id)
    return asset.is_active === false
  })
})

test('charges of twenty customers at once, each sent three times, are charged once each', async () => {
  const customers = await Promise.all(Array.from({ length: 20 }, () => shop.customerWithCard()))
  const responses = await Promise.all(
    customers.flatMap(({ external_id }) =>
      Array.from({ length: 3 }, () => shop.charge(external_id, { idempotency_key: 'race' })),
    ),
  )
  for (const { status, text } of responses) assert.equal(status, 200, text)
  for (const { external_id } of customers) {
    await until('the charge to settle', async () => {
      const { body } = await shop.charge(external_id, { idempotency_key: 'race' })
      return body.checkout_status === 'succeeded'
    })
  }
})
