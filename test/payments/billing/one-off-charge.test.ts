// A custom charge and its replay through HTTP, and which saved card is charged.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addPayment, refused, startShop } from '../../support/billing.ts'

const { billing, shop } = await startShop()

describe('a charge and its replay', () => {
  test('a charge succeeds; its replay returns it and charges nothing', async () => {
    const user = await shop.customer()
    const response = await shop.charge(user, { idempotency_key: 'k' })
    assert.equal(response.status, 200, response.text)
    const { order_id, ...rest } = response.body
    assert.match(order_id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepEqual(rest, {
      action_required_token: '',
      checkout_status: 'succeeded',
      failed_message_for_user: '',
      idempotent_replay: false,
    })
    const again = await shop.charge(user, { idempotency_key: 'k' })
    assert.deepEqual(again.body, { ...response.body, idempotent_replay: true })
    const movements = await billing.ledger(order_id)
    assert.deepEqual(
      movements.map(({ type, amount, currency_code }) => ({ type, amount, currency_code })),
      [{ type: 'charge', amount: 10.5, currency_code: 'USD' }],
    )
  })

  test('the same value in another form and case of the currency is the same request', async () => {
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user, { idempotency_key: 'k', amount: 10 })).body
    for (const [amount, currency_code] of [
      ['10', 'usd'],
      ['10.0', 'Usd'],
      ['10.00', 'USD'],
      ['10.000000000', 'uSD'],
    ]) {
      const again = await shop.charge(user, { idempotency_key: 'k', amount, currency_code })
      assert.deepEqual([again.body.order_id, again.body.idempotent_replay], [order_id, true], again.text)
    }
  })

  test('idempotency_key_reused for another amount or currency, whatever else is wrong with it', async () => {
    const user = await shop.customer()
    await shop.charge(user, { idempotency_key: 'k' })
    for (const more of [
      { amount: '10.51' },
      { currency_code: 'EUR' },
      { amount: 0 },
      { amount: '10.505' },
      { currency_code: 'ZZZ' },
    ]) {
      refused(
        await shop.charge(user, { idempotency_key: 'k', ...more }),
        /idempotency_key was used/,
        'idempotency_key_reused',
      )
    }
  })

  test('a new key is a new charge, and keys of different customers are different keys', async () => {
    const [one, two] = [await shop.customer(), await shop.customer()]
    const orders = [
      await shop.charge(one, { idempotency_key: 'a' }),
      await shop.charge(one, { idempotency_key: 'b' }),
      await shop.charge(two, { idempotency_key: 'a' }),
    ].map((response) => response.body.order_id)
    assert.equal(new Set(orders).size, 3)
    for (const order of orders) assert.equal((await billing.ledger(order)).length, 1)
  })

  test('a replay succeeds although charges are no longer enabled, the maximum is lower and the card is gone', async () => {
    const user = await shop.customer()
    const first = await shop.charge(user, { idempotency_key: 'k' })
    await shop.set('one_off_charge_enabled', false)
    await shop.set('one_off_charge_max_amount', '{"*":"1"}')
    const again = await shop.charge(user, { idempotency_key: 'k' })
    refused(await shop.charge(user), /not enabled/, 'one_off_charge_disabled')
    await shop.set('one_off_charge_enabled', true)
    await shop.set('one_off_charge_max_amount', '{"*":"1000"}')
    assert.deepEqual(again.body, { ...first.body, idempotent_replay: true })
  })

  test('a declined charge is failed, with a sentence for the customer, and so is its replay', async () => {
    const user = await shop.customer({ token: 'pm_card_chargeDeclinedInsufficientFunds' })
    const response = await shop.charge(user, { idempotency_key: 'k' })
    assert.equal(response.status, 200)
    assert.equal(response.body.checkout_status, 'failed')
    assert.equal(response.body.failed_message_for_user, 'Your card has insufficient funds.')
    assert.deepEqual((await shop.charge(user, { idempotency_key: 'k' })).body, {
      ...response.body,
      idempotent_replay: true,
    })
    const lost = await shop.charge(await shop.customer({ token: 'pm_card_chargeDeclinedLostCard' }))
    assert.equal(
      lost.body.failed_message_for_user,
      'Your card was declined.',
      'a thief must not learn that it was reported',
    )
  })
})

describe('the saved card', () => {
  test('is that of the latest successful payment that has one; place and merchant come with it', async () => {
    const user = await shop.customer({ token: 'pm_card_chargeDeclined', merchantId: 'old', at: '2002-01-01T00:00:00Z' })
    await addPayment(billing.db, shop.id, user, { merchantId: 'new', at: '2003-01-01T00:00:00Z' })
    await addPayment(billing.db, shop.id, user, { token: null, merchantId: 'later', at: '2004-01-01T00:00:00Z' })
    await addPayment(billing.db, shop.id, user, {
      status: 'failed',
      token: 'pm_card_chargeDeclined',
      at: '2005-01-01T00:00:00Z',
    })
    const { order_id } = (await shop.charge(user)).body
    const [row] = await shop.report({ order_id })
    assert.deepEqual([row.status, row.psp_merchant_id, row.region, row.psp], ['succeeded', 'new', 'eu', 'simulator'])
  })

  test('a charged card is a saved card', async () => {
    const user = await shop.customer()
    await shop.charge(user)
    await billing.db.query(
      'delete from report_transactions where organization_id = $1 and external_id = $2 and imported',
      [shop.id, user],
    )
    assert.equal((await shop.charge(user)).body.checkout_status, 'succeeded')
  })
})
