// Traces through the program, and what a log line may hold.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { openLog } from '../../../src/lib/log.ts'
import { noDetails } from '../../../src/payments/providers/provider.ts'
import { type Billing, startBilling } from '../../support/billing.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'

describe('traces', () => {
  let provider: Server
  let heard: (string | undefined)[]
  let billing: Billing
  before(async () => {
    heard = []
    // A separate provider, to see what is sent to one.
    provider = createServer((request, response) => {
      if (request.url === '/charges') heard.push(request.headers.traceparent as string | undefined)
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        const { reference, amount_minor, currency_code } = JSON.parse(body || '{}')
        response.setHeader('content-type', 'application/json')
        response.end(
          JSON.stringify({ outcome: 'succeeded', reference, amount_minor, currency_code, details: noDetails }),
        )
      })
    })
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
    const { port } = provider.address() as AddressInfo
    billing = await startBilling({ SIMULATOR_URL: `http://127.0.0.1:${port}` })
  })
  after(async () => {
    await billing.stop()
    await new Promise((resolve) => provider.close(resolve))
  })

  const lineOf = (id: string) =>
    JSON.parse(billing.server.logLines().find((line) => line.includes(`"request_id":"${id}"`))!)

  test('continue from the caller to the log and the provider', async () => {
    const shop = await billing.organization()
    const external_id = await shop.customer()
    const body = { external_id, amount: 5, currency_code: 'USD', idempotency_key: 'traced' }
    const { status } = await billing.server.call(`/${shop.id}/v1/payment/one_off_charge`, {
      method: 'POST',
      body,
      headers: [
        'service-secret-key',
        shop.key,
        'traceparent',
        `00-${TRACE}-b7ad6b7169203331-01`,
        'X-Request-Id',
        'r-1',
      ],
    })
    assert.equal(status, 200)
    assert.equal(heard.length, 1)
    assert.match(heard[0] ?? '', new RegExp(`^00-${TRACE}-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`))
    const line = lineOf('r-1')
    assert.equal(line.trace_id, TRACE)
    assert.deepEqual(
      [line.tenant, line.method, line.route, line.status],
      [shop.id, 'POST', '/:org_id/v1/payment/one_off_charge', 200],
    )
    assert.ok(line.duration_ms > 0)
  })

  test('begin here if the caller sends none, or an invalid one', async () => {
    await billing.server.call('/health/live', { headers: ['X-Request-Id', 'r-2'] })
    await billing.server.call('/health/live', { headers: ['X-Request-Id', 'r-3', 'traceparent', 'nonsense'] })
    assert.match(lineOf('r-2').trace_id, /^[0-9a-f]{32}$/)
    assert.match(lineOf('r-3').trace_id, /^[0-9a-f]{32}$/)
    assert.notEqual(lineOf('r-2').trace_id, lineOf('r-3').trace_id)
  })
})

describe('a log line', () => {
  test('holds no card number, wherever it comes from, and stays JSON', () => {
    const lines: string[] = []
    const log = openLog('info', { write: (line) => lines.push(line) })
    log.info(
      { err: new Error('card 4242 4242 4242 4242 was refused'), number: 4242424242424242 },
      'pan 5555555555554444',
    )
    assert.doesNotMatch(lines[0]!, /4242 4242 4242 4242|4242424242424242|5555555555554444/)
    assert.equal(JSON.parse(lines[0]!).number, null)
  })
})
