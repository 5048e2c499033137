// The fields of a custom charge: amounts by their exact digits, currencies, texts, and metadata.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { refused, startShop } from '../../support/billing.ts'

const { billing, shop } = await startShop()

/** A body as text, so that numbers stand in it as they are written here. */
function body(user: string, amount: string, more = ''): string {
  return `{"external_id":"${user}","amount":${amount},"currency_code":"USD","idempotency_key":"${randomUUID()}"${more}}`
}

const post = (text: string) => shop.post('/payment/one_off_charge', text)

describe('amounts are judged by the digits sent', () => {
  test('a value that a float would round is refused', async () => {
    const user = await shop.customer()
    refused(
      await post(body(user, '19.999999999999999999')),
      /^amount must have at most 2 decimal places in USD, got 19\.9{18}\.$/,
    )
    refused(await post(body(user, '1000.0000000000000001')), /at most 2 decimal places/)
    assert.equal((await post(body(user, '10.500'))).status, 200, 'zeros at the end do not count')
    assert.equal((await post(body(user, '"10.500000000"'))).status, 200)
    assert.equal((await post(body(user, '10.50000000000000000000'))).status, 200)
  })

  test('400 for exponents, signs, blanks, other scripts, and what is no amount', async () => {
    const user = await shop.customer()
    // More texts that are no amounts are in test/lib/money.test.ts.
    for (const amount of ['1e2', '"1e2"', '"+1"', '" 1"', '"1,5"', '""', '"١"', 'true', 'null', '[1]', '{}']) {
      const response = await post(body(user, amount))
      assert.equal(response.status, 400, amount)
      assert.match(response.body.message, /amount/, amount)
    }
  })

  test('400 "must be greater than 0" for zero and less', async () => {
    const user = await shop.customer()
    for (const amount of ['0', '-0', '0.00', '"0"', '"0.000"', '-1', '-10.50', '"-1"', '"-10.50"']) {
      refused(await post(body(user, amount)), /amount must be greater than 0/)
    }
  })

  test('400 for an amount that is given twice', async () => {
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
      /idempotency_key must have at most 128 characters, got a string of 129 characters/,
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
    const response = await shop.charge(user, { idempotency_key: 'card', client_metadata: secret })
    refused(response, /deep\[0\]\.card_number/)
    // Full-width digits, spaces that do not break, and dots.
    for (const card of ['\uff14\uff12'.repeat(8), '4242\u00a04242\u00a04242\u00a04242', '4242.4242.4242.4242'])
      refused(await shop.charge(user, { idempotency_key: 'card', client_metadata: { card } }), /value at "card"/)
    assert.doesNotMatch(response.text, /4242/)
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
