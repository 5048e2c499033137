// What happens at Stripe reaches the report, consumables and webhooks: by notifications, and where these are lost by its list of events.
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { runOperation } from '../../src/commands/operations.ts'
import { signature } from '../../src/simulator/stripe/events.ts'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { until } from '../support/cluster.ts'
import { connectStripe, type StripeAccount } from '../support/connected-stripe.ts'
import type { Json } from '../support/server.ts'
import { openStripeSimulator, type StripeSimulator } from '../support/stripe-simulator.ts'

let stripe: StripeSimulator
let billing: Billing
let shop: Organization
let account: StripeAccount
before(async () => {
  stripe = await openStripeSimulator()
  billing = await startBilling({ STRIPE_API_URL: stripe.url })
  shop = await billing.organization()
  account = await connectStripe(billing, shop, stripe)
})
after(async () => {
  await billing.stop()
  await stripe.cleanUp()
})
afterEach(() => stripe.control('/events', { copies: 1, delayMs: 0, shuffled: false, isOff: false }))

/** A successful charge of 10.50 USD, and its id at Stripe. */
async function charged() {
  const { user, card } = await account.customer()
  const { body, text } = await shop.charge(user)
  assert.equal(body.checkout_status, 'succeeded', text)
  const orderId: string = body.order_id
  const movement = (await stripe.ledger()).find(({ metadata }) => metadata['tundish_order'] === orderId)
  return { user, card, orderId, charge: movement!.id }
}

const DAY_MS = 86_400_000

const rowsOf = async (orderId: string) =>
  (await shop.report({ order_id: orderId })).map((row) => `${row.psp_transaction_type} ${row.status} ${row.amount}`)

const eventsOf = async (user: string) =>
  (
    await billing.db.query(
      `select e.type from events e where e.project_id = $1 and e.data ->> 'order_id' in
         (select order_id::text from orders where external_id = $2) order by e.id`,
      [shop.projectId, user],
    )
  ).map(({ type }) => type)

const isActive = async (user: string) => (await shop.consumables(user))[0].is_active

/** Has the server read Stripe's list of events now, not minutes later. */
const readNow = () => billing.db.query('update merchant_accounts set notifications_due_at = null')

/** Waits for the end of the reading that `readNow` began. */
const untilRead = () =>
  until('the list to be read', async () => {
    const [row] = await billing.db.query('select notifications_due_at is not null as done from merchant_accounts')
    return row!.done === 't'
  })

describe('by notification', () => {
  test('a refund made at Stripe is a refund of the order, and a full one revokes the consumable', async () => {
    const { user, orderId, charge } = await charged()
    await stripe.control('/refunds', { charge, amount: 300 })
    await until('the part to be refunded', async () => (await rowsOf(orderId)).length === 2)
    assert.equal(await isActive(user), true)
    await stripe.control('/refunds', { charge })
    await until('the rest to be refunded', async () => !(await isActive(user)))
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'refund refunded 3', 'refund refunded 7.5'])
    const types = await eventsOf(user)
    assert.equal(types.filter((type) => type === 'refund.succeeded').length, 2, types.join())
    const refunds = await billing.db.query('select origin, reason from refunds where order_id = $1', [orderId])
    const byCustomer = { origin: 'provider', reason: 'requested_by_customer' }
    assert.deepEqual(refunds, [byCustomer, byCustomer])
    const reasons = (await shop.report({ order_id: orderId })).map((row) => row.psp_reason_code)
    assert.deepEqual(reasons, [null, 'requested_by_customer', 'requested_by_customer'])
  })

  test('notifications that come three times and out of order change nothing more', async () => {
    const { user, orderId, charge } = await charged()
    await stripe.control('/events', { copies: 3, delayMs: 300, shuffled: true })
    await stripe.control('/refunds', { charge, amount: 300 })
    await stripe.control('/refunds', { charge })
    await until('all to be refunded', async () => !(await isActive(user)))
    assert.deepEqual((await rowsOf(orderId)).length, 3)
  })

  test('a dispute takes the consumable, and gives it back when it is won', async () => {
    const { user, orderId, charge } = await charged()
    const { id } = await stripe.control<{ id: string }>('/disputes', { charge })
    await until('the chargeback', async () => (await rowsOf(orderId)).length === 2)
    assert.equal(await isActive(user), false)
    await stripe.control(`/disputes/${id}/close`, { status: 'won' })
    await until('the reversal', async () => (await rowsOf(orderId)).length === 3)
    assert.deepEqual((await rowsOf(orderId)).slice(1), [
      'chargeback refunded 10.5',
      'chargeback_reversal succeeded 10.5',
    ])
    assert.equal(await isActive(user), true)
    const types = await eventsOf(user)
    assert.ok(types.includes('charge.disputed') && types.includes('charge.dispute_won'), types.join())
  })

  test('a dispute that is lost gives back what had been refunded before, and not the consumable', async () => {
    const { user, orderId, charge } = await charged()
    await stripe.control('/refunds', { charge, amount: 300 })
    await until('the refund', async () => (await rowsOf(orderId)).length === 2)
    const { id } = await stripe.control<{ id: string }>('/disputes', { charge })
    await until('the chargeback', async () => (await rowsOf(orderId)).length === 3)
    await stripe.control(`/disputes/${id}/close`, { status: 'lost' })
    await until('the reversal', async () => (await rowsOf(orderId)).length === 4)
    assert.deepEqual((await rowsOf(orderId)).slice(2), ['chargeback refunded 10.5', 'chargeback_reversal succeeded 3'])
    assert.equal(await isActive(user), false)
  })

  test('a card that was detached at Stripe is no saved card any more', async () => {
    const { user, card } = await account.customer()
    await stripe.client().paymentMethods.detach(card.payment_method)
    await until('the card to be gone', async () => {
      const { body } = await shop.charge(user)
      return body.message === 'The customer has no saved card.'
    })
  })

  test('a card that its bank or its owner has renewed is shown as it is now, and reported by the next charge', async () => {
    const { user, card } = await account.customer('pm_card_visa', 'renewed')
    const shown = async () => {
      const params = { project_id: shop.projectId, profile_id: 'renewed' }
      const { customers } = await runOperation('profile', 'getPerson', billing.server.app, { params })
      const [{ card_network, card_last4, card_expires }] = customers as [Json]
      return [card_network, card_last4, card_expires].join(' ')
    }
    // The payment that saved it told nothing of it.
    assert.equal(await shown(), '  ')
    const renewed = { last4: '1881', exp_month: 3, exp_year: 2041 }
    await stripe.control(`/payment_methods/${card.payment_method}/renew`, renewed)
    await until('the new card to be shown', async () => (await shown()) === 'visa 1881 03/2041')
    await stripe.client().paymentMethods.update(card.payment_method, { card: { exp_month: 5, exp_year: 2044 } })
    await until('the new expiry to be shown', async () => (await shown()) === 'visa 1881 05/2044')
    const { body } = await shop.charge(user)
    const [row] = await shop.report({ order_id: body.order_id })
    assert.deepEqual([row.pm_data_last4, row.pm_data_expiration_date], ['1881', '05/2044'])
    await stripe.client().paymentMethods.detach(card.payment_method)
    await until('the card to be gone', async () => (await shown()) === '  ')
    assert.deepEqual(await billing.db.query('select 1 from saved_cards where token = $1', [card.payment_method]), [])
  })

  test('a provider that cannot be asked has it sent again', async () => {
    const { user, charge } = await charged()
    await stripe.control('/faults', { method: 'GET', path: '/v1/refunds', kind: 'error_before', times: 2 })
    await stripe.control('/refunds', { charge })
    await until('it to be sent again', async () => !(await isActive(user)))
  })
})

test('what no notification told is found in the list of events', async () => {
  await stripe.control('/events', { isOff: true })
  const { user, orderId, charge } = await charged()
  await stripe.control('/refunds', { charge })
  await readNow()
  await until('the refund to be found', async () => !(await isActive(user)))
  assert.equal((await rowsOf(orderId)).length, 2)
  await readNow()
  await untilRead()
  assert.equal((await rowsOf(orderId)).length, 2)
})

test('a notification that cannot be handled does not hold up older ones, and is handled when it can be', async () => {
  await stripe.control('/events', { isOff: true })
  const [refunded, disputed] = [await charged(), await charged()]
  await stripe.control('/refunds', { charge: refunded.charge })
  await stripe.control('/disputes', { charge: disputed.charge })
  // As for a restricted key without the permission to read disputes.
  await stripe.control('/faults', { method: 'GET', path: '/v1/disputes', kind: 'forbidden', times: 1000 })
  await readNow()
  await until('the refund to be found', async () => !(await isActive(refunded.user)))
  await untilRead()
  assert.equal(await isActive(disputed.user), true)
  await stripe.control('/faults/clear')
  await readNow()
  await until('the dispute to be found', async () => !(await isActive(disputed.user)))
})

describe('the endpoint answers', () => {
  const event = (more: object = {}) =>
    JSON.stringify({ id: 'evt_1', object: 'event', type: 'invoice.paid', created: 1, data: { object: {} }, ...more })
  const nowS = () => Math.floor(Date.now() / 1000)
  async function send(body: string, header: string | undefined, url = account.eventsUrl) {
    const headers = { 'content-type': 'application/json', ...(header !== undefined && { 'stripe-signature': header }) }
    const answer = await fetch(url, { method: 'POST', headers, body })
    return [answer.status, answer.headers.get('x-error-code'), await answer.text()] as const
  }

  test('200 for a kind that is of no use, and for a copy', async () => {
    for (let n = 0; n < 2; n += 1) {
      const [status, , text] = await send(event(), signature(event(), [account.secret], nowS()))
      assert.deepEqual([status, text], [200, '{"received":true}'])
    }
  })

  test('200 through the whole rotation of a secret at Stripe', async () => {
    // What is refused is not found in the list of events meanwhile.
    await billing.db.query("update merchant_accounts set notifications_due_at = db_clock() + interval '30 minutes'")
    const arrived = async (what: string) => {
      const { user, charge } = await charged()
      await stripe.control('/refunds', { charge })
      await until(what, async () => !(await isActive(user)))
    }
    // Stripe signs with both secrets, and the account still has the old one alone.
    const rolled = await stripe.control<{ secret: string }>(`/webhook_endpoints/${account.endpointId}/roll`, {
      keep_ms: DAY_MS,
    })
    assert.notEqual(rolled.secret, account.secret)
    await arrived('it to be accepted by the old secret')
    // Both are stored, then the old one ends at Stripe.
    await account.connect([rolled.secret, account.secret])
    await stripe.control('/clock', { advance_ms: DAY_MS })
    await arrived('it to be accepted by the new secret')
    await account.connect([rolled.secret])
    assert.equal((await send(event(), signature(event(), [account.secret], nowS())))[0], 400)
    await arrived('it to be accepted when the old secret is gone')
    await account.connect(['whsec_anotherOne00', rolled.secret, account.secret])
  })

  test('200 while a secret is rotated, by any of those it has', async () => {
    for (const secrets of [['whsec_anotherOne00'], ['whsec_unknown', account.secret]])
      assert.equal((await send(event(), signature(event(), secrets, nowS())))[0], 200)
  })

  const wrong: Record<string, () => string | undefined> = {
    'no signature': () => undefined,
    'a signature of another secret': () => signature(event(), ['whsec_unknown'], nowS()),
    'a signature of another body': () => signature(event({ id: 'evt_2' }), [account.secret], nowS()),
    'a signature that is too old': () => signature(event(), [account.secret], nowS() - 301),
    'a signature from the future': () => signature(event(), [account.secret], nowS() + 310),
    'a signature without a time': () => signature(event(), [account.secret], nowS()).replace(/t=\d+,/, ''),
  }
  for (const [what, header] of Object.entries(wrong)) {
    test(`400 invalid_signature for ${what}`, async () => {
      const [status, code] = await send(event(), header())
      assert.deepEqual([status, code], [400, 'invalid_signature'])
    })
  }

  test('400 in the same words for an account or organization that does not exist', async () => {
    const header = signature(event(), [account.secret], nowS())
    const [, , known] = await send(event(), signature(event(), ['whsec_unknown'], nowS()))
    for (const [from, to] of [
      [shop.id, 'nobody'],
      ['acct_', 'acct_none'],
      ['/stripe/', '/simulator/'],
    ] as const) {
      const [status, , text] = await send(event(), header, account.eventsUrl.replace(from, to))
      assert.deepEqual([status, text], [400, known], to)
    }
  })
})
