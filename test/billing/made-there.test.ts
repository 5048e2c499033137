// What a provider does on its own with a charge of ours: disputes, and refunds that fail after they had succeeded.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { recordDispute, recordDisputes } from '../../src/billing/adopt/disputes.ts'
import { adoptRefundsOfCharge } from '../../src/billing/adopt/refunds.ts'
import type { BillingContext } from '../../src/billing/context.ts'
import { refundsInProgress } from '../../src/billing/refund/refunds.ts'
import { settle } from '../../src/billing/refund/settle.ts'
import { type Dispute, noDetails, type RefundAtProvider } from '../../src/providers/provider.ts'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { untilLocked } from '../support/locks.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'

let billing: Billing
let shop: Organization
let user: string
let orderId: string
let chargeTransactionId: string
before(async () => {
  billing = await startBilling()
  shop = await billing.organization()
})
beforeEach(async () => {
  user = await shop.customer()
  orderId = (await shop.charge(user)).body.order_id
  const [order] = await billing.db.query('select charge_transaction_id from orders where order_id = $1', [orderId])
  chargeTransactionId = order!.charge_transaction_id!
})
after(() => billing.stop())

const context = (): BillingContext => {
  const { app } = billing.server
  return { ...app, providerTimeoutMs: app.config.providerTimeoutMs }
}

/** Begins `work` while the order is locked by a transaction that then does `change`; returns it as it goes on. */
async function whileLocked<T>(work: () => Promise<T>, change: string): Promise<{ work: Promise<T> }> {
  return billing.db.tx(async (query) => {
    await query('select from orders where order_id = $1 for no key update', [orderId])
    const waiting = { work: work() }
    await untilLocked(billing.db.query)
    await query(change, [orderId])
    return waiting
  })
}

const isActive = async () => (await shop.consumables(user))[0].is_active
const rows = async () =>
  (await shop.report({ order_id: orderId })).map(({ psp_transaction_type, status, amount }) => [
    psp_transaction_type,
    status,
    amount,
  ])
const eventsOf = async (objectId: string) => {
  const found = await billing.db.query('select type from events where object_id = $1 order by sequence', [objectId])
  return found.map(({ type }) => type)
}

/** A refund as the provider tells it when it has failed. */
async function failedRefund(refundId: string): Promise<RefundAtProvider> {
  const [row] = await billing.db.query(
    'select provider_key, provider_transaction_id, amount from refunds where refund_id = $1',
    [refundId],
  )
  return {
    key: row!.provider_key!,
    reference: refundId,
    transactionId: row!.provider_transaction_id!,
    status: 'failed',
    amountMinor: BigInt(row!.amount!.replace('.', '')),
    currencyCode: 'USD',
    at: '2026-01-31T22:00:00Z',
    details: { ...noDetails, psp_transaction_id: row!.provider_transaction_id! },
  }
}

describe('a dispute', () => {
  const dispute = (more: Partial<Dispute> = {}): Dispute => ({
    disputeId: 'dp_1',
    chargeTransactionId,
    status: 'open',
    fundsWithdrawn: false,
    reinstatedMinor: 0n,
    amountMinor: 1050n,
    currencyCode: 'USD',
    reason: 'fraudulent',
    at: '2026-01-31T22:00:00Z',
    ...more,
  })
  const record = (more: Partial<Dispute> = {}) =>
    recordDispute(context(), { organization_id: shop.id, order_id: orderId }, dispute(more))

  test('that is opened is an event, and takes nothing yet', async () => {
    assert.equal(await record(), true)
    assert.equal(await isActive(), true)
    assert.deepEqual(await rows(), [['sale', 'succeeded', 10.5]])
    assert.deepEqual(await eventsOf(orderId), ['charge.succeeded', 'charge.disputed'])
  })

  test('that takes the money is a row of the report and revokes the consumable, once', async () => {
    await record({ fundsWithdrawn: true })
    assert.equal(await record({ fundsWithdrawn: true }), false)
    assert.equal(await record(), false, 'an older state that comes late')
    assert.equal(await isActive(), false)
    assert.deepEqual(await rows(), [
      ['sale', 'succeeded', 10.5],
      ['chargeback', 'refunded', 10.5],
    ])
    assert.deepEqual(await eventsOf(orderId), ['charge.succeeded', 'charge.disputed'])
    const [{ consumable_id }] = await shop.consumables(user)
    assert.deepEqual(await eventsOf(consumable_id), ['consumable.granted', 'consumable.revoked'])
  })

  test('that is won gives the consumable back with the money', async () => {
    await record({ fundsWithdrawn: true })
    await record({ status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n })
    assert.equal(await isActive(), true)
    assert.deepEqual((await rows()).slice(1), [
      ['chargeback', 'refunded', 10.5],
      ['chargeback_reversal', 'succeeded', 10.5],
    ])
    assert.deepEqual(await eventsOf(orderId), ['charge.succeeded', 'charge.disputed', 'charge.dispute_won'])
  })

  test('that is won does not give back what a refund has revoked', async () => {
    await record({ fundsWithdrawn: true })
    await shop.refund(user, orderId)
    await record({ status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n })
    assert.equal(await isActive(), false)
  })

  test('that is lost changes nothing more', async () => {
    await record({ fundsWithdrawn: true })
    assert.equal(await record({ status: 'lost', fundsWithdrawn: true }), true)
    assert.equal(await isActive(), false)
    assert.equal((await rows()).length, 2)
  })

  test('that is lost after a part was refunded gets that part back, and the consumable stays revoked', async () => {
    await shop.refund(user, orderId, { amount: 3, idempotency_key: 'r' })
    await record({ fundsWithdrawn: true })
    await record({ status: 'lost', fundsWithdrawn: true, reinstatedMinor: 300n })
    assert.equal(await isActive(), false)
    assert.deepEqual((await rows()).slice(2), [
      ['chargeback', 'refunded', 10.5],
      ['chargeback_reversal', 'succeeded', 3],
    ])
    assert.deepEqual(await eventsOf(orderId), ['charge.succeeded', 'charge.disputed'])
  })

  test('that was lost and is won after all is told as won once, and gives the consumable back', async () => {
    await record({ status: 'lost', fundsWithdrawn: true })
    const won = { status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n } as const
    assert.deepEqual([await record(won), await record(won)], [true, false])
    assert.equal(await isActive(), true)
    assert.deepEqual(await eventsOf(orderId), ['charge.succeeded', 'charge.disputed', 'charge.dispute_won'])
  })

  test('that is won does not give back what another dispute of the charge holds', async () => {
    await record({ fundsWithdrawn: true })
    await record({ disputeId: 'dp_2', fundsWithdrawn: true, status: 'lost' })
    await record({ status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n })
    assert.equal(await isActive(), false)
  })

  test('that is lost keeps the consumable revoked when a full refund fails afterwards', async () => {
    const { refund_id } = (await shop.refund(user, orderId)).body
    await record({ status: 'lost', fundsWithdrawn: true, reinstatedMinor: 1050n })
    const refund = await failedRefund(refund_id)
    const there = scriptedProvider({ refundsOf: async () => [refund] })
    await adoptRefundsOfCharge(context(), there, ['simulator', '*', null], chargeTransactionId)
    assert.equal(await isActive(), false)
  })

  test('told by several at once is recorded once', async () => {
    await Promise.all([1, 2, 3, 4].map(() => record({ fundsWithdrawn: true })))
    assert.equal((await rows()).length, 2)
    assert.deepEqual(await eventsOf(orderId), ['charge.succeeded', 'charge.disputed'])
  })

  test('that waits for its order sees what was done to the consumable meanwhile', async () => {
    await shop.refund(user, orderId)
    const { work } = await whileLocked(
      () => record({ fundsWithdrawn: true }),
      // As when the refund fails after all.
      'update consumables set is_active = true, revoked_at = null where order_id = $1',
    )
    assert.equal(await work, true)
    assert.equal(await isActive(), false)
  })

  test('is found by the charge; one of a charge that is not here is none of ours', async () => {
    const of = [dispute(), dispute({ chargeTransactionId: 'unknown' })]
    assert.equal(await recordDisputes(context(), ['simulator', '*', null], of), 1)
    assert.equal(await recordDisputes(context(), ['simulator', '*', 'another'], [dispute({ status: 'lost' })]), 0)
  })
})

describe('a refund that had succeeded fails', () => {
  const there = (found: RefundAtProvider[]) => scriptedProvider({ refundsOf: async () => found })
  const adopt = (found: RefundAtProvider[]) =>
    adoptRefundsOfCharge(context(), there(found), ['simulator', '*', null], chargeTransactionId)

  test('the sum falls, the consumable is granted again, and the report and events say so, once', async () => {
    const { refund_id } = (await shop.refund(user, orderId)).body
    assert.equal(await isActive(), false)
    assert.deepEqual(await adopt([await failedRefund(refund_id)]), ['failed_later'])
    assert.deepEqual(await adopt([await failedRefund(refund_id)]), ['known'])
    assert.equal(await isActive(), true)
    assert.deepEqual(await rows(), [
      ['sale', 'succeeded', 10.5],
      ['refund', 'refunded', 10.5],
      ['refund', 'failed', 10.5],
    ])
    assert.deepEqual(await eventsOf(refund_id), ['refund.succeeded', 'refund.failed'])
    const [{ consumable_id }] = await shop.consumables(user)
    assert.deepEqual(await eventsOf(consumable_id), ['consumable.granted', 'consumable.revoked', 'consumable.granted'])
    const again = (await shop.refund(user, orderId)).body
    assert.deepEqual([again.amount_refunded, again.consumable_revoked], [0, false], 'the provider has it as paid back')
  })

  test('a partial one lowers the sum and grants nothing', async () => {
    const { refund_id } = (await shop.refund(user, orderId, { amount: 4, idempotency_key: 'r' })).body
    await adopt([await failedRefund(refund_id)])
    const replay = (await shop.refund(user, orderId, { amount: 4, idempotency_key: 'r' })).body
    assert.deepEqual([replay.refund_status, replay.amount_refunded], ['failed', 0])
  })

  test('a refund that waits for its order sees what was done to the consumable meanwhile', async () => {
    const refundId = randomUUID()
    await billing.db.query(
      `insert into refunds (organization_id, refund_id, order_id, external_id, amount, currency_code, provider_key, created_at, next_look_at)
       values ($1, $2, $3, $4, 10.50, 'USD', $4, db_clock(), db_clock() + interval '1 hour')`,
      [shop.id, refundId, orderId, user],
    )
    await billing.db.query('update consumables set is_active = false, revoked_at = now() where order_id = $1', [
      orderId,
    ])
    const refund = (await refundsInProgress.find(billing.db.query, refundId))!
    const paid = { reference: refundId, amountMinor: 1050n, currencyCode: 'USD', details: noDetails }
    const { work } = await whileLocked(
      () => settle(billing.db, refund, { outcome: 'succeeded', ...paid }),
      // As when a dispute is won.
      'update consumables set is_active = true, revoked_at = null where order_id = $1',
    )
    assert.equal((await work).status, 'succeeded')
    assert.equal(await isActive(), false)
  })

  test('a refund made there that is more than what is left is refused, and logged', async () => {
    await shop.refund(user, orderId, { amount: 10, idempotency_key: 'r' })
    const made = {
      ...(await failedRefund((await lastRefund())!)),
      key: null,
      reference: null,
      transactionId: 're_there',
    }
    assert.deepEqual(await adopt([{ ...made, status: 'succeeded', amountMinor: 100n }]), ['mismatch'])
  })

  const lastRefund = async () =>
    (await billing.db.query('select refund_id from refunds where order_id = $1', [orderId]))[0]!.refund_id
})
