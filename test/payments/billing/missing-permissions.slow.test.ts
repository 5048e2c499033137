// A restricted key that lacks permissions: what can be compared is compared, and what is missing is named.
import assert from 'node:assert/strict'
import { after, afterEach, describe, test } from 'node:test'
import { tundishAgain } from '../../support/resident.ts'
import { startStripeBilling } from '../../support/stripe-billing.ts'
import { markUnlisted, unlisted } from './restored.ts'

const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
// The accounts are compared in the order of their organizations.
const closed = await billing.organization('a-closed-shop')
afterEach(() => billing.stripe.control('/faults/clear'))
const shop = await billing.shop()

/** As for a key without the permission for these lists. */
const forbid = (...lists: string[]) =>
  Promise.all(
    lists.map((list) =>
      billing.stripe.control('/faults', { method: 'GET', path: `/v1/${list}`, kind: 'forbidden', times: 1000 }),
    ),
  )

async function reconcile(...more: string[]) {
  const since = new Date(Date.now() - 3_600_000).toISOString()
  return tundishAgain(['reconcile', '--since', since, ...more], billing.server.env)
}

async function charged() {
  const { external_id } = await shop.customerWithCard()
  const { order_id } = (await shop.charge(external_id)).body
  const [order] = await billing.db.query('select charge_transaction_id from orders where order_id = $1', [order_id])
  return { external_id, payment: order!.charge_transaction_id! }
}

const isMarked = async () => {
  return (await unlisted(billing.db, shop.id)).length > 0
}

describe('reconcile', () => {
  test('compares all but disputes without the permission to read them, and says so', async () => {
    const { external_id, payment } = await charged()
    await billing.client.refunds.create({ payment_intent: payment })
    await forbid('disputes')
    const { code, stdout } = await reconcile()
    assert.equal(code, 1)
    const sentence = `not compared: the disputes of merchant account stripe stripe-test of organization ${shop.id}, because its key lacks the permission "Disputes: read".`
    assert.ok(stdout.includes(sentence), stdout)
    assert.match(stdout, /1 adopted/)
    assert.equal((await shop.consumables(external_id))[0].is_active, false)
    await billing.stripe.control('/faults/clear')
    assert.equal((await reconcile()).code, 0)
  })

  test('compares disputes without the permission to read charges, and the account counts as not listed', async () => {
    const { external_id, payment } = await charged()
    const { latest_charge } = await billing.client.paymentIntents.retrieve(payment)
    await billing.stripe.control('/disputes', { charge: latest_charge })
    await markUnlisted(billing.db, shop.id, `db_clock() + interval '10 minutes'`)
    await forbid('payment_intents', 'balance_transactions')
    const { code, stdout } = await reconcile('--json')
    const { not_compared } = JSON.parse(stdout)
    const account = { psp: 'stripe', psp_merchant_id: 'stripe-test', organization_id: shop.id }
    assert.deepEqual(not_compared, [
      { ...account, what: 'charges and refunds', missing_permission: 'PaymentIntents: read' },
      { ...account, what: 'fees', missing_permission: 'Balance: read' },
    ])
    assert.deepEqual([code, (await shop.consumables(external_id))[0].is_active, await isMarked()], [1, false, true])
    await billing.stripe.control('/faults/clear')
    await reconcile()
    assert.equal(await isMarked(), false)
  })

  test('names an account with charges that is no longer connected', async () => {
    await charged()
    const path = `/organizations/${shop.id}/merchant-accounts/stripe/stripe-test/disconnect`
    assert.equal((await billing.server.admin(path, { method: 'POST' })).status, 200)
    const { code, stdout } = await reconcile()
    assert.equal(code, 1)
    const sentence = `not compared: the charges and refunds of merchant account stripe stripe-test of organization ${shop.id}, because it is not connected here, or its provider is not set up.`
    assert.ok(stdout.includes(sentence), stdout)
  })
})

test('reconcile names an account that cannot be read, and compares those of the other organizations', async () => {
  const open = await billing.shop()
  const { external_id } = await open.customerWithCard()
  const path = `/organizations/${closed.id}/merchant-accounts/stripe/gone/connect`
  const secret_key = 'sk_test_revoked00000'
  assert.equal((await billing.server.admin(path, { method: 'POST', body: { sandbox: true, secret_key } })).status, 200)
  const second = path.replace('/gone/', '/gone-too/')
  assert.equal(
    (await billing.server.admin(second, { method: 'POST', body: { sandbox: true, secret_key } })).status,
    200,
  )
  await billing.stripe.control('/keys/revoke', { key: secret_key })
  await markUnlisted(billing.db, open.id, `db_clock() + interval '10 minutes'`)
  assert.equal((await open.charge(external_id)).status, 503)
  const { code, stdout, stderr } = await reconcile()
  const account = `merchant account stripe gone of organization ${closed.id}`
  const why = 'its provider returned status 401 invalid_request_error'
  const sentence = `not compared: the charges and refunds of ${account}, because it could not be read to the end (${why}).`
  assert.ok(stdout.includes(sentence), stdout)
  // Once for all accounts.
  const spoken = stderr.match(/^A payment provider could not be reached \(.*\): try again\.$/gm)
  assert.deepEqual(spoken, [
    'A payment provider could not be reached (returned status 401 invalid_request_error): try again.',
  ])
  assert.deepEqual([code, await unlisted(billing.db, open.id)], [1, []])
  assert.equal((await open.charge(external_id)).body.checkout_status, 'succeeded')
  for (const connected of [path, second])
    await billing.server.admin(connected.replace(/connect$/, 'disconnect'), { method: 'POST' })
})

test('connecting names the permissions to read that a restricted key lacks, and so does the doctor', async () => {
  const path = `/organizations/${shop.id}/merchant-accounts/stripe/stripe-test/connect`
  const connect = async (secret_key: string) =>
    (await billing.server.admin(path, { method: 'POST', body: { sandbox: true, secret_key } })).body
  assert.deepEqual((await connect('rk_test_restricted0000'))['missing_permissions'], [])
  await forbid('disputes', 'events')
  assert.deepEqual((await connect('rk_test_restricted0000'))['missing_permissions'], ['Disputes: read', 'Events: read'])
  const { stdout } = await tundishAgain(['doctor'], billing.server.env)
  assert.match(
    stdout,
    /FAILED +providers +The key of .*stripe-test.* lacks permissions: Disputes: read, Events: read\./,
  )
  await forbid('balance')
  assert.match(JSON.stringify(await connect('rk_test_restricted0000')), /lacks the permission ..Balance: read/)
})
