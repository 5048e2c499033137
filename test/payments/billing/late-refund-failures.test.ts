// Refunds that fail at the provider after they had succeeded.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { adoptRefundsOfCharge } from '../../../src/payments/billing/refund/adopt-of-charge.ts'
import { refundsInProgress } from '../../../src/payments/billing/refund/row.ts'
import { settle } from '../../../src/payments/billing/refund/settle.ts'
import { noDetails, type RefundAtProvider } from '../../../src/payments/providers/provider.ts'
import { startShop } from '../../support/billing.ts'
import { eventTypes, failedRefund, type PaidCharge, payCharge } from './paid-charge.ts'
import { scriptedProvider } from './scripted-provider.ts'

const { billing, shop } = await startShop()
let charge: PaidCharge
beforeEach(async () => {
  charge = await payCharge(billing, shop)
})

describe('a refund that had succeeded fails', () => {
  const there = (found: RefundAtProvider[]) => scriptedProvider({ refundsOf: async () => found })
  const adopt = (found: RefundAtProvider[]) =>
    adoptRefundsOfCharge(
      billingContext(billing.server.app),
      there(found),
      { psp: 'simulator', merchantId: '*', organizationId: null },
      charge.transactionId,
    )

  test('the sum falls, the consumable is granted again, and the report and events say so, once', async () => {
    const { refund_id } = (await shop.refund(charge.user, charge.orderId)).body
    assert.equal(await charge.hasActiveConsumable(), false)
    assert.deepEqual(await adopt([await failedRefund(billing, refund_id)]), ['failed_later'])
    assert.deepEqual(await adopt([await failedRefund(billing, refund_id)]), ['known'])
    assert.equal(await charge.hasActiveConsumable(), true)
    assert.deepEqual(await charge.reportRows(), [
      ['sale', 'succeeded', 10.5],
      ['refund', 'refunded', 10.5],
      ['refund', 'failed', 10.5],
    ])
    assert.deepEqual(await eventTypes(billing, refund_id), ['refund.succeeded', 'refund.failed'])
    const [{ consumable_id }] = await shop.consumables(charge.user)
    assert.deepEqual(await eventTypes(billing, consumable_id), [
      'consumable.granted',
      'consumable.revoked',
      'consumable.granted',
    ])
    const again = (await shop.refund(charge.user, charge.orderId)).body
    assert.deepEqual([again.amount_refunded, again.consumable_revoked], [0, false], 'the provider has it as paid back')
  })

  test('a partial one lowers the sum and grants nothing', async () => {
    const { refund_id } = (await shop.refund(charge.user, charge.orderId, { amount: 4, idempotency_key: 'r' })).body
    await adopt([await failedRefund(billing, refund_id)])
    const replay = (await shop.refund(charge.user, charge.orderId, { amount: 4, idempotency_key: 'r' })).body
    assert.deepEqual([replay.refund_status, replay.amount_refunded], ['failed', 0])
  })

  test('a refund that waits for its order sees what was done to the consumable in between', async () => {
    const refundId = randomUUID()
    await billing.db.query(
      `insert into refunds (organization_id, refund_id, order_id, external_id, amount, currency_code, provider_key, created_at, next_look_at)
       values ($1, $2, $3, $4, 10.50, 'USD', $4, db_clock(), db_clock() + interval '1 hour')`,
      [shop.id, refundId, charge.orderId, charge.user],
    )
    await billing.db.query('update consumables set is_active = false, revoked_at = now() where order_id = $1', [
      charge.orderId,
    ])
    const refund = (await refundsInProgress.find(billing.db.query, refundId))!
    const paid = { reference: refundId, amountMinor: 1050n, currencyCode: 'USD', details: noDetails }
    const { work } = await charge.whileLocked(
      () => settle(billing.db, refund, { outcome: 'succeeded', ...paid }),
      // As when a dispute is won.
      'update consumables set is_active = true, revoked_at = null where order_id = $1',
    )
    assert.equal((await work).status, 'succeeded')
    assert.equal(await charge.hasActiveConsumable(), false)
  })

  test('a refund made there that is more than what is left is refused, and logged', async () => {
    await shop.refund(charge.user, charge.orderId, { amount: 10, idempotency_key: 'r' })
    const made = {
      ...(await failedRefund(billing, (await lastRefund())!)),
      key: null,
      reference: null,
      transactionId: 're_there',
    }
    assert.deepEqual(await adopt([{ ...made, status: 'succeeded', amountMinor: 100n }]), ['mismatch'])
  })

  const lastRefund = async () =>
    (await billing.db.query('select refund_id from refunds where order_id = $1', [charge.orderId]))[0]!.refund_id
})
