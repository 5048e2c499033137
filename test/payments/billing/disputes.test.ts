// Disputes of a charge: the event, the consumable, the rows of the report.
import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { recordDispute, recordDisputes } from '../../../src/payments/billing/ledger/disputes.ts'
import { adoptRefundsOfCharge } from '../../../src/payments/billing/refund/adopt-of-charge.ts'
import type { Dispute } from '../../../src/payments/providers/provider.ts'
import { startShop } from '../../support/billing.ts'
import { eventTypes, failedRefund, type PaidCharge, payCharge } from './paid-charge.ts'
import { scriptedProvider } from './scripted-provider.ts'

const { billing, shop } = await startShop()
let charge: PaidCharge
beforeEach(async () => {
  charge = await payCharge(billing, shop)
})

describe('a dispute', () => {
  const dispute = (more: Partial<Dispute> = {}): Dispute => ({
    disputeId: 'dp_1',
    chargeTransactionId: charge.transactionId,
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
    recordDispute(
      billingContext(billing.server.app),
      { organization_id: shop.id, order_id: charge.orderId },
      dispute(more),
    )

  test('that is opened is an event, and takes nothing yet', async () => {
    assert.equal(await record(), true)
    assert.equal(await charge.hasActiveConsumable(), true)
    assert.deepEqual(await charge.reportRows(), [['sale', 'succeeded', 10.5]])
    assert.deepEqual(await eventTypes(billing, charge.orderId), ['charge.succeeded', 'charge.disputed'])
  })

  test('that takes the money is a row of the report and revokes the consumable, once', async () => {
    await record({ fundsWithdrawn: true })
    assert.equal(await record({ fundsWithdrawn: true }), false)
    assert.equal(await record(), false, 'an older state that comes late')
    assert.equal(await charge.hasActiveConsumable(), false)
    assert.deepEqual(await charge.reportRows(), [
      ['sale', 'succeeded', 10.5],
      ['chargeback', 'refunded', 10.5],
    ])
    assert.deepEqual(await eventTypes(billing, charge.orderId), ['charge.succeeded', 'charge.disputed'])
    const [{ consumable_id }] = await shop.consumables(charge.user)
    assert.deepEqual(await eventTypes(billing, consumable_id), ['consumable.granted', 'consumable.revoked'])
  })

  test('that is won gives the consumable back with the money', async () => {
    await record({ fundsWithdrawn: true })
    await record({ status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n })
    assert.equal(await charge.hasActiveConsumable(), true)
    assert.deepEqual((await charge.reportRows()).slice(1), [
      ['chargeback', 'refunded', 10.5],
      ['chargeback_reversal', 'succeeded', 10.5],
    ])
    assert.deepEqual(await eventTypes(billing, charge.orderId), [
      'charge.succeeded',
      'charge.disputed',
      'charge.dispute_won',
    ])
  })

  test('that is won does not give back what a refund has revoked', async () => {
    await record({ fundsWithdrawn: true })
    await shop.refund(charge.user, charge.orderId)
    await record({ status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n })
    assert.equal(await charge.hasActiveConsumable(), false)
  })

  test('that is lost changes nothing more', async () => {
    await record({ fundsWithdrawn: true })
    assert.equal(await record({ status: 'lost', fundsWithdrawn: true }), true)
    assert.equal(await charge.hasActiveConsumable(), false)
    assert.equal((await charge.reportRows()).length, 2)
  })

  test('that is lost after a part was refunded gets that part back, and the consumable stays revoked', async () => {
    await shop.refund(charge.user, charge.orderId, { amount: 3, idempotency_key: 'r' })
    await record({ fundsWithdrawn: true })
    await record({ status: 'lost', fundsWithdrawn: true, reinstatedMinor: 300n })
    assert.equal(await charge.hasActiveConsumable(), false)
    assert.deepEqual((await charge.reportRows()).slice(2), [
      ['chargeback', 'refunded', 10.5],
      ['chargeback_reversal', 'succeeded', 3],
    ])
    assert.deepEqual(await eventTypes(billing, charge.orderId), ['charge.succeeded', 'charge.disputed'])
  })

  test('of which a part is returned while it is open keeps the consumable until it is decided', async () => {
    await shop.refund(charge.user, charge.orderId, { amount: 3, idempotency_key: 'r' })
    await record({ fundsWithdrawn: true })
    assert.equal(await record({ fundsWithdrawn: true, reinstatedMinor: 300n }), false)
    assert.equal(await charge.hasActiveConsumable(), false)
    await record({ status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n })
    assert.equal(await charge.hasActiveConsumable(), true)
    assert.deepEqual((await charge.reportRows()).slice(2), [
      ['chargeback', 'refunded', 10.5],
      ['chargeback_reversal', 'succeeded', 10.5],
    ])
  })

  test('that was lost and is won after all has one event for it, and gives the consumable back', async () => {
    await record({ status: 'lost', fundsWithdrawn: true })
    const won = { status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n } as const
    assert.deepEqual([await record(won), await record(won)], [true, false])
    assert.equal(await charge.hasActiveConsumable(), true)
    assert.deepEqual(await eventTypes(billing, charge.orderId), [
      'charge.succeeded',
      'charge.disputed',
      'charge.dispute_won',
    ])
  })

  test('that is won does not give back what another dispute of the charge holds', async () => {
    await record({ fundsWithdrawn: true })
    await record({ disputeId: 'dp_2', fundsWithdrawn: true, status: 'lost' })
    await record({ status: 'won', fundsWithdrawn: true, reinstatedMinor: 1050n })
    assert.equal(await charge.hasActiveConsumable(), false)
  })

  test('that is lost keeps the consumable revoked when a full refund fails afterwards', async () => {
    const { refund_id } = (await shop.refund(charge.user, charge.orderId)).body
    await record({ status: 'lost', fundsWithdrawn: true, reinstatedMinor: 1050n })
    const refund = await failedRefund(billing, refund_id)
    const there = scriptedProvider({ refundsOf: async () => [refund] })
    await adoptRefundsOfCharge(
      billingContext(billing.server.app),
      there,
      { psp: 'simulator', merchantId: '*', organizationId: null },
      charge.transactionId,
    )
    assert.equal(await charge.hasActiveConsumable(), false)
  })

  test('reported four times at once is recorded once', async () => {
    await Promise.all([1, 2, 3, 4].map(() => record({ fundsWithdrawn: true })))
    assert.equal((await charge.reportRows()).length, 2)
    assert.deepEqual(await eventTypes(billing, charge.orderId), ['charge.succeeded', 'charge.disputed'])
  })

  test('that waits for its order sees what was done to the consumable in between', async () => {
    await shop.refund(charge.user, charge.orderId)
    const { work } = await charge.whileLocked(
      () => record({ fundsWithdrawn: true }),
      // As when the refund fails after all.
      'update consumables set is_active = true, revoked_at = null where order_id = $1',
    )
    assert.equal(await work, true)
    assert.equal(await charge.hasActiveConsumable(), false)
  })

  test('is found by its charge; a dispute of an unknown charge is ignored', async () => {
    const of = [dispute(), dispute({ chargeTransactionId: 'unknown' })]
    assert.equal(
      await recordDisputes(
        billingContext(billing.server.app),
        { psp: 'simulator', merchantId: '*', organizationId: null },
        of,
      ),
      1,
    )
    assert.equal(
      await recordDisputes(
        billingContext(billing.server.app),
        { psp: 'simulator', merchantId: '*', organizationId: 'another' },
        [dispute({ status: 'lost' })],
      ),
      0,
    )
  })
})
