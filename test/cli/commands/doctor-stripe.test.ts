// What the doctor says of merchant accounts at Stripe: their credentials, their mode, and whether Stripe responds.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { tundishAgain } from '../../support/resident.ts'
import { TEST_KEY } from '../../support/simulators.ts'
import { startStripeBilling } from '../../support/stripe-billing.ts'

const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
const shop = await billing.shop()

/** The line about the account. */
const examine = async () => {
  const { stdout } = await tundishAgain(['doctor'], billing.server.env)
  return stdout.split('\n').find((line) => line.includes(`stripe-test of organization ${shop.id}`))
}

test('ok for an account that can charge', async () => {
  assert.match(
    (await examine()) ?? '',
    /^ok +providers +The merchant account stripe stripe-test of organization .* can charge/,
  )
})

test('warns of one account at the provider that is connected under two names', async () => {
  const path = `/organizations/${shop.id}/merchant-accounts/stripe/again`
  const body = { sandbox: true, secret_key: TEST_KEY }
  assert.equal((await billing.server.admin(`${path}/connect`, { method: 'POST', body })).status, 200)
  const said = (await tundishAgain(['doctor'], billing.server.env)).stdout
  const names = `again, stripe-test of organization ${shop.id}`
  assert.match(said, new RegExp(`^warning +providers +The merchant accounts ${names} are one account .* acct_`, 'm'))
  assert.equal((await billing.server.admin(`${path}/disconnect`, { method: 'POST' })).status, 200)
  assert.doesNotMatch((await tundishAgain(['doctor'], billing.server.env)).stdout, /are one account/)
})

test('fails for an account marked live whose key is of the test mode', async () => {
  await billing.db.query('update merchant_accounts set is_sandbox = false')
  assert.match(
    (await examine()) ?? '',
    /^FAILED +providers +The key of .* is of the test mode, and the account of the live mode/,
  )
  await billing.db.query('update merchant_accounts set is_sandbox = true')
})

test('fails for an account whose provider does not respond, and says so', async () => {
  await billing.stripe.stop()
  assert.match(
    (await examine()) ?? '',
    /^FAILED +providers +The provider of .* does not respond \(no connection was made/,
  )
  await billing.stripe.start()
})

test('fails for an account whose key was revoked, and not by its network', async () => {
  await billing.stripe.control('/keys/revoke', { key: TEST_KEY })
  assert.match((await examine()) ?? '', /^FAILED +providers +The key of .* is rejected, .*401/)
})
