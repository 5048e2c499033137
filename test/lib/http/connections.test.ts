// Connections that end oddly: bytes that are no HTTP, closed sending sides, and what Node would answer without a body.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type Billing, type Organization, startBilling } from '../../support/billing.ts'
import { sendBytes } from '../../support/server.ts'

describe('a connection', { timeout: 60_000 }, () => {
  let billing: Billing
  let shop: Organization
  before(async () => {
    billing = await startBilling()
    shop = await billing.organization()
  })
  after(() => billing.stop())

  /** A charge that takes a while, as bytes. */
  async function slowCharge(key: string): Promise<string> {
    const external_id = await shop.customer({ token: 'sim_slow_500ms' })
    const body = JSON.stringify({ external_id, amount: 1, currency_code: 'USD', idempotency_key: key })
    const head = [
      `POST /${shop.id}/v1/payment/one_off_charge HTTP/1.1`,
      'Host: x',
      `service-secret-key: ${shop.key}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    return `${head.join('\r\n')}\r\n\r\n${body}`
  }
  const statuses = (answer: string) => [...answer.matchAll(/HTTP\/1\.1 ([0-9]+) /g)].map(([, status]) => Number(status))
  const get = (headers: string[], version = '1.1') =>
    `GET /health/live HTTP/${version}\r\n${headers.join('\r\n')}\r\n\r\n`

  describe('followed by bytes that are no HTTP', () => {
    test('gets the answer of a charge that was begun, and is closed', async () => {
      const answer = await sendBytes(billing.server.url, `${await slowCharge('with garbage')}GARBAGE\r\n\r\n`)
      assert.deepEqual(statuses(answer), [200])
      assert.match(answer, /\r\nconnection: close\r\n/i)
      assert.match(answer, /"checkout_status":"succeeded"/)
    })

    test('gets the answers of all requests that had arrived, in their order', async () => {
      const bytes = `${await slowCharge('first')}${get(['Host: x'])}${await slowCharge('second')}\0\0\0`
      const answer = await sendBytes(billing.server.url, bytes)
      assert.deepEqual(statuses(answer), [200, 200, 200])
      assert.match(answer, /"succeeded".*"status":"ok".*"succeeded"/s)
    })

    test('gets the answers before, and then 400 for a body that is broken off by them', async () => {
      const broken = `POST /${shop.id}/v1/my_assets HTTP/1.1\r\nHost: x\r\nservice-secret-key: ${shop.key}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`
      const answer = await sendBytes(billing.server.url, `${await slowCharge('before')}${broken}`)
      assert.deepEqual(statuses(answer), [200, 400])
      assert.match(answer, /X-Error-Code: invalid_http\r\n/)
    })
  })

  test('whose sending side is closed gets its answer all the same', async () => {
    const { hostname, port } = new URL(billing.server.url)
    const bytes = await slowCharge('half closed')
    const answer = await new Promise<string>((resolve, reject) => {
      let text = ''
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }, () => socket.end(bytes))
      socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')))
      socket.on('data', (chunk) => (text += chunk)).on('error', reject)
      socket.on('end', () => resolve(text))
    })
    assert.deepEqual(statuses(answer), [200])
    assert.match(answer, /"checkout_status":"succeeded"/)
  })

  for (const [what, bytes, status, code] of [
    ['two Host headers', get(['Host: x', 'Host: x', 'Connection: close']), 400, 'invalid_host'],
    ['no Host header', get(['Connection: close']), 400, 'invalid_host'],
    ['Expect: something', get(['Host: x', 'Expect: something', 'Connection: close']), 417, 'expectation_failed'],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n', 405, 'method_not_allowed'],
    ['an unfinished request', 'GET /health/live HTT', 400, 'invalid_http'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'invalid_http'],
  ] as const) {
    test(`${status} with JSON, code and request id for ${what}`, async () => {
      const answer = await (what === 'an unfinished request' ? endHalfway(bytes) : sendBytes(billing.server.url, bytes))
      assert.deepEqual(statuses(answer), [status])
      assert.match(answer, new RegExp(`\r\nx-error-code: ${code}\r\n`, 'i'))
      assert.match(answer, /\r\nx-request-id: [0-9a-f-]{36}\r\n/i)
      assert.match(answer, /\r\ncontent-type: application\/json; charset=utf-8\r\n/i)
      assert.match(answer, /\r\n\r\n\{"message":".+\."\}$/)
    })
  }

  async function endHalfway(bytes: string): Promise<string> {
    const { hostname, port } = new URL(billing.server.url)
    return new Promise((resolve) => {
      let text = ''
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }, () => socket.end(bytes))
      socket.on('data', (chunk) => (text += chunk))
      socket.on('close', () => resolve(text))
      socket.on('end', () => socket.destroy())
    })
  }

  test('200 for HTTP/1.0 without Host', async () => {
    assert.deepEqual(statuses(await sendBytes(billing.server.url, get([], '1.0'))), [200])
  })

  test('415 for a compressed body, whichever the endpoint; identity is none', async () => {
    const call = (path: string, encoding: string) =>
      billing.server.call(path, {
        method: 'POST',
        body: '{',
        headers: ['Content-Encoding', encoding, 'service-secret-key', shop.key],
      })
    for (const path of [`/${shop.id}/v1/my_assets`, `/${shop.id}/v1/payment/one_off_charge`]) {
      for (const encoding of ['gzip', 'br', 'identity, gzip', '']) {
        const { status, headers, body } = await call(path, encoding)
        assert.deepEqual([status, headers['x-error-code']], [415, 'unsupported_content_encoding'])
        assert.equal(body.message, `Content-Encoding must be identity, got "${encoding}".`)
      }
      assert.equal((await call(path, 'Identity')).headers['x-error-code'], 'invalid_json')
    }
  })
})
