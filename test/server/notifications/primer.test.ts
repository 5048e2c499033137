// What happens at Primer reaches the report and consumables by its webhooks: signed, repeated, late, and before an order is settled.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { afterEach, describe, test } from 'node:test'
import { settled } from '../../support/billing.ts'
import { PRIMER_SECRET, paymentOf, setUpPrimerShop } from '../../support/primer-billing.ts'
import { until } from '../../support/time.ts'

const setup = setUpPrimerShop()
const { charged, rowsOf, isActive, retry } = setup
const DAY_MS = 86_400_000

afterEach(async () => {
  await setup.primer.control('/events', { copies: 1, delayMs: 0, shuffled: false, isOff: false })
  await setup.primer.control('/faults/clear')
  await setup.billing.db.query("delete from pending_notifications where notification_id = 'held'")
})

const dispute = (id: string, status: string, more: object = {}) =>
  setup.primer.control('/disputes', { id, status, ...more })

/** How often each stored webhook about a payment was tried: those of earlier tests may be stored at any time among them. */
const stored = async (payment: string, kind = '%') => {
  const text = `select attempts from pending_notifications
    where coalesce(event ->> 'paymentId', event -> 'payment' ->> 'id') = $1 and event ->> 'eventType' like $2`
  return (await setup.billing.db.query(text, [payment, kind])).map(({ attempts }) => Number(attempts))
}

/** How many webhooks of a kind were handled so far. */
const handled = async (kind: string) => {
  const text = 'select count(*) as n from provider_notifications where kind = $1'
  return Number((await setup.billing.db.query(text, [kind]))[0]!.n)
}

/** Stores a webhook that another process is handling: until `retry` this one handles no others of the account. */
const holdAll = () =>
  setup.billing.db.query(
    `insert into pending_notifications
       (organization_id, psp, psp_merchant_id, notification_id, event, received_at, due_at, lease_until)
     select organization_id, psp, psp_merchant_id, 'held', '{"message":true}', at, at, at + interval '9 minutes'
     from merchant_accounts, (select db_clock() as at) now where psp = 'primer'`,
  )

describe('the endpoint responds', () => {
  const nowS = () => Math.floor(Date.now() / 1000)
  const webhook = (more: object = {}) =>
    JSON.stringify({ eventType: 'PAYMENT.STATUS', signedAt: String(nowS()), payment: { id: 'unknown' }, ...more })
  const send = async (body: string, signatures: Record<string, string>) => {
    const response = await sendWebhook(setup.account.eventsUrl, body, signatures)
    return [response.status, response.headers.get('x-error-code') ?? (await response.text())]
  }
  const primary = (secret: string, body: string) => ({ 'x-signature-primary': signedBy(secret, body) })
  const received = [200, '{"received":true}']

  test('200 for an unknown payment, an unknown kind, and the message of the test button', async () => {
    for (const body of [webhook(), webhook({ eventType: 'PAYOUT.NEW' }), '{"message":"Webhook test"}'])
      assert.deepEqual(await send(body, primary(PRIMER_SECRET, body)), received)
  })

  test('200 for either of both signatures while a secret is rotated', async () => {
    const body = webhook({ orderId: 'rotated' })
    const other = signedBy('another-secret', body)
    const own = signedBy(PRIMER_SECRET, body)
    assert.deepEqual(await send(body, { 'x-signature-primary': other, 'x-signature-secondary': own }), received)
    assert.deepEqual(await send(body, { 'x-signature-secondary': own }), received)
    assert.deepEqual(await send(body, { 'x-signature-secondary': other }), [400, 'invalid_signature'])
  })

  const wrong: Record<string, () => [body: string, signatures: Record<string, string>]> = {
    'no signature': () => [webhook(), {}],
    'a signature of another secret': () => [webhook(), primary('another-secret', webhook())],
    'a signature of another body': () => [webhook({ date: 'x' }), primary(PRIMER_SECRET, webhook())],
    'a signature that is no base64 of the right length': () => [webhook(), { 'x-signature-primary': 'AAAA' }],
    'a time of five minutes ago': () => {
      const body = webhook({ signedAt: String(nowS() - 301) })
      return [body, primary(PRIMER_SECRET, body)]
    },
    'a time in the future': () => {
      const body = webhook({ signedAt: String(nowS() + 900) })
      return [body, primary(PRIMER_SECRET, body)]
    },
    'an event without its time': () => {
      const body = webhook({ signedAt: undefined })
      return [body, primary(PRIMER_SECRET, body)]
    },
  }
  for (const [what, given] of Object.entries(wrong))
    test(`400 invalid_signature for ${what}`, async () =>
      assert.deepEqual(await send(...given()), [400, 'invalid_signature']))

  for (const body of ['[]', '{}', '{"eventType":5}', '"text"', 'null'])
    test(`400 invalid_value for the signed body ${body}`, async () =>
      assert.equal((await send(body, primary(PRIMER_SECRET, body)))[0], 400))

  test('200 through the whole rotation of a secret at Primer', async () => {
    const arrived = async (what: string) => {
      const { user, payment } = await charged()
      await setup.primer.control('/refunds', { id: payment })
      await until(what, async () => !(await isActive(user)))
    }
    const next = 'webhook-secret-0002'
    await setup.primer.control('/webhook/rotate', { secret: next, keep_ms: DAY_MS })
    await arrived('it to be accepted by the secret before, in the second header')
    await setup.account.connect([next, PRIMER_SECRET])
    await setup.primer.control('/clock', { advance_ms: DAY_MS })
    await arrived('it to be accepted by the new secret')
    await setup.account.connect([next, PRIMER_SECRET])
    await setup.primer.control('/webhook', { url: setup.account.eventsUrl, secret: PRIMER_SECRET })
  })
})

describe('by webhook', () => {
  test('a refund made at Primer is a refund of the order, and a full one revokes the consumable', async () => {
    const { user, orderId, payment } = await charged()
    await setup.primer.control('/refunds', { id: payment, amount: 300 })
    await until('the part to be refunded', async () => (await rowsOf(orderId)).length === 2)
    assert.equal(await isActive(user), true)
    await setup.primer.control('/refunds', { id: payment })
    await until('the rest to be refunded', async () => !(await isActive(user)))
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'refund refunded 3', 'refund refunded 7.5'])
  })

  test('webhooks that come three times and out of order change nothing more', async () => {
    const { user, orderId, payment } = await charged()
    await setup.primer.control('/events', { copies: 3, delayMs: 300, shuffled: true })
    await setup.primer.control('/refunds', { id: payment, amount: 300 })
    await setup.primer.control('/refunds', { id: payment })
    await until('all to be refunded', async () => !(await isActive(user)))
    await until('every stored webhook to be handled', async () => (await stored(payment)).length === 0)
    assert.equal((await rowsOf(orderId)).length, 3)
  })

  test('a refund that fails later is undone', async () => {
    const { user, orderId } = await charged('tok_refund_fails_later')
    assert.equal((await setup.shop.refund(user, orderId, { idempotency_key: 'r' })).body.refund_status, 'succeeded')
    assert.equal(await isActive(user), false)
    await setup.primer.control('/clock', { advance_ms: DAY_MS })
    await until('the refund to be undone', () => isActive(user))
    assert.deepEqual((await rowsOf(orderId)).at(-1), 'refund failed 10.5')
  })

  test('an inquiry and an open dispute take nothing; a lost one is a chargeback, and a late webhook changes nothing', async () => {
    const { user, orderId, payment } = await charged()
    const before = await handled('DISPUTE.STATUS')
    await dispute(payment, 'LOST', { type: 'RETRIEVAL' })
    await dispute(payment, 'OPEN')
    await until('both to be handled', async () => (await handled('DISPUTE.STATUS')) >= before + 2)
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5'])
    assert.equal(await isActive(user), true)
    await dispute(payment, 'LOST')
    await until('the chargeback', async () => (await rowsOf(orderId)).length === 2)
    await dispute(payment, 'OPEN')
    await until('the last one to be handled', async () => (await handled('DISPUTE.STATUS')) >= before + 4)
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'chargeback refunded 10.5'])
    assert.equal(await isActive(user), false)
  })

  test('states of a dispute that are handled together are recorded in the order in which they came', async () => {
    const { user, orderId, payment } = await charged()
    await holdAll()
    for (const [n, status] of ['OPEN', 'LOST', 'OPEN', 'WON'].entries()) {
      await dispute(payment, status)
      await until('the webhook to be stored', async () => (await stored(payment, 'DISPUTE.STATUS')).length > n)
    }
    await retry()
    await until('every webhook to be handled', async () => (await stored(payment)).length === 0)
    const reversed = ['chargeback refunded 10.5', 'chargeback_reversal succeeded 10.5']
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', ...reversed])
    assert.equal(await isActive(user), true)
  })

  test('a payment that settles an hour later settles the order', async () => {
    const { user } = await setup.account.customer('tok_pending_3600000ms')
    const charge = () => setup.shop.charge(user, { idempotency_key: 'late' })
    assert.equal((await charge()).body.checkout_status, 'processing')
    await setup.primer.control('/clock', { advance_ms: 3_600_000 })
    assert.equal((await settled(charge)).body.checkout_status, 'succeeded')
  })

  test('refunds and disputes of payments that others made at the account change nothing', async () => {
    const made = { orderId: 'of-others', amount: 500, currencyCode: 'USD', paymentMethodToken: 'tok_visa~others' }
    const { body } = await setup.primer.call('POST', '/payments', made)
    const [refunds, disputes] = [await handled('PAYMENT.REFUND'), await handled('DISPUTE.STATUS')]
    await setup.primer.control('/refunds', { id: body['id'], amount: 100 })
    await dispute(String(body['id']), 'LOST')
    await until('the refund to be handled', async () => (await handled('PAYMENT.REFUND')) > refunds)
    await until('the dispute to be handled', async () => (await handled('DISPUTE.STATUS')) > disputes)
    const found = await setup.billing.db.query('select from report_transactions where psp_transaction_id like $1', [
      `${body['id']}%`,
    ])
    assert.deepEqual(found, [])
  })
})

describe('while the order is in progress', () => {
  /** A charge that Primer made, of which the server does not know the outcome and cannot look it up. */
  async function unknownHere() {
    const { user } = await setup.account.customer('tok_drop_after_once')
    await setup.primer.control('/events', { isOff: true })
    await setup.primer.control('/faults', { method: 'GET', path: '/payments', kind: 'error_before', times: 100_000 })
    const charge = () => setup.shop.charge(user, { idempotency_key: 'in-progress' })
    const { body } = await charge()
    assert.equal(body.checkout_status, 'processing')
    await setup.primer.control('/events', { isOff: false })
    const payment = (await setup.primer.ledger()).find(({ metadata }) => metadata['tundish_order'] === body.order_id)!
    return { user, charge, orderId: String(body.order_id), payment: payment.payment }
  }
  /** The webhook about a payment was tried, and is kept. */
  const untilKept = (payment: string) =>
    until('the webhook to be kept', async () => (await stored(payment)).some((tries) => tries > 0))
  const settleNow = async (charge: Parameters<typeof settled>[0]) => {
    await setup.primer.control('/faults/clear')
    await setup.billing.db.query("update orders set next_look_at = db_clock() where status = 'processing'")
    assert.equal((await settled(charge)).body.checkout_status, 'succeeded')
    await retry()
  }

  test('a refund is kept until the order is settled', async () => {
    const { user, charge, orderId, payment } = await unknownHere()
    await setup.primer.control('/refunds', { id: payment })
    await untilKept(payment)
    assert.deepEqual(await rowsOf(orderId), [])
    await settleNow(charge)
    await until('the refund', async () => !(await isActive(user)))
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'refund refunded 10.5'])
  })

  test('a lost dispute is kept until the order is settled', async () => {
    const { user, charge, orderId, payment } = await unknownHere()
    await dispute(payment, 'LOST')
    await untilKept(payment)
    await settleNow(charge)
    await until('the chargeback', async () => (await rowsOf(orderId)).length === 2)
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'chargeback refunded 10.5'])
    assert.equal(await isActive(user), false)
  })

  test('a dispute settles an order whose outcome can be looked up', async () => {
    const { charge, orderId, payment } = await unknownHere()
    await setup.primer.control('/faults/clear')
    assert.equal(payment, await paymentOf(setup.primer, orderId))
    await dispute(payment, 'LOST')
    await until('both', async () => (await rowsOf(orderId)).length === 2)
    assert.equal((await charge()).body.checkout_status, 'succeeded')
  })
})

/** Sends a webhook as Primer signs it: the headers by their names. */
function sendWebhook(url: string, body: string, signatures: Record<string, string>) {
  const headers = { 'content-type': 'application/json', ...signatures }
  return fetch(url, { method: 'POST', headers, body })
}

const signedBy = (secret: string, body: string) => createHmac('sha256', secret).update(body).digest('base64')
