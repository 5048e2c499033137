// Signed events of Stripe of any form: each is stored and handled, or refused with a sentence.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signature } from '../../../src/simulators/stripe/events.ts'
import { until } from '../../support/time.ts'
import { setUpStripeShop } from './stripe-shop.ts'

const setup = setUpStripeShop({ isFollowed: true })

async function send(body: string): Promise<{ status: number; text: string }> {
  const header = signature(body, [setup.account.secret], Math.floor(Date.now() / 1000))
  const headers = { 'content-type': 'application/json', 'stripe-signature': header }
  const response = await fetch(setup.account.eventsUrl, { method: 'POST', headers, body })
  return { status: response.status, text: await response.text() }
}

const CREATED = 1_790_000_000
let count = 0
const eventOf = (type: string, data: object, more: object = {}) =>
  JSON.stringify({
    ...{ id: `evt_odd${++count}`, object: 'event', type, created: CREATED, api_version: '2026-01-28.clover' },
    ...{ livemode: false, data, ...more },
  })
const event = (type: string, object: object, more: object = {}) => eventOf(type, { object }, more)
const invoice = (more: object = {}) => event('invoice.paid', { id: 'in_1', object: 'invoice' }, more)
const payment = (more: object) => event('payment_intent.succeeded', { id: 'pi_1', object: 'payment_intent', ...more })
const dispute = (balance_transactions: unknown) =>
  event('charge.dispute.closed', { id: 'du_1', object: 'dispute', charge: 'ch_1', balance_transactions })
const customer = { id: 'cus_1', object: 'customer' }
const noted = (note: string) => event('invoice.paid', { id: 'in_1', object: 'invoice', description: note })
const NUL = '\u0000'

const stored: Record<string, string> = {
  'an unknown type': event('hyperdrive.engaged', { id: 'hd_1', object: 'hyperdrive' }),
  'a type of one word': event('ping', { id: 'x' }),
  'a very long type': event('x.'.repeat(5000), { id: 'x' }),
  'an object without id': event('customer.updated', { object: 'customer' }),
  'an object whose id is a number': event('customer.updated', { id: 7, object: 'customer' }),
  'an object whose id is an object': event('charge.updated', { id: { id: 'ch' }, object: 'charge' }),
  'an object whose id is a path': event('charge.updated', { id: '../accounts', object: 'charge' }),
  'an object of the kind __proto__': event('x.y', { id: 'x', object: '__proto__' }),
  'a payment without id': payment({ id: undefined }),
  'a payment with metadata of null': payment({ metadata: null }),
  'a payment with an order that is a number': payment({ metadata: { tundish_order: 7 } }),
  'previous attributes of null': eventOf('customer.updated', { object: customer, previous_attributes: null }),
  'a list of previous attributes': eventOf('customer.updated', { object: customer, previous_attributes: ['customer'] }),
  'an odd previous customer': eventOf('payment_method.detached', {
    object: { id: 'pm_1', object: 'payment_method', customer: null },
    previous_attributes: { customer: { id: 7 } },
  }),
  'a customer that is not there': event('customer.discount.deleted', {
    id: 'di_1',
    object: 'discount',
    customer: 'cus_1',
  }),
  'the previous customer of a card that is not there': eventOf('payment_method.detached', {
    object: { id: 'pm_1', object: 'payment_method', customer: null },
    previous_attributes: { customer: 'cus_1' },
  }),
  'an old api_version': invoice({ api_version: '2011-06-21' }),
  'api_version null': invoice({ api_version: null }),
  'an account of Connect': invoice({ account: 'acct_connected' }),
  'the other mode': invoice({ livemode: true }),
  'a time that is a text': invoice({ created: '2026-01-01' }),
  'an exchange rate with an exponent': dispute([{ id: 'txn_1', exchange_rate: 6.5 }]).replace('6.5', '6.1e-05'),
  'a hundred balance transactions': dispute(Array.from({ length: 100 }, (_, n) => ({ id: `txn_${n}` }))),
  'odd balance transactions': dispute([null, 7, {}, []]),
  'an object of 900 KB': noted('x'.repeat(900_000)),
}

const refused: Record<string, string> = {
  'an empty id': invoice({ id: '' }),
  'an id of 300 characters': invoice({ id: 'e'.repeat(300) }),
  'an empty type': event('', { id: 'x' }),
  'U+0000 in its id': invoice({ id: `evt_${NUL}` }),
  'U+0000 in the id of its object': payment({ id: `pi_${NUL}` }),
  'half of a surrogate pair': payment({ id: 'pi_\ud800' }),
  'a time beyond all numbers': invoice().replace(String(CREATED), '1e400'),
  'a hundred thousand levels': noted('?').replace('"?"', `${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}`),
  'a key twice': '{"id":"evt_a","id":"evt_b","object":"event","type":"a.b","data":{"object":{}}}',
  'no JSON': 'hello',
  'no body': '',
}

for (const [what, body] of Object.entries(stored))
  test(`200 for an event with ${what}, which is handled`, async () => {
    const { status, text } = await send(body)
    assert.deepEqual([status, text], [200, '{"received":true}'])
  })

for (const [what, body] of Object.entries(refused))
  test(`400 and a sentence for ${what}`, async () => {
    const { status, text } = await send(body)
    assert.equal(status, 400, text)
    assert.match(JSON.parse(text).message, /^\w.{20,}\.$/)
  })

test('413 for an event of 2 MB', async () => {
  const { status, text } = await send(noted('x'.repeat(2_000_000)))
  assert.deepEqual([status, text], [413, '{"message":"The body is larger than 1 MiB."}'])
})

test('no odd event waits to be handled again, or brings the secret into the log', async () => {
  await until('all to be handled', async () => {
    const [row] = await setup.billing.db.query('select count(*) as n from pending_notifications')
    return row!.n === '0'
  })
  assert.ok(!setup.billing.server.logLines().join('\n').includes(setup.account.secret))
})
