// The rules of a custom charge through HTTP: the checks in their order, exact amounts, replays, and keys that stay free.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { addPayment, type Billing, type Organization, startBilling } from '../support/billing.ts'
import type { Answer } from '../support/server.ts'

let billing: Billing
let shop: Organization
before(async () => {
  billing = await startBilling()
  shop = await billing.organization()
})
after(() => billing.stop())

const setShop = (column: string, value: string | boolean) =>
  billing.db.query(`update organizations set ${column} = $2 where id = $1`, [shop.id, value])

function refused(answer: Answer, message: RegExp, code?: string): void {
  assert.equal(answer.status, 400, answer.text)
  assert.match(answer.body.message, message)
  assert.deepEqual(answer.body, { message: answer.body.message, ...(code && { code }) })
}

/** A body as text, so that numbers stand in it as they are written here. */
function body(user: string, amount: string, more = ''): string {
  return `{"external_id":"${user}","amount":${amount},"currency_code":"USD","idempotency_key":"${randomUUID()}"${more}}`
}

const post = (text: string) => shop.post('/payment/one_off_charge', text)

describe('a charge and its replay', () => {
  test('a charge succeeds; its replay tells of it and charges nothing', async () => {
    const user = await shop.customer()
    const answer = await shop.charge(user, { idempotency_key: 'k' })
    assert.equal(answer.status, 200, answer.text)
    const { order_id, ...rest } = answer.body
    assert.match(order_id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepEqual(rest, {
      action_required_token: '',
      checkout_status: 'succeeded',
      failed_message_for_user: '',
      idempotent_replay: false,
    })
    const again = await shop.charge(user, { idempotency_key: 'k' })
    assert.deepEqual(again.body, { ...answer.body, idempotent_replay: true })
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
    ].map((answer) => answer.body.order_id)
    assert.equal(new Set(orders).size, 3)
    for (const order of orders) assert.equal((await billing.ledger(order)).length, 1)
  })

  test('a replay is answered although charges are no longer enabled, the maximum is lower and the card is gone', async () => {
    const user = await shop.customer()
    const first = await shop.charge(user, { idempotency_key: 'k' })
    await setShop('one_off_charge_enabled', false)
    await setShop('one_off_charge_max_amount', '{"*":"1"}')
    const again = await shop.charge(user, { idempotency_key: 'k' })
    refused(await shop.charge(user), /not enabled/, 'one_off_charge_disabled')
    await setShop('one_off_charge_enabled', true)
    await setShop('one_off_charge_max_amount', '{"*":"1000"}')
    assert.deepEqual(again.body, { ...first.body, idempotent_replay: true })
  })

  test('a declined charge is failed, with a sentence for the customer, and so is its replay', async () => {
    const user = await shop.customer({ token: 'pm_card_chargeDeclinedInsufficientFunds' })
    const answer = await shop.charge(user, { idempotency_key: 'k' })
    assert.equal(answer.status, 200)
    assert.equal(answer.body.checkout_status, 'failed')
    assert.equal(answer.body.failed_message_for_user, 'Your card has insufficient funds.')
    assert.deepEqual((await shop.charge(user, { idempotency_key: 'k' })).body, {
      ...answer.body,
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
      const answer = await billing.server.call(path, { method: 'POST', body: 'nonsense', headers })
      assert.equal(answer.status, 401, path)
      assert.match(answer.body.message, /service-secret-key/)
    }
    const other = await billing.organization()
    const headers = ['service-secret-key', other.key]
    assert.equal((await billing.server.call(`/${shop.id}/v1/my_assets`, { method: 'POST', headers })).status, 401)
  })

  test('the header in any case', async () => {
    const headers = ['Service-SECRET-Key', shop.key]
    const answer = await billing.server.call(`/${shop.id}/v1/my_assets`, {
      method: 'POST',
      body: { external_id: 'x' },
      headers,
    })
    assert.equal(answer.status, 200)
  })

  test('404 for another path, 405 for another method, both only with the key', async () => {
    const headers = ['service-secret-key', shop.key]
    assert.equal((await billing.server.call(`/${shop.id}/v1/nothing`, { headers })).status, 404)
    const answer = await billing.server.call(`/${shop.id}/v1/my_assets`, { headers })
    assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST'])
  })

  test('shape, disabled, amount, currency, decimals, maximum, customer, payment, card, provider, offer, one in progress', async () => {
    const unpaid = await shop.customer({ status: 'failed' })
    const unsaved = await shop.customer({ token: null })
    const elsewhere = await shop.customer({ psp: 'elsewhere', merchantId: 'narrow' })
    const narrow = await shop.customer({ merchantId: 'narrow' })
    for (const psp of ['simulator', 'elsewhere']) {
      await billing.db.query(
        `insert into merchant_accounts (organization_id, psp, psp_merchant_id, currencies, created_at, updated_at)
         values ($1, $2, 'narrow', '["EUR"]', db_clock(), db_clock())`,
        [shop.id, psp],
      )
    }
    const bad = { external_id: 'nobody', amount: 0, currency_code: 'ZZZ' }
    await setShop('one_off_charge_enabled', false)
    refused(await shop.charge('nobody', { ...bad, idempotency_key: '' }), /idempotency_key must not be empty/)
    refused(await shop.charge('nobody', bad), /not enabled/, 'one_off_charge_disabled')
    await setShop('one_off_charge_enabled', true)
    refused(await shop.charge('nobody', bad), /amount must be greater than 0, got 0\./)
    refused(await shop.charge('nobody', { ...bad, amount: '5000.5' }), /"ZZZ" is not a currency/)
    refused(
      await shop.charge('nobody', { amount: '5000.5', currency_code: 'JPY' }),
      /more decimal places than JPY allows \(0\)/,
    )
    refused(await shop.charge('nobody', { amount: '1000.01' }), /above the organization's maximum of 1000 USD/)
    refused(await shop.charge('nobody'), /no customer with the external_id "nobody"/)
    refused(await shop.charge(unpaid), /no successful payment/)
    refused(await shop.charge(unsaved), /no saved card/)
    refused(await shop.charge(elsewhere), /provider "elsewhere"/)
    refused(await shop.charge(narrow), /USD is not offered/)
    assert.equal((await shop.charge(narrow, { currency_code: 'EUR' })).body.checkout_status, 'succeeded')
  })

  test('a refund is no successful payment', async () => {
    refused(await shop.charge(await shop.customer({ type: 'refund' })), /no successful payment/)
  })

  test('one charge in progress at a time; its replay says processing', async () => {
    const user = await shop.customer({ token: 'sim_slow_400ms' })
    const first = shop.charge(user, { idempotency_key: 'k' })
    await new Promise((resolve) => setTimeout(resolve, 150))
    refused(await shop.charge(user, { idempotency_key: 'l' }), /Another charge of this customer is in progress/)
    const replay = await shop.charge(user, { idempotency_key: 'k' })
    assert.deepEqual([replay.body.checkout_status, replay.body.idempotent_replay], ['processing', true])
    assert.equal((await first).body.order_id, replay.body.order_id)
    assert.equal((await first).body.checkout_status, 'succeeded')
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
    await setShop('one_off_charge_max_amount', '{"*": 999999999999999}')
    refused(
      await shop.charge(user, { amount: '922337203685477.5808', currency_code: 'CLF' }),
      /must be at most 922337203685477.5807 CLF/,
    )
    const most = await shop.charge(user, { amount: '922337203685477.5807', currency_code: 'CLF' })
    assert.equal(most.body.checkout_status, 'succeeded')
    await setShop('one_off_charge_max_amount', '{"*":"1000"}')
  })

  test('the maximum is for every currency that has none of its own', async () => {
    const user = await shop.customer()
    await setShop('one_off_charge_max_amount', '{"*": 20, "JPY": "500"}')
    assert.equal((await shop.charge(user, { amount: '20.00' })).status, 200)
    refused(await shop.charge(user, { amount: '20.01' }), /maximum of 20 USD/)
    assert.equal((await shop.charge(user, { amount: 500, currency_code: 'JPY' })).status, 200)
    refused(await shop.charge(user, { amount: 501, currency_code: 'JPY' }), /maximum of 500 JPY/)
    await setShop('one_off_charge_max_amount', '{"*":"1000"}')
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

describe('amounts are judged by the digits sent', () => {
  test('not by a float', async () => {
    const user = await shop.customer()
    refused(await post(body(user, '19.999999999999999999')), /more decimal places|at most/)
    refused(await post(body(user, '1000.0000000000000001')), /more decimal places|at most/)
    assert.equal((await post(body(user, '10.500'))).status, 200, 'zeros at the end do not count')
    assert.equal((await post(body(user, '"10.500000000"'))).status, 200)
    assert.equal((await post(body(user, '10.50000000000000000000'))).status, 200)
  })

  test('400 for exponents, signs, blanks, other scripts, and what is no amount', async () => {
    const user = await shop.customer()
    for (const amount of [
      '1e2',
      '1E2',
      '1e-1',
      '"1e2"',
      '"+1"',
      '" 1"',
      '"1 "',
      '"1."',
      '".5"',
      '"1,5"',
      '""',
      '"١"',
      '"0x10"',
      '"Infinity"',
      'true',
      'null',
      '[1]',
      '{}',
      '"1234567890123456"',
      '1234567890123456',
      '"1.0000000000"',
      '"NaN"',
    ]) {
      const answer = await post(body(user, amount))
      assert.equal(answer.status, 400, amount)
      assert.match(answer.body.message, /amount/, amount)
    }
  })

  test('400 "must be greater than 0" for zero and less', async () => {
    const user = await shop.customer()
    for (const amount of ['0', '-0', '0.00', '"0"', '"0.000"', '-1', '-10.50', '"-1"', '"-10.50"']) {
      refused(await post(body(user, amount)), /amount must be greater than 0/)
    }
  })

  test('the same digits twice in an object are not a way around', async () => {
    const user = await shop.customer()
    refused(await post(body(user, '10', ',"amount":900')), /amount/)
  })
})

describe('other fields', () => {
  test('lengths count Unicode characters; control characters are refused', async () => {
    const user = await shop.customer()
    const long = '😀'.repeat(128)
    assert.equal((await shop.charge(user, { idempotency_key: long })).status, 200)
    refused(
      await shop.charge(user, { idempotency_key: `${long}x` }),
      /idempotency_key must have at most 128 characters/,
    )
    refused(await shop.charge('x'.repeat(257)), /external_id must have at most 256 characters/)
    refused(await shop.charge(''), /external_id must not be empty/)
    refused(await shop.charge('a\nb'), /external_id must not contain control characters/)
    refused(
      await shop.charge(user, { idempotency_key: 'a\u0085b' }),
      /idempotency_key must not contain control characters/,
    )
    assert.equal((await shop.charge('😀'.repeat(256))).body.message.startsWith('There is no customer'), true)
  })

  test('currency_code has three characters of ASCII, in any case', async () => {
    const user = await shop.customer()
    for (const currency_code of ['US', 'USDX', ''])
      refused(await shop.charge(user, { currency_code }), /currency_code must/)
    for (const currency_code of ['XAU', 'XXX', 'DEM', 'uſd', 'U D', '840']) {
      refused(await shop.charge(user, { currency_code }), /is not a currency of ISO 4217/)
    }
    assert.equal((await shop.charge(user, { currency_code: 'eUr' })).status, 200)
  })

  test('an unknown property, a missing one, a wrong type, no body: 400 that names it', async () => {
    const user = await shop.customer()
    refused(await shop.charge(user, { tip: 1 }), /"tip"/)
    refused(
      await shop.post('/payment/one_off_charge', { external_id: user }),
      /amount is required|currency_code is required/,
    )
    refused(await shop.charge(user, { currency_code: 5 }), /currency_code must be a string/)
    refused(await shop.charge(user, { idempotency_key: null }), /idempotency_key must be a string/)
    refused(await shop.charge(user, { client_metadata: [] }), /client_metadata must be an object/)
    refused(await shop.charge(user, { client_metadata: null }), /client_metadata must be an object/)
    assert.equal((await shop.post('/payment/one_off_charge', '')).status, 400)
    assert.equal((await shop.post('/payment/one_off_charge?x=1', body(user, '1'))).status, 400)
  })

  test('client_metadata up to 16 KiB, kept exactly, without card numbers', async () => {
    const user = await shop.customer()
    const exact = '{"n":1.10,"big":12345678901234567890,"user_id":"4242424242424242","текст":"ё"}'
    const { order_id } = (await post(body(user, '1', `,"client_metadata":${exact}`))).body
    const [row] = await billing.db.query('select client_metadata from orders where order_id = $1', [order_id])
    assert.equal(row!.client_metadata, exact)
    const text = 'x'.repeat(16 * 1024 - '{"a":""}'.length)
    assert.equal((await shop.charge(user, { client_metadata: { a: text } })).status, 200)
    refused(
      await shop.charge(user, { client_metadata: { a: `${text}x` } }),
      /client_metadata must have at most 16384 bytes/,
    )
    const secret = { deep: [{ card_number: '4242 4242 4242 4242' }] }
    const answer = await shop.charge(user, { idempotency_key: 'card', client_metadata: secret })
    refused(answer, /deep\[0\]\.card_number/)
    assert.doesNotMatch(answer.text, /4242/)
    assert.doesNotMatch(billing.server.logLines().join(''), /4242[ -]?4242[ -]?4242/)
    assert.equal((await billing.db.query(`select 1 from orders where idempotency_key = 'card'`)).length, 0)
  })

  test('415 for another type of body, 413 for a large one', async () => {
    const headers = ['service-secret-key', shop.key]
    const path = `/${shop.id}/v1/payment/one_off_charge`
    const call = (type: string, text: string) =>
      billing.server.call(path, { method: 'POST', body: text, headers: [...headers, 'Content-Type', type] })
    assert.equal((await call('text/plain', '{}')).status, 415)
    assert.equal((await call('application/json', 'x'.repeat(1024 * 1024 + 1))).status, 413)
  })
})
