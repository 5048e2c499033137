// Stripe goes away between the calls of one charge or refund: what it has responded to already counts as begun.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { assertSettled, chargeRequest } from '../charging.ts'
import { openStripeAccount } from './stripe-account.ts'

const account = await openStripeAccount()
after(() => account.cleanUp())

test('unknown where Stripe knows the key and is gone before it is asked for what the key refers to', async () => {
  const request = chargeRequest('pm_card_visa')
  assertSettled(await account.charge(request), 'succeeded')
  const relay = await relayUntil(account.url, 400)
  // As after a restored backup: the same purchase under another order.
  const again = await account.adapter({ apiUrl: relay }).prepare({ ...request, reference: randomUUID() })
  assert.deepEqual(again, { outcome: 'unknown', why: 'no connection was made (ECONNREFUSED)' })
})

test('unknown where Stripe rejects a refund that it knows and is gone before its list is read', async () => {
  const request = chargeRequest('pm_card_visa')
  const charged = await account.charge(request)
  assertSettled(charged, 'succeeded')
  const refund = { ...request, key: randomUUID(), chargeTransactionId: charged.details.psp_transaction_id! }
  assertSettled(await account.provider.refund(refund), 'succeeded')
  const relay = await relayUntil(account.url, 400)
  const again = await account.adapter({ apiUrl: relay }).refund({ ...refund, reference: randomUUID() })
  assert.deepEqual(again, { outcome: 'unknown', why: 'no connection was made (ECONNREFUSED)' })
})

test('what Stripe does not have is missing, and a 404 of a proxy in front of it says nothing', async (t) => {
  let body: object = { error: { type: 'invalid_request_error', code: 'resource_missing' } }
  const proxy = createServer((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => proxy.close())
  const apiUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const stripe = account.adapter({ apiUrl })
  const all = async () => [
    await stripe.savedCard('pm_1'),
    await stripe.payerOf('pi_1'),
    await stripe.feeOf('txn_1'),
    await stripe.eraseCustomer('cus_1', 'empty'),
  ]
  assert.deepEqual(await all(), [undefined, undefined, undefined, { outcome: 'erased' }])
  body = { message: 'no Route matched with those values' }
  const unknown = { outcome: 'unknown', why: 'returned status 404 with a body of another form' }
  assert.deepEqual(await all(), [unknown, unknown, unknown, unknown])
})

test('a card that is saved for an Account, and so has no customer, is not detached', async (t) => {
  const card = { id: 'pm_1', object: 'payment_method', customer: null, customer_account: 'acct_1' }
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const saved = await account.adapter({ apiUrl }).savedCard('pm_1')
  assert.equal(saved && 'customer' in saved && saved.customer, 'acct_1')
})

/** Passes calls on to a server and accepts no connection from the first response with this status on. */
async function relayUntil(target: string, status: number): Promise<string> {
  const relay = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { host: _host, connection: _connection, ...headers } = request.headers as Record<string, string>
    const { method = 'GET', url = '/' } = request
    const body = Buffer.concat(chunks)
    const passed = await fetch(target + url, { method, headers, ...(body.length > 0 && { body }) })
    if (passed.status === status) relay.close()
    response.writeHead(passed.status, { 'content-type': 'application/json', connection: 'close' })
    response.end(await passed.text())
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
}
