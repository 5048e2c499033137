// Charges in a Stripe account that Tundish made: they are never imported as payments of others.
import type { Stripe } from 'stripe'
import { isUuid } from '../../../lib/ids.ts'
import { countLost } from '../../../payments/providers/lost-movements.ts'
import type { Movement } from '../../../payments/providers/movements.ts'
import type { Context } from './context.ts'
import { idOf, minorUnits, time } from './convert.ts'
import { each } from './each.ts'
import { type Charge, customerOf } from './payments.ts'

/**
 * Without the objects of charges made by Tundish itself, whose own records are authoritative. One with a key of ours and without an
 * order here is lost: stored as a payment, it would be counted again when its key is repeated.
 */
export async function foreign<T>(context: Context, objects: T[], chargeOf: (object: T) => Stripe.Charge): Promise<T[]> {
  const metadataOf = (object: T) => chargeOf(object)?.metadata ?? {}
  const orderOf = (object: T) => metadataOf(object)['tundish_order'] ?? ''
  const ours = await knownOrders(context, objects.map(orderOf))
  const others = objects.filter(
    (object) => !ours.has(orderOf(object).toLowerCase()) && !metadataOf(object)['tundish_key'],
  )
  context.tally.own += objects.length - others.length
  return others
}

/** Which of these are ids of orders here. */
async function knownOrders({ db, target }: Context, ids: string[]): Promise<Set<string>> {
  const orders = ids.filter(isUuid)
  if (orders.length === 0) return new Set()
  const rows = await db.query('select order_id from orders where organization_id = $1 and order_id = any($2::uuid[])', [
    target.organizationId,
    orders,
  ])
  return new Set(rows.map(({ order_id }) => order_id!))
}

/** Stores the successful charges with a key of ours whose order is not here, and counts those that no order of another organization has. */
export async function keepLost(context: Context, charges: Charge[]): Promise<void> {
  const marked = charges.filter(({ status, metadata }) => status === 'succeeded' && metadata?.['tundish_key'])
  const orderOf = ({ metadata }: Charge) => metadata?.['tundish_order'] ?? ''
  const ours = await knownOrders(context, marked.map(orderOf))
  const lost = marked.filter((charge) => !ours.has(orderOf(charge).toLowerCase()))
  const movements = await each(
    context,
    lost,
    (charge): Movement => ({
      type: 'charge',
      key: charge.metadata['tundish_key']!,
      reference: orderOf(charge) || null,
      amountMinor: minorUnits(charge.amount_captured, charge.currency),
      currencyCode: charge.currency.toUpperCase(),
      transactionId: idOf(charge.payment_intent) ?? charge.id,
      at: time(charge.created)!,
      ...(customerOf(charge) !== undefined && { providerCustomer: customerOf(charge)! }),
    }),
  )
  await context.keepLost(movements)
  const { db, target, tally } = context
  tally.lost = (tally.lost ?? 0) + (await countLost(db.query, { ...target, psp: 'stripe' }, movements))
}
