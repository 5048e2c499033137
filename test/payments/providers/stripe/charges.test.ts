// What the Stripe adapter makes of Stripe's responses to charges, beyond the contract that all adapters keep.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { savedCard } from '../../../support/simulators.ts'
import { assertSettled, chargeRequest } from '../charging.ts'
import { openStripeAccount } from './stripe-account.ts'

const account = await openStripeAccount()
after(() => account.cleanUp())

const yesterday = () => new Date(Date.now() - 86_400_000).toISOString()

test('a card is charged with the customer it is attached to, which is returned', async () => {
  const { customer, payment_method } = await savedCard(account.stripe)
  const request = chargeRequest(payment_method)
  const response = await account.charge(request)
  assertSettled(response, 'succeeded')
  assert.equal(response.providerCustomer, customer)
  const intent = await account.stripe.paymentIntents.retrieve(response.details.psp_transaction_id ?? '')
  assert.equal(intent.customer, customer)
  assert.deepEqual(intent.metadata, { tundish_order: request.reference, tundish_key: request.key })
  assert.deepEqual(pick(response.details), {
    psp_status: 'succeeded',
    network: 'visa',
    pm_data_last4: '4242',
    pm_data_expiration_date: '12/2034',
    pm_data_bin_account_funding_type: 'credit',
    pm_data_bin_issuer_country_code: 'US',
  })
})

function pick(details: object) {
  const names = ['psp_status', 'network', 'pm_data_last4', 'pm_data_expiration_date']
  const wanted = [...names, 'pm_data_bin_account_funding_type', 'pm_data_bin_issuer_country_code']
  return Object.fromEntries(Object.entries(details).filter(([name]) => wanted.includes(name)))
}

test('failed for a card that the account does not have, and nothing is left at Stripe', async () => {
  const request = chargeRequest('pm_nowhere')
  const response = await account.charge(request)
  assertSettled(response, 'failed')
  assert.deepEqual([response.details.psp_reason_code, response.reference], ['resource_missing', request.reference])
  assert.deepEqual(await account.lookUp(request), { outcome: 'not_found' })
})

test('failed for the card of another customer, with the reason of Stripe', async () => {
  const [mine, other] = [await savedCard(account.stripe), await savedCard(account.stripe)]
  const response = await account.charge(chargeRequest(mine.payment_method, { providerCustomer: other.customer }))
  assertSettled(response, 'failed')
  assert.equal(response.details.psp_reason_code, 'payment_method_customer_mismatch')
})

for (const [card, hard] of [
  ['pm_card_chargeDeclined', 'soft'],
  ['pm_card_chargeDeclinedInsufficientFunds', 'soft'],
  ['pm_card_chargeDeclinedExpiredCard', 'soft'],
  ['pm_card_chargeDeclinedLostCard', 'hard'],
  ['pm_sim_decline_pickup_card', 'hard'],
  ['pm_sim_decline_do_not_honor', 'soft'],
] as const) {
  test(`a decline of ${card} is ${hard}, and the payment is cancelled, so that it can never be confirmed`, async () => {
    const request = chargeRequest(card)
    const response = await account.charge(request)
    assertSettled(response, 'failed')
    assert.equal(response.details.psp_reason_decline_type, hard)
    const { status } = await account.stripe.paymentIntents.retrieve(account.withHandle(request).handle ?? '')
    assert.equal(status, 'canceled')
  })
}

test('failed with authentication_required for a payment that waits for the customer, which is cancelled', async () => {
  const request = chargeRequest('pm_card_authenticationRequired')
  const prepared = await account.provider.prepare(request)
  assert.ok(prepared.outcome === 'prepared')
  await account.stripe.paymentIntents.confirm(prepared.handle)
  const response = await account.provider.lookUp({ ...request, handle: prepared.handle })
  assertSettled(response, 'failed')
  assert.equal(response.details.psp_reason_code, 'authentication_required')
  assert.equal((await account.stripe.paymentIntents.retrieve(prepared.handle)).status, 'canceled')
})

test('unknown while a payment is processing, then succeeded', async () => {
  const request = chargeRequest('pm_sim_processing_60000ms')
  assert.deepEqual(await account.charge(request), { outcome: 'unknown', why: 'the payment is processing' })
  assert.equal((await account.refuse(request)).outcome, 'unknown')
  await account.control('/clock', { advance_ms: 60_000 })
  assertSettled(await account.lookUp(request), 'succeeded')
})

test('not begun for wrong credentials, for too many calls and for a refused connection', async () => {
  const request = chargeRequest('pm_card_visa')
  const wrong = await account.adapter({ secretKey: 'sk_test_revoked!' }).prepare(request)
  assert.deepEqual(wrong, {
    outcome: 'not_begun',
    why: 'returned status 401 invalid_request_error',
    cause: 'credentials',
  })
  const busy = await account.charge(chargeRequest('pm_sim_prepare_busy'))
  assert.deepEqual(busy, { outcome: 'not_begun', why: 'returned status 429 rate_limit', cause: 'busy' })
  const nowhere = await account.adapter({ apiUrl: 'http://127.0.0.1:9' }).prepare(request)
  assert.deepEqual(nowhere, {
    outcome: 'not_begun',
    why: 'no connection was made (ECONNREFUSED)',
    cause: 'unreachable',
  })
})

for (const fault of ['drop_before', 'drop_after', 'error_before', 'error_after', 'in_use']) {
  test(`unknown for a payment whose making met ${fault}; nothing can be charged by it`, async () => {
    const request = chargeRequest(`pm_sim_prepare_${fault}`)
    assert.equal((await account.charge(request)).outcome, 'unknown')
    assert.deepEqual(await account.lookUp(request), { outcome: 'not_found' })
    assert.equal((await account.ledger()).filter(({ metadata }) => metadata['tundish_key'] === request.key).length, 0)
  })
}

for (const [fault, after] of [
  ['error_before', 'unconfirmed'],
  ['error_after', 'succeeded'],
  ['busy', 'unconfirmed'],
  ['locked', 'unconfirmed'],
  ['in_use', 'unconfirmed'],
] as const) {
  test(`unknown for a confirmation that met ${fault}; a look-up finds it ${after}`, async () => {
    const request = chargeRequest(`pm_sim_confirm_${fault}`)
    assert.equal((await account.charge(request)).outcome, 'unknown')
    assert.equal((await account.lookUp(request)).outcome, after)
    const refused = after === 'succeeded' ? 'succeeded' : 'refused'
    assert.equal((await account.refuse(request)).outcome, refused)
  })
}

test('a card that was detached between prepare and confirm: unknown, then refused', async () => {
  const { payment_method } = await savedCard(account.stripe)
  const request = chargeRequest(payment_method)
  const prepared = await account.provider.prepare(request)
  assert.ok(prepared.outcome === 'prepared')
  await account.stripe.paymentIntents.cancel(prepared.handle)
  assert.deepEqual(await account.provider.confirm({ ...request, handle: prepared.handle }), { outcome: 'refused' })
})

test('another amount than requested is returned as it was charged', async () => {
  const request = chargeRequest('pm_card_visa', { amountMinor: 2000n })
  const prepared = await account.provider.prepare(request)
  assert.ok(prepared.outcome === 'prepared')
  await account.stripe.paymentIntents.confirm(prepared.handle, { off_session: true })
  const response = await account.provider.lookUp({ ...request, amountMinor: 1n, handle: prepared.handle } as never)
  assertSettled(response, 'succeeded')
  assert.equal(response.amountMinor, 2000n)
})

test('a key that Stripe has forgotten is found by the list, so that nothing is made again', async () => {
  const { customer, payment_method } = await savedCard(account.stripe)
  const paid = chargeRequest(payment_method, { providerCustomer: customer })
  const open = chargeRequest(payment_method, { providerCustomer: customer })
  const cancelled = chargeRequest(payment_method, { providerCustomer: customer })
  assertSettled(await account.charge(paid), 'succeeded')
  const prepared = await account.provider.prepare(open)
  await account.charge({ ...cancelled, token: (await savedCard(account.stripe)).payment_method })
  const since = yesterday()
  await account.control('/clock', { advance_ms: 25 * 3_600_000 })
  const found = await account.provider.findByKey({ ...paid, cards: [{ ...paid, providerCustomer: null }] }, { since })
  assertSettled(found, 'succeeded')
  assert.equal(found.reference, paid.reference)
  assert.deepEqual(await account.provider.findByKey({ ...open, cards: [open] }, { since }), prepared)
  const unknown = chargeRequest(payment_method)
  assert.deepEqual(await account.provider.findByKey({ ...unknown, cards: [unknown] }, { since }), {
    outcome: 'not_found',
  })
})

test('of two payments of a key the one that the bank is processing counts, and the other is cancelled', async () => {
  const { customer, payment_method } = await savedCard(account.stripe, 'pm_sim_processing_60000ms')
  const request = chargeRequest(payment_method, { providerCustomer: customer })
  await account.charge(request)
  const other = await account.stripe.paymentIntents.create({
    ...{ amount: 1050, currency: 'usd', customer, payment_method, payment_method_types: ['card'] },
    metadata: { tundish_order: request.reference, tundish_key: request.key },
  })
  const find = () => account.provider.findByKey({ ...request, cards: [request] }, { since: yesterday() })
  assert.deepEqual(await find(), { outcome: 'unknown', why: 'the payment is processing' })
  assert.equal((await account.stripe.paymentIntents.retrieve(other.id)).status, 'canceled')
  await account.control('/clock', { advance_ms: 60_000 })
  assertSettled(await find(), 'succeeded')
})

test('unknown for a payment that the account does not have: its key may be of another account', async () => {
  const request = { ...chargeRequest('pm_card_visa'), handle: 'pi_elsewhere' }
  const unknown = { outcome: 'unknown', why: 'returned status 404 resource_missing' }
  assert.deepEqual(await account.provider.lookUp(request), unknown)
  assert.deepEqual(await account.provider.refuse(request), unknown)
})

test('a payment whose metadata was emptied at the dashboard is still ours by its handle', async () => {
  const request = chargeRequest('pm_card_visa')
  assertSettled(await account.charge(request), 'succeeded')
  await account.stripe.paymentIntents.update(account.withHandle(request).handle ?? '', {
    metadata: { tundish_order: '', tundish_key: '' },
  })
  const response = await account.lookUp(request)
  assertSettled(response, 'succeeded')
  assert.equal(response.reference, request.reference)
})

test('amounts are converted: 1,500 ISK, 10 MGA and 1.230 KWD are charged as such', async () => {
  for (const [currencyCode, amountMinor, sent] of [
    ['ISK', 1500n, 150_000],
    ['MGA', 1000n, 10],
    ['KWD', 1230n, 1230],
  ] as const) {
    const request = chargeRequest('pm_card_visa', { currencyCode, amountMinor })
    const response = await account.charge(request)
    assertSettled(response, 'succeeded')
    assert.deepEqual([response.amountMinor, response.currencyCode], [amountMinor, currencyCode])
    assert.equal((await account.stripe.paymentIntents.retrieve(account.withHandle(request).handle ?? '')).amount, sent)
  }
})

test('a currency that the merchant account does not offer is refused before anything is asked', () => {
  const provider = account.adapter({ currencies: ['EUR'] })
  assert.equal(
    provider.accepts({ amountMinor: 1000n, currencyCode: 'USD' }),
    'currency_code USD is not offered by the merchant account.',
  )
  assert.equal(provider.accepts({ amountMinor: 1000n, currencyCode: 'EUR' }), undefined)
})
