// Fees in the finance report: of charges, refunds and disputes at Stripe, as its notifications and its list of events name them.
import assert from 'node:assert/strict'
import { after, afterEach, describe, test } from 'node:test'
import type { Organization } from '../../support/billing.ts'
import { addRow } from '../../support/data.ts'
import { tundishAgain } from '../../support/resident.ts'
import { type Json, ok } from '../../support/server.ts'
import {
  connectStripe,
  NOTIFIED_MERCHANT,
  type StripeAccount,
  startStripeBilling,
} from '../../support/stripe-billing.ts'
import { until } from '../../support/time.ts'

const billing = await startStripeBilling()
after(() => billing.stop())
const { stripe } = billing
afterEach(async () => {
  await stripe.control('/faults/clear')
  await stripe.control('/events', { isOff: false })
})

const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10)
const REAL = `from=${day(-1)}&to=${day(2)}`
const NOW = `${REAL}&test=true`

const finance = (shop: Organization, path = '', period = NOW) =>
  ok(billing.server.admin(`/organizations/${shop.id}/finance${path}?${period}`))

const fees = async (shop: Organization, period = NOW) =>
  ((await finance(shop, '/rows', period)).rows as Json[]).map(({ kind, amount, currency_code, fee, fee_currency }) =>
    [kind, amount, currency_code, fee, fee_currency].join(' '),
  )

const totals = async (shop: Organization) =>
  ((await finance(shop)).totals as Json[]).map(({ currency_code, net, fees, fees_unknown, net_after_fees }) => ({
    ...{ currency_code, net, fees, fees_unknown, net_after_fees },
  }))

// Sorted: rows are in the order of the provider's time, whose clock these tests advance, and some have none.
const feesBecome = (shop: Organization, expected: string[]) =>
  until(expected.join(', '), async () => (await fees(shop)).sort().join() === [...expected].sort().join())

/** A new organization with the account connected, and a charge of it. */
async function charged({ token, ...more }: { token?: string; amount?: string; currency_code?: string } = {}) {
  const shop = await billing.organization()
  const account = await connectStripe(billing, shop)
  return { shop, account, ...(await charge(shop, account, token, more)) }
}

async function charge(shop: Organization, account: StripeAccount, token?: string, more: object = {}) {
  const { external_id: user } = await account.customerWithCard(token)
  const { body, text } = await shop.charge(user, more)
  assert.equal(body.checkout_status, 'succeeded', text)
  const movement = (await stripe.ledger()).find(({ metadata }) => metadata['tundish_order'] === body.order_id)
  return { user, orderId: body.order_id as string, chargeId: movement!.id, intent: movement!.payment_intent! }
}

describe('a fee is known', () => {
  test('of a charge, and the totals are net of it where the currencies are the same', async () => {
    const { shop } = await charged()
    await feesBecome(shop, ['sale 10.5 USD -0.6 USD'])
    const known = { fees: [{ fee: -0.6, fee_currency: 'USD' }], fees_unknown: 0, net_after_fees: 9.9 }
    assert.deepEqual(await totals(shop), [{ currency_code: 'USD', net: 10.5, ...known }])
  })

  test('in the currency of the balance, which is added to no other', async () => {
    const { shop, account } = await charged({ amount: '10.00', currency_code: 'EUR' })
    await charge(shop, account)
    await feesBecome(shop, ['sale 10 EUR -0.64 USD', 'sale 10.5 USD -0.6 USD'])
    assert.deepEqual(await totals(shop), [
      { currency_code: 'EUR', net: 10, ...one(-0.64), fees_unknown: 0, net_after_fees: null },
      { currency_code: 'USD', net: 10.5, ...one(-0.6), fees_unknown: 0, net_after_fees: 9.9 },
    ])
  })

  const one = (fee: number) => ({ fees: [{ fee, fee_currency: 'USD' }] })

  test('once the charge enters the balance; until then it is unknown, and not 0', async () => {
    const { shop, account } = await charged({ token: 'pm_sim_balance_after_600000ms' })
    await charge(shop, account)
    await feesBecome(shop, ['sale 10.5 USD  ', 'sale 10.5 USD -0.6 USD'])
    assert.deepEqual(await totals(shop), [
      { currency_code: 'USD', net: 21, ...one(-0.6), fees_unknown: 1, net_after_fees: null },
    ])
    await stripe.control('/clock', { advance_ms: 600_000 })
    await feesBecome(shop, ['sale 10.5 USD -0.6 USD', 'sale 10.5 USD -0.6 USD'])
  })

  test('of a refund: 0, for Stripe keeps the fee of the charge; also of one that fails afterwards', async () => {
    const { shop, user, orderId } = await charged({ token: 'pm_sim_refund_fails_after_600000ms' })
    await shop.refund(user, orderId, { amount: '4.00', idempotency_key: 'back' })
    const [sale, refund] = ['sale 10.5 USD -0.6 USD', 'refund -4 USD 0 USD']
    await feesBecome(shop, [sale, refund])
    await stripe.control('/clock', { advance_ms: 600_000 })
    await feesBecome(shop, [sale, refund, 'refund_failed 4 USD 0 USD'])
  })

  test('of a dispute that is lost, and of one that is won, where it is given back', async () => {
    const { shop, account, chargeId } = await charged()
    const second = await charge(shop, account)
    const [lost, won] = [
      await stripe.control<{ id: string }>('/disputes', { charge: chargeId }),
      await stripe.control<{ id: string }>('/disputes', { charge: second.chargeId }),
    ]
    await stripe.control(`/disputes/${lost.id}/close`, { status: 'lost' })
    await stripe.control(`/disputes/${won.id}/close`, { status: 'won' })
    const expected = ['chargeback -10.5 USD -15 USD', 'chargeback -10.5 USD -15 USD']
    expected.push('chargeback_reversal 10.5 USD 15 USD', 'sale 10.5 USD -0.6 USD', 'sale 10.5 USD -0.6 USD')
    await until('all fees', async () => (await fees(shop)).sort().join() === expected.join())
    const [total] = await totals(shop)
    assert.deepEqual([total!.fees, total!.net_after_fees], [[{ fee: -16.2, fee_currency: 'USD' }], -5.7])
  })

  test('from the list of events, when no notification came', async () => {
    await stripe.control('/events', { isOff: true })
    const { shop } = await charged()
    await until('the fee', async () => {
      // Each time: a reading that was under way puts the next one off.
      await billing.db.query('update merchant_accounts set notifications_due_at = null where organization_id = $1', [
        shop.id,
      ])
      return (await fees(shop)).join() === 'sale 10.5 USD -0.6 USD'
    })
  })
})

test('a fee that Stripe cannot return now is read again later', async () => {
  await stripe.control('/faults', { path: '/v1/balance_transactions/.*', kind: 'error_before', times: 2 })
  const { shop } = await charged()
  await feesBecome(shop, ['sale 10.5 USD -0.6 USD'])
})

test('a key without the permission holds up nothing; the fee stays unknown', async () => {
  await stripe.control('/faults', { path: '/v1/balance_transactions/.*', kind: 'forbidden', times: 1000 })
  const { shop, chargeId } = await charged()
  await stripe.control('/refunds', { charge: chargeId })
  await until('the refund', async () => (await fees(shop)).length === 2)
  assert.deepEqual(await fees(shop), ['sale 10.5 USD  ', 'refund -10.5 USD  '])
})

test('fees are of their organization and merchant account alone, whatever id of the provider a payment names', async () => {
  const { shop, intent } = await charged()
  const other = await billing.organization()
  await connectStripe(billing, other)
  await feesBecome(shop, ['sale 10.5 USD -0.6 USD'])
  const pay = async (into: Organization, merchantId: string | null) => {
    const user = await into.customer({ psp: 'stripe', merchantId, at: new Date().toISOString() })
    await billing.db.query('update report_transactions set psp_transaction_id = $2 where external_id = $1', [
      user,
      intent,
    ])
  }
  await pay(other, NOTIFIED_MERCHANT)
  for (const merchantId of ['stripe-live', null]) await pay(shop, merchantId)
  assert.deepEqual(await fees(other), ['sale 5 USD  '])
  assert.deepEqual(await fees(shop), ['sale 10.5 USD -0.6 USD'])
  // Accounts that were never connected are not known to be sandboxes.
  assert.deepEqual(await fees(shop, REAL), ['sale 5 USD  ', 'sale 5 USD  '])
  const stored = await billing.db.query('select 1 from provider_fees where organization_id = $1', [other.id])
  assert.equal(stored.length, 0)
})

test('an erasure of the customer changes no fee', async () => {
  const { shop, user } = await charged()
  await feesBecome(shop, ['sale 10.5 USD -0.6 USD'])
  await addRow(billing.db, 'profiles', { project_id: shop.projectId, id: 'ada' })
  await billing.db.query(`update customers set profile_id = 'ada' where external_id = $1`, [user])
  const call = { key: shop.projectKey, method: 'POST', body: { profile_ids: ['ada'] } }
  assert.equal((await billing.server.api('/profiles/anonymize', call)).status, 200)
  assert.deepEqual(await fees(shop), ['sale 10.5 USD -0.6 USD'])
})

test('tundish report prints them with all decimals, in a table, as CSV and as JSON', async () => {
  const { shop } = await charged({ amount: '10.00', currency_code: 'EUR' })
  await feesBecome(shop, ['sale 10 EUR -0.64 USD'])
  const run = async (...args: string[]) => {
    const asked = ['report', '--org', shop.id, '--from', day(-1), '--to', day(2), '--test', ...args]
    return (await tundishAgain(asked, billing.server.env)).stdout
  }
  assert.match(await run(), / net +fees_usd +fees_unknown +net_after_fees .*\n.* 10\.00 +-0\.64 +0 +- /m)
  assert.match(await run('--rows'), /^.* sale +10\.00 +EUR +-0\.64 +USD /m)
  assert.match(await run('--format', 'csv'), /,10\.00,-0\.64,0,,0,/m)
  assert.match(await run('--rows', '--format', 'csv'), /,sale,10\.00,EUR,,USD,,-0\.64,USD,stripe,/)
  const { rows } = JSON.parse(await run('--rows', '--json'))
  assert.deepEqual([rows[0].fee, rows[0].fee_currency], [-0.64, 'USD'])
})
