// X-Error-Code: a stable word with every refusal, the same in the response, in the API's description and in docs/errors.md.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { faults } from '../../../scripts/error-codes.ts'
import { REJECT_CODES } from '../../../src/core/records/import/fields.ts'
import { startShop } from '../../support/billing.ts'
import { type ApiResponse, sendBytes } from '../../support/server.ts'

const { billing, shop } = await startShop()
const project = await billing.server.project()

describe('X-Error-Code', () => {
  const codeOf = ({ status, headers }: ApiResponse) => [status, headers['x-error-code']]
  const charge = (body: object) => {
    const headers = ['service-secret-key', shop.key]
    const whole = { external_id: 'nobody', amount: 1, currency_code: 'USD', idempotency_key: 'key', ...body }
    return billing.server.call(`/${shop.id}/v1/payment/one_off_charge`, { method: 'POST', body: whole, headers })
  }

  test('names what the data API refuses', async () => {
    const get = async (path: string) => codeOf(await billing.server.api(path, { key: project.key }))
    assert.deepEqual(codeOf(await billing.server.api('/funnels')), [401, 'unauthorized'])
    assert.deepEqual(await get('/funnels?limit=0'), [400, 'invalid_parameter'])
    assert.deepEqual(await get('/funnels?limit=1&limit=2'), [400, 'repeated_parameter'])
    assert.deepEqual(await get('/funnels?x=1'), [400, 'unknown_parameter'])
    assert.deepEqual(await get('/funnels?limit=%ff'), [400, 'invalid_query_string'])
    assert.deepEqual(await get('/funnels?cursor=x!'), [400, 'invalid_cursor'])
    assert.deepEqual(await get('/funnels/nobody'), [404, 'object_not_found'])
    assert.deepEqual(await get('/nothing'), [404, 'path_not_found'])
    const erase = async (body: string | object, headers: string[] = []) =>
      codeOf(await billing.server.api('/profiles/anonymize', { key: project.key, method: 'POST', body, headers }))
    assert.deepEqual(await erase({ profile_ids: ['nobody'] }), [404, 'profiles_not_found'])
    assert.deepEqual(await erase({}), [400, 'property_required'])
    assert.deepEqual(await erase({ profile_ids: ['a'], more: 1 }), [400, 'unknown_property'])
    assert.deepEqual(await erase({ profile_ids: [] }), [400, 'invalid_property'])
    assert.deepEqual(await erase('{'), [400, 'invalid_json'])
    assert.deepEqual(await erase(''), [400, 'body_required'])
    assert.deepEqual(await erase('{}', ['Content-Type', 'text/plain']), [415, 'unsupported_media_type'])
    assert.deepEqual(await erase('x'.repeat(1024 * 1024 + 1)), [413, 'body_too_large'])
    const put = await billing.server.api('/funnels', { key: project.key, method: 'PUT' })
    assert.deepEqual(codeOf(put), [405, 'method_not_allowed'])
  })

  test('names each rule of a charge', async () => {
    assert.deepEqual(codeOf(await charge({ amount: -1 })), [400, 'amount_not_positive'])
    assert.deepEqual(codeOf(await charge({ amount: '1e3' })), [400, 'invalid_amount'])
    const exponent = await shop.post(
      '/payment/one_off_charge',
      '{"external_id": "x", "amount": 1e400, "currency_code": "USD", "idempotency_key": "x"}',
    )
    assert.match(exponent.body.message, /^amount must be written without an exponent, got 1e400\.$/)
    assert.deepEqual(codeOf(await charge({ amount: 1.001 })), [400, 'amount_too_many_decimals'])
    assert.deepEqual(codeOf(await charge({ amount: 1_000_000 })), [400, 'amount_above_maximum'])
    assert.deepEqual(codeOf(await charge({ currency_code: 'ZZZ' })), [400, 'unknown_currency'])
    assert.deepEqual(codeOf(await charge({})), [400, 'unknown_customer'])
    const unsaved = await shop.customer({ token: null })
    assert.deepEqual(codeOf(await charge({ external_id: unsaved })), [400, 'no_saved_card'])
    const external_id = await shop.customer()
    assert.deepEqual(codeOf(await charge({ external_id })), [200, undefined])
    const reused = await charge({ external_id, amount: 2 })
    assert.deepEqual([...codeOf(reused), reused.body.code], [400, 'idempotency_key_reused', 'idempotency_key_reused'])
  })

  test('is there when the request was no HTTP', async () => {
    for (const [bytes, code] of [
      ['NONSENSE\r\n\r\n', 'invalid_http'],
      ['GET /\u00e4 HTTP/1.1\r\nHost: x\r\n\r\n', 'invalid_url'],
      [`GET / HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(17_000)}\r\n\r\n`, 'headers_too_large'],
    ] as const) {
      assert.match(await sendBytes(billing.server.url, bytes), new RegExp(`\r\nX-Error-Code: ${code}\r\n`))
    }
  })

  test('has the codes of rejects in docs/errors.md, with what each means', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/errors.md'), 'utf8')
    for (const [code, meaning] of Object.entries(REJECT_CODES))
      assert.ok(page.includes(`\n- \`${code}\`: ${meaning}\n`), code)
  })

  test('has each of its words in the description, with every error response, and in docs/errors.md', async () => {
    assert.deepEqual(faults(join(import.meta.dirname, '../../..')), [])
    const { body } = await billing.server.call('/openapi.json')
    const described = body.components.headers['X-Error-Code'].schema.enum as string[]
    assert.ok(described.includes('charge_in_progress') && !described.includes('role_missing'))
    for (const path of Object.values(body.paths) as Record<
      string,
      { responses: Record<string, { headers?: object }> }
    >[])
      for (const { responses } of Object.values(path))
        for (const [status, { headers = {} }] of Object.entries(responses))
          assert.deepEqual(['X-Request-Id' in headers, 'X-Error-Code' in headers], [true, Number(status) >= 400])
  })
})
