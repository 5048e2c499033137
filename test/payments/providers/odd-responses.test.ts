// Responses of 200 whose body is not what the provider publishes: a list that ends too early is an error, and texts can be stored.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { AirwallexProvider } from '../../../src/payments/providers/airwallex/airwallex.ts'
import { PrimerProvider } from '../../../src/payments/providers/primer/primer.ts'
import { type Provider, ProviderError } from '../../../src/payments/providers/provider.ts'
import { StripeProvider } from '../../../src/payments/providers/stripe/stripe.ts'
import { Transport } from '../../../src/payments/providers/transport.ts'
import { HandClock } from '../../support/time.ts'
import { chargeRequest, charging } from './charging.ts'

let body: string
/** What is returned before `body`, to so many calls. */
let earlier = { status: 200, body: '', calls: 0 }
let calls = 0

const server = createServer((request, response) => {
  const isLogin = request.url!.endsWith('/login')
  if (!isLogin) calls++
  const isEarlier = !isLogin && earlier.calls-- > 0
  response.writeHead(isEarlier ? earlier.status : 200, { 'content-type': 'application/json' })
  request.resume().on('end', () => response.end(isLogin ? '{"token": "t"}' : isEarlier ? earlier.body : body))
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const account = { apiUrl, merchantId: 'm', isSandbox: true, clock: new HandClock() }
const providers: Record<'Stripe' | 'Primer' | 'Airwallex', Provider & { close(): void }> = {
  Stripe: new StripeProvider({ ...account, secretKey: 'sk_test_1' }),
  Primer: new PrimerProvider({ ...account, apiKey: 'simulated-primer-key' }),
  Airwallex: new AirwallexProvider({ ...account, secretKey: 'client:key' }),
}
after(() => {
  for (const provider of Object.values(providers)) provider.close()
  server.closeAllConnections()
  server.close()
})

const ODD: Record<keyof typeof providers, unknown[]> = {
  Stripe: [
    ...[null, [], {}, 'text', { data: {}, has_more: false }],
    ...[{ data: [] }, { data: [], has_more: null }, { data: [], has_more: 'true' }, { data: [], has_more: true }],
    { data: [null], has_more: false },
  ],
  Primer: [null, [], {}, { data: null }, { data: [], nextCursor: 1 }, { data: [], nextCursor: {} }],
  Airwallex: [null, [], {}, { items: {} }, { items: [] }, { items: [], has_more: 'yes' }],
}

for (const [name, bodies] of Object.entries(ODD) as [keyof typeof ODD, unknown[]][])
  test(`${name}: a body that is no list, or does not say whether more follows, is an error and no shorter list`, async () => {
    for (const one of bodies) {
      body = JSON.stringify(one)
      const listed = Array.fromAsync(providers[name].list('1970-01-01T00:00:00Z') as AsyncIterable<unknown>)
      await assert.rejects(listed, (error) => error instanceof ProviderError, body)
    }
  })

const EMPTY: Record<keyof typeof providers, unknown> = {
  Stripe: { data: [], has_more: false },
  Primer: { data: [] },
  Airwallex: { items: [], has_more: false },
}

for (const [name, empty] of Object.entries(EMPTY) as [keyof typeof ODD, unknown][])
  test(`${name}: a page that cannot be read is read again, four times at most`, async () => {
    const list = () => Array.fromAsync(providers[name].list(new Date().toISOString()) as AsyncIterable<unknown>)
    body = JSON.stringify(empty)
    for (const [status, odd] of [
      [200, '<html>'],
      [200, '{}'],
      [500, '{}'],
      [429, '{}'],
    ] as const) {
      earlier = { status, body: odd, calls: 4 }
      assert.deepEqual(await list(), [])
      calls = 0
      earlier = { status, body: odd, calls: 9 }
      await assert.rejects(list(), ProviderError)
      assert.equal(calls, 5)
    }
    earlier.calls = 0
  })

for (const [name, provider] of Object.entries(providers) as [keyof typeof ODD, Provider][])
  test(`${name}: a charge that a proxy rejects with a page, and not with JSON, was not begun`, async () => {
    const request = chargeRequest('tok_visa', { providerCustomer: 'customer-1' })
    for (const [status, cause] of [
      [401, 'credentials'],
      [403, 'credentials'],
      [429, 'busy'],
    ] as const)
      for (const odd of ['<html>Sorry</html>', 'error code: 1015', '']) {
        earlier = { status, body: odd, calls: 9 }
        const { outcome, cause: told } = (await charging(provider).charge(request)) as {
          outcome: string
          cause?: string
        }
        assert.deepEqual([outcome, told], ['not_begun', cause], `${status} ${odd}`)
      }
    earlier = { status: 503, body: '<html>', calls: 9 }
    assert.equal((await charging(provider).charge(request)).outcome, 'unknown')
    earlier.calls = 0
  })

for (const [name, provider] of Object.entries(providers) as [keyof typeof ODD, Provider][])
  test(`${name}: an error without the provider's name of it, as a proxy sends it, rejects nothing and removes nothing`, async () => {
    const request = chargeRequest('tok_visa', { providerCustomer: 'customer-1' })
    const refund = { ...request, chargeTransactionId: 'pi_1', handle: null }
    for (const status of [400, 404, 422]) {
      earlier = { status, body: '{"message": "no Route matched with those values"}', calls: 99 }
      const all = [
        charging(provider).charge(request),
        ...[provider.refund(refund), provider.lookUpRefund(refund), provider.lookUp({ ...request, handle: 'pi_1' })],
        ...[provider.savedCard?.('pm_1'), provider.payerOf?.('pi_1'), provider.eraseCard?.('pm_1')],
        provider.eraseCustomer?.('customer-1', 'empty', undefined, 'pm_1'),
      ]
      for (const result of await Promise.all(all.filter((one) => one !== undefined)))
        assert.deepEqual(result, { outcome: 'unknown', why: `returned status ${status} with a body of another form` })
    }
    earlier.calls = 0
  })

test('NUL and halves of surrogate pairs, which PostgreSQL does not store, are replaced in names and values', async (t) => {
  const transport = new Transport(() => `http://127.0.0.1:${(server.address() as AddressInfo).port}`, 1)
  t.after(() => transport.close())
  body = String.raw`{"id": "pi_\u0000", "a\u0000": [{"b": "\ud83d"}], "kept": "\\u0000 \ud83d\ude00"}`
  const response = await transport.send({ method: 'GET', path: '/' }, new AbortController().signal)
  assert.deepEqual(response.body, { id: 'pi_\ufffd', 'a\ufffd': [{ b: '\ufffd' }], kept: '\\u0000 😀' })
})
