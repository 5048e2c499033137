// Signed webhooks of Primer of any form: each is stored and handled, or refused with a sentence, and none holds up the others.
import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { afterEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { adapters } from '../../../src/payments/providers/adapters.ts'
import { connectPrimer, PRIMER_SECRET, setUpPrimerShop } from '../../support/primer-billing.ts'
import { scrape } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const setup = setUpPrimerShop()
const { charged, rowsOf, isActive } = setup

const signedBy = (secret: string, body: string | Buffer) => createHmac('sha256', secret).update(body).digest('base64')

async function send(
  body: string,
  more: Record<string, string> = {},
  secret = PRIMER_SECRET,
  url = setup.account.eventsUrl,
) {
  const signed = { 'content-type': 'application/json', 'x-signature-primary': signedBy(secret, body) }
  const headers = { ...signed, ...more }
  const response = await fetch(url, { method: 'POST', headers, body })
  return { status: response.status, text: await response.text() }
}

const signedAt = () => String(Math.floor(Date.now() / 1000))
const NUL = '\u0000'
const PAN = '4242424242424242'

const webhook = (eventType: unknown, more: object = {}) =>
  JSON.stringify({ eventType, date: '2026-11-01T10:00:00.123456', version: '2.4', signedAt: signedAt(), ...more })
const payment = (more: object = {}) => webhook('PAYMENT.STATUS', { payment: { id: 'unknown', ...more } })

/** A dispute as Primer's reference shows it: without `signedAt`. */
const dispute = (paymentId: unknown, more: object = {}) =>
  JSON.stringify({
    ...{ eventType: 'DISPUTE.STATUS', version: '2.4', type: 'DISPUTE', status: 'LOST' },
    ...{ primerAccountId: 'acct_123456789', transactionId: 'txn_987654321', orderId: 'order_12345', paymentId },
    paymentMethod: { type: 'CARD', card: { network: 'VISA', last4: '1234', expiry: '12/25' } },
    ...{ processor: 'ADYEN', processorDisputeId: `dispute_${paymentId}`, receivedAt: '2025-09-23T13:00:00Z' },
    ...{ challengeRequiredBy: '2025-10-01T13:00:00Z', reason: 'Fraudulent transaction', reasonCode: '4837' },
    ...{ processorReason: 'fraud', amount: 1050, currency: 'USD', merchantId: 'merchant_1', ...more },
  })

const TRIED = `select from pending_notifications where event -> 'payment' ->> 'id' = $1 and attempts > 0`
const storedEvents = async () =>
  (await setup.billing.db.query('select event from pending_notifications')).map(({ event }) => event!)
const allHandled = () => until('every webhook to be handled', async () => (await storedEvents()).length === 0)

const stored: Record<string, () => string> = {
  'the message of the test button': () => '{"message":"Testing your webhook connection"}',
  'the same with the time of its signature': () =>
    `{"message":"Testing your webhook connection","signedAt":"${signedAt()}"}`,
  'the same with other fields': () => '{"message":"x","version":"2.4","date":"2026-11-01","payment":{"id":"p"}}',
  'a message that is no text': () => '{"message":{"text":"x"}}',
  'an unknown type': () => webhook('HYPERDRIVE.ENGAGED', { payment: { id: 'x' } }),
  'a very long type': () => webhook('X'.repeat(5000)),
  'a long type of emoji': () => webhook(`x${'😀'.repeat(80)}`),
  'a failed workflow run': () =>
    JSON.stringify({
      ...{ eventType: 'WORKFLOW_RUN.FAILED', version: '1.0', date: '2024-02-21 15:36:16.167687' },
      ...{ primerAccountId: 'a', triggerEventId: 'DdRZ6YY0', workflow: { id: 'w', name: 'MIT', version: 8 } },
      run: { timestamp: '2024-03-07T12:20:14.394429', id: 'r', status: 'FAILED', lastError: { message: 'x' } },
    }),
  'a failed capture': () =>
    webhook('PAYMENT.CAPTURE.FAILED', {
      ...{ payment: { id: 'DdRZ6YY0', amount: 3000, currencyCode: 'GBP', orderId: 'order-123' } },
      ...{ requestAmount: 1500, transactionEvent: { id: 'a1b2c3d4-e5f6-7890-abcd-ef1234567890' } },
    }),
  'the opening of a dispute, which has no amount': () =>
    '{"eventType":"DISPUTE.OPENED","version":"2.4","processorId":"Adyen","processorDisputeId":"d","paymentId":"p"}',
  'an unknown version': () => payment().replace('2.4', '99.0'),
  'a version that is a number': () => payment().replace('"2.4"', '2.4'),
  'a time that is a number': () => webhook('PAYMENT.STATUS', { signedAt: Number(signedAt()) }),
  'no payment': () => webhook('PAYMENT.STATUS'),
  'a payment of null': () => webhook('PAYMENT.STATUS', { payment: null }),
  'a payment that is a text': () => webhook('PAYMENT.STATUS', { payment: 'p' }),
  'a list of payments': () => webhook('PAYMENT.REFUND', { payment: [{ id: 'p' }] }),
  'a payment without id': () => payment({ id: undefined }),
  'a payment whose id is a number': () => payment({ id: 7 }),
  'a payment whose id is an object': () => payment({ id: { b: 1, a: 2 } }),
  'a payment whose id is a path': () => payment({ id: '../payment-instruments' }),
  'metadata of null': () => payment({ metadata: null }),
  'metadata that is a list': () => payment({ metadata: ['tundish_order'] }),
  'an order that is a number': () => payment({ metadata: { tundish_order: 7 } }),
  'an order that is no UUID': () => payment({ metadata: { tundish_order: `'; drop table orders` } }),
  'an order that is not here': () => payment({ metadata: { tundish_order: '0191d0a3-6a1f-7c44-9a50-0a4a3c7e1f01' } }),
  'an amount beyond all integers': () => payment({ amount: 1 }).replace('"amount":1', `"amount":${'9'.repeat(300)}`),
  'a negative amount': () => payment({ amount: -1 }),
  'an unknown currency': () => payment({ currencyCode: 'XXX' }),
  'an odd date': () => webhook('PAYMENT.STATUS', { date: 'yesterday', payment: { id: 'unknown', dateUpdated: 7 } }),
  'a dispute of null in every place': () =>
    '{"eventType":"DISPUTE.STATUS","type":null,"status":null,"paymentId":null,"processorDisputeId":null,"amount":null}',
  'a body of 900 KB': () => payment({ descriptor: 'x'.repeat(900_000) }),
}

for (const [what, body] of Object.entries(stored))
  test(`200 for a webhook with ${what}, which is handled`, async () => {
    const { status, text } = await send(body())
    assert.deepEqual([status, text], [200, '{"received":true}'])
    await allHandled()
  })

const refused: Record<string, () => string> = {
  'no body': () => '',
  'no JSON': () => 'hello',
  'a byte order mark': () => `\ufeff${payment()}`,
  'a number': () => '7',
  'an array': () => `[${payment()}]`,
  'no type': () => webhook(undefined),
  'a type of null': () => webhook(null),
  'an empty type': () => webhook(''),
  'a type that is a list': () => webhook(['PAYMENT.STATUS']),
  'U+0000 in the id of its payment': () => payment({ id: `p${NUL}` }),
  'half of a surrogate pair': () => payment({ id: 'p\ud800' }),
  'a number beyond all numbers': () => payment({ amount: 1 }).replace('"amount":1', '"amount":1e400'),
  'a hundred thousand levels': () => payment({ id: 1 }).replace(':1}', `:${'['.repeat(1e5)}${']'.repeat(1e5)}}`),
  'a key twice': () => `{"eventType":"PAYMENT.STATUS","eventType":"X","signedAt":"${signedAt()}"}`,
  'a time that is no number': () => webhook('PAYMENT.STATUS', { signedAt: '2026-11-01T10:00:00Z' }),
  'a time of null': () => webhook('PAYMENT.STATUS', { signedAt: null }),
  'an endless time': () => webhook('PAYMENT.STATUS', { signedAt: 'Infinity' }),
  'a dispute that was signed an hour ago': () => dispute('p', { signedAt: String(Number(signedAt()) - 3600) }),
}

for (const [what, body] of Object.entries(refused))
  test(`400 and a sentence for ${what}`, async () => {
    const { status, text } = await send(body())
    assert.equal(status, 400, text)
    assert.match(JSON.parse(text).message, /^\w.{20,}\.( Its signature .*\.)?$/)
  })

test('400 for bytes that are not UTF-8', async () => {
  const body = Buffer.concat([Buffer.from('{"message":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
  const signature = signedBy(PRIMER_SECRET, body)
  const headers = { 'content-type': 'application/json', 'x-signature-primary': signature }
  assert.equal((await fetch(setup.account.eventsUrl, { method: 'POST', headers, body })).status, 400)
})

test('413 for a webhook of 10 MB, and 415 for one that is compressed or of another type', async () => {
  assert.equal((await send(payment({ descriptor: 'x'.repeat(10_000_000) }))).status, 413)
  assert.equal((await send(payment(), { 'content-encoding': 'gzip' })).status, 415)
  assert.equal((await send(payment(), { 'content-type': 'application/xml' })).status, 415)
  assert.equal((await send(payment(), { 'content-type': 'Application/JSON; charset="UTF-8"' })).status, 200)
})

test('a stored webhook that cannot be read, as of an earlier version, does not hold up the others', async () => {
  const { user, payment } = await charged()
  const { db } = setup.billing
  await db.query(
    `insert into pending_notifications
       (organization_id, psp, psp_merchant_id, notification_id, event, received_at, due_at)
     select organization_id, psp, psp_merchant_id, 'unread', '{"signedAt":"1"}', at, at
     from merchant_accounts, (select db_clock() as at) now where psp = 'primer' and organization_id = $1`,
    [setup.shop.id],
  )
  await setup.primer.control('/refunds', { id: payment })
  await until('the refund', async () => !(await isActive(user)))
  await db.query("delete from pending_notifications where notification_id = 'unread'")
})

test('the essence of any webhook is read as the webhook itself', () => {
  const names = [
    'eventType',
    'message',
    'signedAt',
    'date',
    'payment',
    'paymentId',
    'id',
    'status',
    'metadata',
    'amount',
  ]
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('PAYMENT.STATUS', 'p', '', 7, 1.5, null, true),
      tie('object'),
    ),
    object: fc.dictionary(fc.constantFrom(...names), tie('any')),
  })).object
  const { readNotification, essenceOf } = adapters['primer']!
  fc.assert(
    fc.property(value, (body) => {
      const first = readNotification(body)
      if (!first) return
      const again = readNotification(JSON.parse(JSON.stringify(essenceOf(first))))
      assert.deepEqual([again?.id, again?.kind, again?.hint], [first.id, first.kind, first.hint])
    }),
    { numRuns: 2000 },
  )
})

describe('about a charge that is here', () => {
  afterEach(() => setup.primer.control('/faults/clear'))

  const leftOut = () => setup.billing.server.logLines().filter((line) => line.includes('A dispute was not recorded'))

  test('a dispute in the form of Primer’s reference, without the time of a signature, is recorded once', async () => {
    const { user, orderId, payment } = await charged()
    for (let n = 0; n < 2; n++) assert.equal((await send(dispute(payment))).status, 200)
    await allHandled()
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'chargeback refunded 10.5'])
    assert.equal(await isActive(user), false)
  })

  const unreadable: Record<string, object> = {
    'an unknown state': { status: 'ARBITRATED' },
    'no state': { status: undefined },
    'no amount': { amount: null },
    'an amount of 0': { amount: 0 },
    'a negative amount': { amount: -1050 },
    'a fraction of a cent': { amount: 10.5 },
    'an amount that is a text': { amount: '1050' },
    'an amount beyond all integers': { amount: 1e30 },
    'an unknown currency': { currency: 'XXQ' },
    'a currency whose decimals are in doubt': { currency: 'HUF' },
    'no id': { processorDisputeId: undefined },
  }
  for (const [what, more] of Object.entries(unreadable))
    test(`a dispute with ${what} is named in the log and counted, because nothing else reports it`, async () => {
      const { orderId, payment } = await charged()
      const before = leftOut().length
      assert.equal((await send(dispute(payment, more))).status, 200)
      await until('it to be logged', async () => leftOut().length > before)
      await allHandled()
      assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5'])
      const line = JSON.parse(leftOut().at(-1)!)
      assert.equal(line.psp_transaction_id, payment)
      assert.match(await scrape(setup.billing.server), /about="dispute",outcome="left_out"/)
    })

  test('an odd dispute of a payment of others is not named', async () => {
    const before = leftOut().length
    const made = { orderId: 'others', amount: 500, currencyCode: 'USD', paymentMethodToken: 'tok_visa~others' }
    const { body } = await setup.primer.call('POST', '/payments', made)
    assert.equal((await send(dispute(body['id'], { amount: null }))).status, 200)
    await allHandled()
    assert.equal(leftOut().length, before)
  })

  test('a dispute of a payment whose order was lost with a restored backup is kept until the charge is adopted', async () => {
    const { orderId } = await charged()
    const made = { amount: 1050, currencyCode: 'USD', paymentMethodToken: 'tok_visa~lost', orderId: 'a-key' }
    const metadata = { tundish_order: randomUUID(), tundish_key: 'a-key' }
    const { body } = await setup.primer.call('POST', '/payments', { ...made, metadata })
    assert.equal((await send(dispute(body['id']))).status, 200)
    const kept = `select from pending_notifications where event ->> 'paymentId' = $1 and attempts > 0`
    await until('it to be kept', async () => (await setup.billing.db.query(kept, [String(body['id'])])).length > 0)
    await setup.billing.db.query('update orders set charge_transaction_id = $1 where order_id = $2', [
      String(body['id']),
      orderId,
    ])
    await setup.retry()
    await allHandled()
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'chargeback refunded 10.5'])
  })

  test('a dispute in odd dates is recorded', async () => {
    const dates = [
      null,
      'soon',
      7,
      '2025-09-23',
      '2025-09-23T25:61:00Z',
      '0000-01-01T00:00:00Z',
      '2025-09-23 13:00:00.123456789+0200',
    ]
    for (const receivedAt of dates) {
      const { orderId, payment } = await charged()
      assert.equal((await send(dispute(payment, { receivedAt }))).status, 200)
      await allHandled()
      assert.equal((await rowsOf(orderId)).at(-1), 'chargeback refunded 10.5', String(receivedAt))
    }
  })

  test('a refund that fails later is undone by a webhook about the failed operation alone', async () => {
    const { user, orderId, payment } = await charged()
    assert.equal((await setup.shop.refund(user, orderId, { idempotency_key: 'r' })).body.refund_status, 'succeeded')
    await setup.primer.control('/events', { isOff: true })
    await setup.primer.control('/refunds/fail', { id: payment, place: 1 })
    await setup.primer.control('/events', { isOff: false })
    const failed = webhook('PAYMENT.REFUND.FAILED', {
      ...{ payment: { id: payment, amount: 1050, currencyCode: 'USD', orderId: 'x' }, requestAmount: 1050 },
      transactionEvent: { id: 'a1b2c3d4-e5f6-7890-abcd-ef1234567890' },
    })
    assert.equal((await send(failed)).status, 200)
    await until('the refund to be undone', () => isActive(user))
    assert.deepEqual((await rowsOf(orderId)).at(-1), 'refund failed 10.5')
  })

  for (const kind of ['error_before', 'busy', 'forbidden', 'drop_before'])
    test(`a refund that cannot be looked up at first (${kind}) is kept, and recorded once`, async () => {
      const { user, orderId, payment } = await charged()
      await setup.primer.control('/faults', { method: 'GET', path: `/payments/${payment}`, kind, times: 100_000 })
      await setup.primer.control('/refunds', { id: payment })
      assert.equal((await send(webhook('PAYMENT.REFUND', { payment: { id: payment } }))).status, 200)
      await until('it to be tried', async () => (await setup.billing.db.query(TRIED, [payment])).length > 0)
      await setup.primer.control('/faults/clear')
      await setup.retry()
      await until('the refund', async () => !(await isActive(user)))
      await allHandled()
      assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'refund refunded 10.5'])
    })

  test('nothing about it follows from a webhook of another organization, signed and at the same account of Primer', async () => {
    const other = await setup.billing.organization()
    const { eventsUrl } = await connectPrimer(setup.billing, other, setup.primer)
    await setup.primer.control('/webhook', { url: setup.account.eventsUrl, secret: PRIMER_SECRET })
    const { user, orderId, payment } = await charged()
    const metadata = { tundish_order: orderId }
    for (const body of [
      dispute(payment),
      dispute(payment, { amount: 0 }),
      webhook('PAYMENT.STATUS', { payment: { id: payment, metadata } }),
    ])
      assert.equal((await send(body, {}, PRIMER_SECRET, eventsUrl)).status, 200)
    await allHandled()
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5'])
    assert.equal(await isActive(user), true)
    assert.ok(!leftOut().some((line) => line.includes(other.id)))
  })

  test('no card number of a webhook is stored or logged', async () => {
    const { payment } = await charged()
    await setup.primer.control('/faults', {
      method: 'GET',
      path: `/payments/${payment}`,
      kind: 'error_before',
      times: 9,
    })
    const odd = {
      id: payment,
      dateUpdated: { pan: PAN },
      status: [PAN],
      metadata: { pan: PAN, tundish_order: { pan: PAN } },
    }
    const more = { cardholderName: PAN, paymentMethod: { paymentMethodData: { number: PAN } } }
    const body = webhook('PAYMENT.REFUND', { payment: { ...odd, ...more }, note: PAN, message: PAN })
    assert.equal((await send(body)).status, 200)
    await until('it to be tried', async () => (await storedEvents()).some((event) => event.includes(payment)))
    assert.ok(!(await storedEvents()).join().includes(PAN))
    await setup.primer.control('/faults/clear')
    await setup.retry()
    await allHandled()
    assert.ok(!setup.billing.server.logLines().join('\n').includes(PAN))
  })
})
