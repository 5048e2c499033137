// A successful charge with its consumable, rows and events, for tests of later refunds and disputes.
import { noDetails, type RefundAtProvider } from '../../../src/payments/providers/provider.ts'
import type { Billing, Organization } from '../../support/billing.ts'
import { untilLocked } from '../../support/database.ts'

export type PaidCharge = Awaited<ReturnType<typeof payCharge>>

/** Charges a new customer of `shop` 10.50 USD. */
export async function payCharge({ db }: Billing, shop: Organization) {
  const user = await shop.customer()
  const orderId: string = (await shop.charge(user)).body.order_id
  const [order] = await db.query('select charge_transaction_id from orders where order_id = $1', [orderId])
  return {
    user,
    orderId,
    transactionId: order!.charge_transaction_id!,
    hasActiveConsumable: async (): Promise<boolean> => (await shop.consumables(user))[0].is_active,
    /** Type, status and amount of each row of the report. */
    reportRows: async () =>
      (await shop.report({ order_id: orderId })).map(({ psp_transaction_type, status, amount }) => [
        psp_transaction_type,
        status,
        amount,
      ]),
    /** Starts `work` while a transaction locks the order and then makes `change`; returns the promise of `work`. */
    whileLocked: <T>(work: () => Promise<T>, change: string): Promise<{ work: Promise<T> }> =>
      db.tx(async (query) => {
        await query('select from orders where order_id = $1 for no key update', [orderId])
        const waiting = { work: work() }
        await untilLocked(db.query)
        await query(change, [orderId])
        return waiting
      }),
  }
}

/** The types of the events of an object, oldest first. */
export async function eventTypes({ db }: Billing, objectId: string): Promise<string[]> {
  const found = await db.query('select type from events where object_id = $1 order by sequence', [objectId])
  return found.map(({ type }) => type!)
}

/** A refund as the provider describes it when it has failed. */
export async function failedRefund({ db }: Billing, refundId: string): Promise<RefundAtProvider> {
  const [row] = await db.query(
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
