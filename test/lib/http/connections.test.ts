// Connections that end oddly: bytes that are no HTTP, closed sending sides, and responses of Node without a body.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { unconnectedListener } from '../../../scripts/openapi.ts'
import { startShop } from '../../support/billing.ts'
import { sendBytes, times } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const { billing, shop } = await startShop()

describe('a connection', { timeout: 60_000 }, () => {
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
  const statuses = (response: string) =>
    [...response.matchAll(/HTTP\/1\.1 ([0-9]+) /g)].map(([, status]) => Number(status))
  const get = (headers: string[], version = '1.1') =>
    `GET /health/live HTTP/${version}\r\n${headers.join('\r\n')}\r\n\r\n`

  describe('followed by bytes that are no HTTP', () => {
    test('gets the response of a charge that was begun, and is closed', async () => {
      const response = await sendBytes(billing.server.url, `${await slowCharge('with garbage')}GARBAGE\r\n\r\n`)
      assert.deepEqual(statuses(response), [200])
      assert.match(response, /\r\nconnection: close\r\n/i)
      assert.match(response, /"checkout_status":"succeeded"/)
    })

    test('gets the responses of all requests that had arrived, in their order', async () => {
      const bytes = `${await slowCharge('first')}${get(['Host: x'])}${await slowCharge('second')}\0\0\0`
      const response = await sendBytes(billing.server.url, bytes)
      assert.deepEqual(statuses(response), [200, 200, 200])
      assert.match(response, /"succeeded".*"status":"ok".*"succeeded"/s)
    })

    test('gets the responses before, and then 400 for a body that is broken off by them', async () => {
      const broken = `POST /${shop.id}/v1/my_assets HTTP/1.1\r\nHost: x\r\nservice-secret-key: ${shop.key}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`
      const response = await sendBytes(billing.server.url, `${await slowCharge('before')}${broken}`)
      assert.deepEqual(statuses(response), [200, 400])
      assert.match(response, /X-Error-Code: invalid_http\r\n/)
    })
  })

  test('whose sending side is closed gets its response all the same', async () => {
    const { hostname, port } = new URL(billing.server.url)
    const bytes = await slowCharge('half closed')
    const response = await new Promise<string>((resolve, reject) => {
      let text = ''
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }, () => socket.end(bytes))
      socket.setTimeout(30_000, () => socket.destroy(new Error('no response')))
      socket.on('data', (chunk) => (text += chunk)).on('error', reject)
      socket.on('end', () => resolve(text))
    })
    assert.deepEqual(statuses(response), [200])
    assert.match(response, /"checkout_status":"succeeded"/)
  })

  test('that is idle when its server stops gets the response of a request that is on its way', async () => {
    const listener = await unconnectedListener('public')
    const port = Number(new URL(await listener.listen({ host: '127.0.0.1', port: 0 })).port)
    const socket = connect(port, '127.0.0.1')
    let heard = ''
    socket.on('data', (chunk) => (heard += chunk))
    const closed = once(socket, 'close')
    socket.write(get(['Host: x']))
    await until('it is idle', () => heard.endsWith('}'))
    const stopped = listener.close()
    while (await accepts(port));
    socket.write(get(['Host: x']))
    await Promise.all([closed, stopped])
    assert.deepEqual(statuses(heard), [200, 200])
    assert.match(heard, /\r\nconnection: close\r\n.*\r\n\r\n\{"status":"ok"\}$/is)
  })

  test('that was made just before its server stops, and is not accepted yet, gets its response', async () => {
    const listener = await unconnectedListener('public')
    const port = Number(new URL(await listener.listen({ host: '127.0.0.1', port: 0 })).port)
    const closed = times(20, () => {
      const socket = connect(port, '127.0.0.1')
      socket.write(get(['Host: x']))
      return text(socket)
    })
    // The kernel has made them then, and the event loop has accepted none.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    const stopped = listener.close()
    const heard = await Promise.all(closed)
    await stopped
    assert.deepEqual(heard.flatMap(statuses), Array(20).fill(200))
  })

  for (const [what, bytes, status, code] of [
    ['two Host headers', get(['Host: x', 'Host: x', 'Connection: close']), 400, 'invalid_host'],
    ['no Host header', get(['Connection: close']), 400, 'invalid_host'],
    ['Expect: something', get(['Host: x', 'Expect: something', 'Connection: close']), 417, 'expectation_failed'],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n', 405, 'method_not_allowed'],
    [
      'a method that a path with a bad fragment lacks',
      'PUT /health/live#%ZZ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      405,
      'method_not_allowed',
    ],
    ['an unfinished request', 'GET /health/live HTT', 400, 'invalid_http'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'invalid_http'],
  ] as const) {
    test(`${status} with JSON, code and request id for ${what}`, async () => {
      const response = await (what === 'an unfinished request'
        ? endHalfway(bytes)
        : sendBytes(billing.server.url, bytes))
      assert.deepEqual(statuses(response), [status])
      assert.match(response, new RegExp(`\r\nx-error-code: ${code}\r\n`, 'i'))
      assert.match(response, /\r\nx-request-id: [0-9a-f-]{36}\r\n/i)
      assert.match(response, /\r\ncontent-type: application\/json; charset=utf-8\r\n/i)
      assert.match(response, /\r\n\r\n\{"message":".+\."\}$/)
    })
  }

  const NO_METHOD = 'it does not begin with a method in capitals, such as GET'
  // The organization and its key are known when the tests run.
  const post = (header: string, body = '') =>
    `POST /ORG/v1/my_assets HTTP/1.1\r\nHost: x\r\nservice-secret-key: KEY\r\n${header}\r\n\r\n${body}`
  for (const [what, bytes, flaw] of [
    ['TLS', '\x16\x03\x01\x02\x00', 'it does not begin with a method in capitals, such as GET'],
    ['TLS by a proxy', '\x16\x03\x01\x02\x00', `${NO_METHOD}, but with TLS, which has to end at a proxy.`],
    ['the PROXY protocol', 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n', `${NO_METHOD}, but with the PROXY protocol`],
    ['its version 2', '\r\n\r\n\0\r\nQUIT\n\x21', `${NO_METHOD}, but with the PROXY protocol`],
    ['a lower-case method', 'get / HTTP/1.1\r\n\r\n', 'it does not begin with a method in capitals, such as GET'],
    [
      'a space in the URL',
      'GET /a b HTTP/1.1\r\n\r\n',
      'its first line must be a method, a URL without spaces, and HTTP',
    ],
    ['HTTP/1.2', 'GET / HTTP/1.2\r\n\r\n', 'its first line must be a method, a URL without spaces, and HTTP/1.1'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'the server speaks HTTP/1.1, not HTTP/2'],
    ['a folded header', post('A: b\r\n c'), 'a header must be one line of a name, a colon and a value'],
    ['a header without a colon', post('A'), 'a header must be one line of a name, a colon and a value'],
    ['two lengths', post('Content-Length: 1\r\nContent-Length: 1'), 'Content-Length must be one whole number'],
    ['a length below 0', post('Content-Length: -1'), 'Content-Length must be one whole number'],
    [
      'length and chunks',
      post('Content-Length: 1\r\nTransfer-Encoding: chunked'),
      'Transfer-Encoding must be chunked,',
    ],
    ['another coding', post('Transfer-Encoding: gzip'), 'Transfer-Encoding must be chunked, without Content-Length'],
    ['a bad chunk', post('Transfer-Encoding: chunked', 'zz\r\n'), 'the chunks of the body are malformed'],
    ['a body cut short', post('Content-Length: 9', '{'), 'the connection was closed before its end'],
  ] as const) {
    test(`400 that says what is wrong for ${what}`, async () => {
      const send = what === 'a body cut short' ? endHalfway : (text: string) => sendBytes(billing.server.url, text)
      const response = await send(bytes.replace('ORG', shop.id).replace('KEY', shop.key))
      assert.deepEqual(statuses(response), [400])
      assert.ok(response.includes(`{"message":"This is not a valid HTTP request: ${flaw}`), response)
      const logged = `"msg":"This is not a valid HTTP request: ${flaw}`
      await until('its line in the log', () => billing.server.logLines().some((one) => one.includes(logged)))
    })
  }

  test('431 that names the limit for headers that are too large', async () => {
    const response = await sendBytes(billing.server.url, get(['Host: x', `A: ${'x'.repeat(17_000)}`]))
    assert.deepEqual(statuses(response), [431])
    assert.match(response, /"The headers are larger than 16384 bytes\."/)
    assert.match(response, /\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r\n/)
  })

  test("the caller's request id for CONNECT, and for a body that is broken or cut short", async () => {
    const mine = 'X-Request-Id: mine'
    const head = (length: string) => post(`${mine}\r\n${length}`).replace('ORG', shop.id).replace('KEY', shop.key)
    const tunnel = `CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n${mine}\r\n\r\n`
    for (const [status, response] of [
      [405, await sendBytes(billing.server.url, tunnel)],
      [400, await sendBytes(billing.server.url, `${head('Transfer-Encoding: chunked')}zz\r\n`)],
      [400, await endHalfway(`${head('Content-Length: 9')}{`)],
    ] as const) {
      assert.deepEqual(statuses(response), [status])
      assert.match(response, /\r\nx-request-id: mine\r\n/i)
    }
  })

  async function accepts(port: number): Promise<boolean> {
    const socket = connect(port, '127.0.0.1')
    const accepted = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return accepted
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

  test('400 for a transfer coding besides chunked', async () => {
    const call = async (coding: string) => {
      const head = post(`Transfer-Encoding: ${coding}\r\nConnection: close`)
        .replace('ORG', shop.id)
        .replace('KEY', shop.key)
      return sendBytes(billing.server.url, `${head}14\r\n{"external_id": "a"}\r\n0\r\n\r\n`)
    }
    assert.deepEqual(statuses(await call('Chunked')), [200])
    for (const coding of ['gzip, chunked', 'identity, chunked']) {
      const response = await call(coding)
      assert.deepEqual(statuses(response), [400])
      assert.ok(
        response.endsWith(JSON.stringify({ message: `Transfer-Encoding must be chunked, got "${coding}".` })),
        response,
      )
    }
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
