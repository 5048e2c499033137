// Credits that charges grant, and that refunds and disputes take back.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { billingContext } from '../../../../src/payments/billing/context.ts'
import { recordDispute } from '../../../../src/payments/billing/ledger/disputes.ts'
import { adoptRefundsOfCharge } from '../../../../src/payments/billing/refund/adopt-of-charge.ts'
import { refused, startBilling } from '../../../support/billing.ts'
import { addUnit, stopChecked, withCredits } from '../../../support/credits.ts'
import { failedRefund } from '../paid-charge.ts'
import { scriptedProvider } from '../scripted-provider.ts'

const billing = await startBilling()
after(() => stopChecked(billing))
const shop = await withCredits(billing.db, await billing.organization())
const { db } = billing
await addUnit(db, shop.id, 'minutes', 2)
await db.query(
  `insert into credit_rules (organization_id, currency_code, charged, unit, amount, expires_after, created_at)
   values ($1, 'USD', 5, 'tokens', 50, null, db_clock()), ($1, 'USD', 5, 'minutes', 7.5, 24, db_clock())`,
  [shop.id],
)

const TOKENS = [{ unit: 'tokens', amount: 100, expires_after: '90d' }]

/** A customer who has bought 100 tokens for 10.50. */
async function bought(grants: object[] = TOKENS): Promise<[user: string, order: string]> {
  const user = await shop.customer()
  const response = await shop.charge(user, { grants })
  assert.equal(response.body.checkout_status, 'succeeded', response.text)
  return [user, response.body.order_id]
}

const refund = async (user: string, order: string, amount?: string) =>
  (await shop.refund(user, order, amount ? { amount, idempotency_key: amount } : {})).body
const spend = (external_id: string, amount: number) => shop.credits('spend', { external_id, amount })
const entriesOf = async (external_id: string) =>
  (await shop.entries({ external_id })).map(({ cause, amount, balance }) => [cause, amount, balance])

describe('a charge', () => {
  test('grants once what its request says, whatever the rules say', async () => {
    const user = await shop.customer()
    const body = { amount: 5, idempotency_key: 'a', grants: TOKENS }
    const first = await shop.charge(user, body)
    const again = await shop.charge(user, { ...body, grants: [{ ...TOKENS[0], amount: '100.0' }] })
    assert.deepEqual(again.body, { ...first.body, idempotent_replay: true })
    refused(await shop.charge(user, { ...body, grants: [] }), /used for other grants/, 'idempotency_key_reused')
    const [entry, ...more] = await shop.entries({ external_id: user })
    assert.deepEqual(more, [])
    assert.deepEqual([entry!.cause, entry!.amount, entry!.order_id], ['charge', 100, first.body.order_id])
    const [{ expires }] = (await shop.post('/credits/balance', { external_id: user })).body.balances
    const days = (Date.parse(expires[0].at) - Date.now()) / 86_400_000
    assert.ok(days > 89.9 && days <= 90.1, expires[0].at)
  })

  test('grants what the rules say for its amount and currency', async () => {
    const user = await shop.customer()
    await shop.charge(user, { amount: 5 })
    assert.deepEqual(await shop.balance(user), [50, 0, 50])
    assert.deepEqual(await shop.balance(user, 'minutes'), [7.5, 0, 7.5])
    await shop.charge(user, { amount: 5, currency_code: 'EUR' })
    await shop.charge(user, { amount: 6 })
    await shop.charge(user, { amount: 5, grants: [] })
    assert.deepEqual(await shop.balance(user), [50, 0, 50])
  })

  test('that is declined grants nothing', async () => {
    const user = await shop.customer({ token: 'pm_card_chargeDeclined' })
    assert.equal((await shop.charge(user, { grants: TOKENS })).body.checkout_status, 'failed')
    assert.deepEqual(await shop.entries({ external_id: user }), [])
  })

  test('400 for a unit that does not exist, and amounts that it cannot have', async () => {
    const user = await shop.customer()
    refused(await shop.charge(user, { grants: [{ unit: 'gold', amount: 1 }] }), /no unit "gold"/)
    refused(
      await shop.charge(user, { grants: [{ unit: 'tokens', amount: 1.5 }] }),
      /^grants\.amount must have no decimal places in tokens, got 1\.5\.$/,
    )
    refused(
      await shop.charge(user, { grants: [{ ...TOKENS[0], expires_after: '3 months' }] }),
      /^grants\.expires_after must be .*, got "3 months"\.$/,
    )
    assert.deepEqual(await db.query('select from orders where external_id = $1', [user]), [])
  })
})

describe('a refund', () => {
  test('of all takes back what is left and makes a debt of what was spent, which the next grant pays', async () => {
    const [user, order] = await bought()
    await spend(user, 30)
    await refund(user, order)
    assert.deepEqual(await shop.balance(user), [-30, 0, -30])
    assert.equal((await spend(user, 1)).body.code, 'insufficient_credits')
    await shop.credits('grant', { external_id: user, amount: 50 })
    assert.deepEqual(await shop.balance(user), [20, 0, 20])
    assert.equal((await spend(user, 20)).status, 200)
    assert.deepEqual((await entriesOf(user)).slice(2), [
      ['refund', -100, -30],
      ['grant', 50, 20],
      ['spend', -20, 0],
    ])
  })

  test('takes what was spent from other grants first', async () => {
    const [user, order] = await bought()
    await shop.credits('grant', { external_id: user, amount: 20 })
    await spend(user, 90)
    await refund(user, order)
    assert.deepEqual(await shop.balance(user), [-70, 0, -70])
  })

  test('of a part takes back its share, and the rest with the last', async () => {
    const [user, order] = await bought([{ unit: 'minutes', amount: '10' }])
    await refund(user, order, '3.50')
    assert.deepEqual(await shop.balance(user, 'minutes'), [6.67, 0, 6.67])
    for (const amount of ['3.5', '3.500']) await refund(user, order, amount)
    assert.deepEqual(await shop.balance(user, 'minutes'), [0, 0, 0])
    assert.deepEqual(await entriesOf(user), [
      ['charge', 10, 10],
      ['refund', -3.33, 6.67],
      ['refund', -3.33, 3.34],
      ['refund', -3.34, 0],
    ])
  })

  test('leaves what was spent if the organization says so', async () => {
    await shop.set('credits_debt', false)
    const [user, order] = await bought()
    await spend(user, 30)
    await refund(user, order)
    await shop.set('credits_debt', true)
    assert.deepEqual(await shop.balance(user), [0, 0, 0])
    assert.deepEqual((await entriesOf(user)).at(-1), ['refund', -70, 0])
  })

  test('does not take again what had expired', async () => {
    const [user, order] = await bought()
    await spend(user, 30)
    await db.query('update credit_grants set expires_at = db_clock() where external_id = $1', [user])
    await refund(user, order)
    assert.deepEqual((await entriesOf(user)).slice(2), [
      ['expiry', -70, 0],
      ['refund', -30, -30],
    ])
  })

  test('takes what is held, so that the capture is refused', async () => {
    const [user, order] = await bought()
    const { hold_id } = (await shop.credits('hold', { external_id: user, amount: 10 })).body
    await refund(user, order)
    assert.deepEqual(await shop.balance(user), [0, 10, -10])
    const captured = await shop.post('/credits/capture', { hold_id, amount: 1, idempotency_key: 'a' })
    assert.equal(captured.body.code, 'insufficient_credits')
  })

  test('that fails after all gives them back, once', async () => {
    const [user, order] = await bought()
    await spend(user, 30)
    const { refund_id } = await refund(user, order)
    const [{ psp_transaction_id }] = (await shop.report({ order_id: order })) as [{ psp_transaction_id: string }]
    const found = scriptedProvider({ refundsOf: async () => [await failedRefund(billing, refund_id)] })
    const adopt = () =>
      adoptRefundsOfCharge(
        billingContext(billing.server.app),
        found,
        { psp: 'simulator', merchantId: '*', organizationId: null },
        psp_transaction_id,
      )
    await adopt()
    await adopt()
    assert.deepEqual(await shop.balance(user), [70, 0, 70])
    assert.deepEqual((await entriesOf(user)).slice(2), [
      ['refund', -100, -30],
      ['refund_failed', 100, 70],
    ])
  })

  test('that fails like an earlier one gives back what lasts as long as it would have, not twice as long', async () => {
    const [user, order] = await bought()
    const first = await refund(user, order, '5.25')
    const second = await refund(user, order, '2.10')
    // 31 days later.
    await db.query(`update credit_entries set created_at = created_at - interval '31 days' where external_id = $1`, [
      user,
    ])
    await db.query(`update credit_grants set expires_at = expires_at - interval '31 days' where external_id = $1`, [
      user,
    ])
    const [{ psp_transaction_id }] = (await shop.report({ order_id: order })) as [{ psp_transaction_id: string }]
    for (const { refund_id } of [first, second]) {
      const found = scriptedProvider({ refundsOf: async () => [await failedRefund(billing, refund_id)] })
      const account = { psp: 'simulator', merchantId: '*', organizationId: null }
      await adoptRefundsOfCharge(billingContext(billing.server.app), found, account, psp_transaction_id)
    }
    const [{ balance, expires }] = (await shop.post('/credits/balance', { external_id: user })).body.balances
    assert.deepEqual([balance, expires.length, expires[0].amount], [100, 1, 100])
    const days = (Date.parse(expires[0].at) - Date.now()) / 86_400_000
    assert.ok(days > 89.9 && days < 90.1, expires[0].at)
  })
})

describe('a dispute', () => {
  const record = (order: string, chargeTransactionId: string, more: object) =>
    recordDispute(
      billingContext(billing.server.app),
      { organization_id: shop.id, order_id: order },
      {
        disputeId: `dp-${order}`,
        chargeTransactionId,
        status: 'open',
        fundsWithdrawn: true,
        reinstatedMinor: 0n,
        amountMinor: 1050n,
        currencyCode: 'USD',
        reason: 'fraudulent',
        at: '2026-01-31T22:00:00Z',
        ...more,
      },
    )

  test('that takes the money takes all credits, and one that is won gives back what refunds leave', async () => {
    const [user, order] = await bought()
    await refund(user, order, '5.25')
    const [{ psp_transaction_id }] = (await shop.report({ order_id: order })) as [{ psp_transaction_id: string }]
    await record(order, psp_transaction_id, { fundsWithdrawn: false })
    assert.deepEqual(await shop.balance(user), [50, 0, 50], 'it is only opened')
    await record(order, psp_transaction_id, {})
    await record(order, psp_transaction_id, {})
    assert.deepEqual(await shop.balance(user), [0, 0, 0])
    await record(order, psp_transaction_id, { status: 'won', reinstatedMinor: 1050n })
    await record(order, psp_transaction_id, { status: 'won', reinstatedMinor: 1050n })
    assert.deepEqual(await entriesOf(user), [
      ['charge', 100, 100],
      ['refund', -50, 50],
      ['dispute', -50, 0],
      ['dispute_won', 50, 50],
    ])
  })

  test('that is won gives back what lasts as long as it would have, although its time has passed', async () => {
    const [user, order] = await bought()
    await spend(user, 60)
    const [{ psp_transaction_id }] = (await shop.report({ order_id: order })) as [{ psp_transaction_id: string }]
    await record(order, psp_transaction_id, {})
    // 31 days later: 30 days were left of the grant when it was taken.
    await db.query(`update credit_entries set created_at = created_at - interval '31 days' where external_id = $1`, [
      user,
    ])
    await db.query(`update credit_grants set expires_at = db_clock() - interval '1 day' where external_id = $1`, [user])
    await shop.credits('grant', { external_id: user, amount: 100 })
    assert.deepEqual(await shop.balance(user), [40, 0, 40], 'the debt is paid')
    await record(order, psp_transaction_id, { status: 'won', reinstatedMinor: 1050n })
    assert.deepEqual(await shop.balance(user), [140, 0, 140])
    const [{ expires }] = (await shop.post('/credits/balance', { external_id: user })).body.balances
    assert.equal(expires.length, 1)
    assert.equal(expires[0].amount, 100)
    const days = (Date.parse(expires[0].at) - Date.now()) / 86_400_000
    assert.ok(days > 29.9 && days < 30.1, expires[0].at)
  })

  test('that is won gives back what paid for an expired grant, for good', async () => {
    const [user, order] = await bought()
    await spend(user, 60)
    await db.query('update credit_grants set expires_at = db_clock() where external_id = $1', [user])
    const [{ psp_transaction_id }] = (await shop.report({ order_id: order })) as [{ psp_transaction_id: string }]
    await record(order, psp_transaction_id, {})
    assert.deepEqual(await shop.balance(user), [-60, 0, -60])
    await shop.credits('grant', { external_id: user, amount: 100 })
    await record(order, psp_transaction_id, { status: 'won', reinstatedMinor: 1050n })
    assert.deepEqual(await shop.balance(user), [100, 0, 100])
    assert.deepEqual((await entriesOf(user)).slice(2), [
      ['expiry', -40, 0],
      ['dispute', -60, -60],
      ['grant', 100, 40],
      ['dispute_won', 60, 100],
    ])
  })
})

test('the figures of each unit are those of its days, and add up to what is outstanding, also after refunds and disputes', async () => {
  const path = `/organizations/${shop.id}/credits`
  const totals = (await billing.server.admin(path)).body.data as Record<string, number>[]
  const days = (await billing.server.admin(`${path}/days?from=2026-01-01`)).body.data as Record<string, number>[]
  for (const one of totals) {
    const mine = days.filter(({ unit }) => unit === one.unit)
    for (const name of ['sold', 'spent', 'expired', 'revoked', 'adjusted'])
      assert.equal(
        one[name],
        mine.reduce((sum, day) => sum + day[name]!, 0),
        `${one.unit} ${name}`,
      )
    const left = one.sold! - one.spent! - one.expired! - one.revoked! + one.adjusted!
    assert.equal(left, one.outstanding! - one.debts!, `${one.unit}`)
  }
  assert.ok(totals.some(({ revoked }) => revoked! > 0))
})
