// Calls with a key of another account than the one of the saved cards: nothing is declined, lost or forgotten because it is not there.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { credentialsOf } from '../../../src/payments/providers/account.ts'
import { TEST_KEY } from '../../support/simulators.ts'
import { MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'

const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
const { db, stripe } = billing
const { seal, clock, providers } = billing.server.app
const shop = await billing.shop()
const OTHER = 'sk_test_other0000'
await stripe.control('/keys/assign', { key: OTHER, account: 'acct_1Other' })

/** Replaces the stored key, as only an older version would. */
async function useKey(secretKey: string): Promise<void> {
  const name = { organizationId: shop.id, psp: 'stripe', merchantId: MERCHANT }
  await db.query('update merchant_accounts set credentials = $1 where organization_id = $2', [
    seal.seal(secretKey, credentialsOf(name)),
    shop.id,
  ])
  // Credentials are read once a second.
  await clock.sleep(1000)
  await providers.of(shop.id, 'stripe', MERCHANT)
}

test('503 for a charge and for a refund, whose keys can be used again', async () => {
  const { external_id } = await shop.customerWithCard()
  const charge = (idempotency_key: string) => shop.charge(external_id, { idempotency_key })
  const first = (await charge('first')).body.order_id
  await useKey(OTHER)
  for (const response of [await charge('second'), await shop.refund(external_id, first)]) {
    assert.deepEqual([response.status, response.headers['x-error-code']], [503, 'provider_unavailable'], response.text)
  }
  assert.match(billing.server.logLines().join('\\n'), /has another account, acct_1Other, for the secret key/)
  const provider = await providers.of(shop.id, 'stripe', MERCHANT)
  const [row] = await db.query('select payment_method_token as token from orders where order_id = $1', [first])
  const card = await provider!.savedCard!(row!.token!)
  assert.equal(card && 'outcome' in card && card.outcome, 'unknown')
  const erased = await provider!.eraseCustomer!('cus_gone', 'empty')
  assert.equal(erased.outcome, 'unknown')
  await useKey(TEST_KEY)
  assert.equal((await charge('second')).body.checkout_status, 'succeeded')
  assert.equal((await shop.refund(external_id, first)).body.refund_status, 'succeeded')
})

test('a card that the account itself lacks is still declined', async () => {
  const external_id = await shop.customer({ psp: 'stripe', merchantId: MERCHANT, token: 'pm_never_was' })
  assert.equal((await shop.charge(external_id)).body.checkout_status, 'failed')
})
