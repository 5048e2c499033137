// The checks of a custom charge in their order: the key, the rules of the organization, the customer, the card.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addPayment, refused, startShop } from '../../support/billing.ts'
import { addRow } from '../../support/data.ts'
import { ok } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const { billing, shop } = await startShop()

describe('the checks, each before the next', () => {
  // Each case breaks a rule and every later one.
  test('401 before anything is said about the body', async () => {
    for (const [path, headers] of [
      [`/${shop.id}/v1/payment/one_off_charge`, []],
      [`/${shop.id}/v1/payment/one_off_charge`, ['service-secret-key', 'wrong']],
      [`/${shop.id}/v1/payment/one_off_charge`, ['service-secret-key', shop.projectKey]],
      [`/${shop.id}/v1/payment/one_off_charge`, ['service-secret-key', shop.key, 'Service-Secret-Key', shop.key]],
      ['/nobody/v1/payment/one_off_charge', ['service-secret-key', shop.key]],
      ['/nobody/v1/nothing', ['service-secret-key', shop.key]],
    ] as [string, string[]][]) {
      const response = await billing.server.call(path, { method: 'POST', body: 'nonsense', headers })
      assert.equal(response.status, 401, path)
      assert.match(response.body.message, /service-secret-key/)
    }
    const other = await billing.organization()
    const headers = ['service-secret-key', other.key]
    assert.equal((await billing.server.call(`/${shop.id}/v1/my_assets`, { method: 'POST', headers })).status, 401)
  })

  test('200 with the header in any case', async () => {
    const headers = ['Service-SECRET-Key', shop.key]
    await ok(billing.server.call(`/${shop.id}/v1/my_assets`, { method: 'POST', body: { external_id: 'x' }, headers }))
  })

  test('404 for another path, 405 for another method, both only with the key', async () => {
    const headers = ['service-secret-key', shop.key]
    assert.equal((await billing.server.call(`/${shop.id}/v1/nothing`, { headers })).status, 404)
    const response = await billing.server.call(`/${shop.id}/v1/my_assets`, { headers })
    assert.deepEqual([response.status, response.headers.allow], [405, 'POST'])
  })

  test('400 in this order: shape, disabled, amount, currency, decimals, maximum, customer, payment, card, provider, offer', async () => {
    const unpaid = await shop.customer({ status: 'failed' })
    const unsaved = await shop.customer({ token: null })
    const elsewhere = await shop.customer({ psp: 'elsewhere', merchantId: 'narrow' })
    const narrow = await shop.customer({ merchantId: 'narrow' })
    const account = { organization_id: shop.id, psp_merchant_id: 'narrow', currencies: ['EUR'] }
    for (const psp of ['simulator', 'elsewhere']) await addRow(billing.db, 'merchant_accounts', { ...account, psp })
    const bad = { external_id: 'nobody', amount: 0, currency_code: 'ZZZ' }
    await shop.set('one_off_charge_enabled', false)
    refused(await shop.charge('nobody', { ...bad, idempotency_key: '' }), /idempotency_key must not be empty/)
    refused(await shop.charge('nobody', bad), /not enabled/, 'one_off_charge_disabled')
    await shop.set('one_off_charge_enabled', true)
    refused(await shop.charge('nobody', bad), /amount must be greater than 0, got 0\./)
    refused(await shop.charge('nobody', { ...bad, amount: '5000.5' }), /"ZZZ" is not a currency/)
    refused(
      await shop.charge('nobody', { amount: '5000.5', currency_code: 'JPY' }),
      /^amount must have no decimal places in JPY, got /,
    )
    refused(
      await shop.charge('nobody', { amount: '1000.01' }),
      /^amount must be at most 1000 USD, the organization's maximum, got "1000\.01"\.$/,
    )
    refused(await shop.charge('nobody'), /no customer with the external_id "nobody"/)
    refused(await shop.charge(unpaid), /no successful payment/)
    refused(await shop.charge(unsaved), /no saved card/)
    refused(await shop.charge(elsewhere), /provider "elsewhere"/)
    refused(await shop.charge(narrow), /^currency_code "USD" is not offered/)
    assert.equal((await shop.charge(narrow, { currency_code: 'EUR' })).body.checkout_status, 'succeeded')
  })

  test('400 for a customer whose only payment is a refund', async () => {
    refused(await shop.charge(await shop.customer({ type: 'refund' })), /no successful payment/)
  })

  /** A charge, another one while it is in progress, and its replay; a busy machine needs a slower charge for it. */
  async function threeAtOnce() {
    for (let slowMs = 400; ; slowMs *= 4) {
      const user = await shop.customer({ token: `sim_slow_${slowMs}ms` })
      const charging = shop.charge(user, { idempotency_key: 'k' })
      const claimed = () => billing.db.query('select 1 from orders where external_id = $1', [user])
      await until('the claim', async () => (await claimed()).length > 0)
      const second = await shop.charge(user, { idempotency_key: 'l' })
      const replay = await shop.charge(user, { idempotency_key: 'k' })
      const first = await charging
      if (replay.body.checkout_status === 'processing') return { user, first, second, replay }
    }
  }

  test('one charge in progress at a time; its replay says processing', async () => {
    const { user, first, second, replay } = await threeAtOnce()
    refused(second, /Another charge of this customer is in progress/)
    assert.equal(replay.body.idempotent_replay, true)
    assert.deepEqual([first.body.order_id, first.body.checkout_status], [replay.body.order_id, 'succeeded'])
    assert.equal(
      (await shop.charge(user, { idempotency_key: 'l' })).body.checkout_status,
      'succeeded',
      'the key stayed free',
    )
  })

  test('what a precondition refuses stores nothing: the key stays free', async () => {
    const user = await shop.customer({ token: null })
    refused(await shop.charge(user, { idempotency_key: 'k' }), /no saved card/)
    refused(await shop.charge(user, { idempotency_key: 'k', amount: 5000 }), /maximum/)
    await addPayment(billing.db, shop.id, user, {})
    assert.equal((await shop.charge(user, { idempotency_key: 'k', amount: 7 })).body.checkout_status, 'succeeded')
  })

  test('no maximum allows more than a transaction can hold', async () => {
    const user = await shop.customer()
    await shop.set('one_off_charge_max_amount', '{"*": 999999999999999}')
    refused(
      await shop.charge(user, { amount: '922337203685477.5808', currency_code: 'CLF' }),
      /must be at most 922337203685477.5807 CLF/,
    )
    const most = await shop.charge(user, { amount: '922337203685477.5807', currency_code: 'CLF' })
    assert.equal(most.body.checkout_status, 'succeeded')
    await shop.set('one_off_charge_max_amount', '{"*":"1000"}')
  })

  test('the maximum is for every currency that has none of its own', async () => {
    const user = await shop.customer()
    await shop.set('one_off_charge_max_amount', '{"*": 20, "JPY": "500"}')
    assert.equal((await shop.charge(user, { amount: '20.00' })).status, 200)
    refused(await shop.charge(user, { amount: '20.01' }), /at most 20 USD, the organization's maximum/)
    assert.equal((await shop.charge(user, { amount: 500, currency_code: 'JPY' })).status, 200)
    refused(
      await shop.charge(user, { amount: 501, currency_code: 'JPY' }),
      /at most 500 JPY, the organization's maximum/,
    )
    await shop.set('one_off_charge_max_amount', '{"*":"1000"}')
  })
})
