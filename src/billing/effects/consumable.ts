// The consumable: granted by a successful charge, revoked by a full refund, listed under a customer's assets.
import type { Event } from '../../events/outbox.ts'
import { makeUuid } from '../../lib/ids.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { boolean, decimal, instant, shape, text } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'
import { jsonAmount } from '../amount.ts'
import type { Order } from '../charge/orders.ts'

export const consumable = shape('Consumable', 'c', {
  consumable_id: text('Identifier (UUID).', { example: '0198c1de-6a3d-7e21-8d0b-2f6a1c9b7e44' }),
  order_id: text('Order of the charge that granted it (UUID).', { example: '0198c1de-6a3c-7cc1-a9d4-3f1b7e5a9c20' }),
  amount: decimal('Amount that was charged, in major units.', { example: 10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  is_active: boolean('False once a full refund has revoked it.'),
  granted_at: instant('When it was granted.'),
  revoked_at: instant('When it was revoked.', { nullable: true }),
})

type Row = {
  consumable_id: string
  order_id: string
  amount: string
  currency_code: string
  is_active: string
  granted_at: string
  revoked_at: string | null
}

type Buyer = Pick<Order, 'organization_id' | 'order_id' | 'external_id' | 'amount' | 'currency_code'> & {
  profile_id: string | null
  stamp: string
}

/** The one consumable of a successful charge. */
export type Consumable = ReturnType<typeof consumableOf>

export function consumableOf({
  organization_id,
  order_id,
  external_id,
  profile_id,
  amount,
  currency_code,
  stamp,
}: Buyer) {
  return { organization_id, consumable_id: makeUuid(), order_id, external_id, profile_id, amount, currency_code, stamp }
}

export async function grant(query: Query, consumables: Consumable[]): Promise<void> {
  await query(GRANT, [JSON.stringify(consumables.map(({ stamp, ...one }) => ({ ...one, granted_at: stamp })))])
}

/** Tells of a consumable that is granted. */
export function grantedEvent({ stamp, profile_id, ...one }: Consumable): Event {
  return event('consumable.granted', { ...one, is_active: 't', granted_at: stamp, revoked_at: null }, profile_id)
}

/** Revokes the consumable of a charge that is refunded in full; no event when it is revoked already. */
export async function revoke(
  query: Query,
  order: Pick<Buyer, 'organization_id' | 'order_id' | 'profile_id' | 'stamp'>,
): Promise<Event[]> {
  const rows = await query<Row>(REVOKE, [order.organization_id, order.order_id, order.stamp])
  return rows.map((row) => event('consumable.revoked', row, order.profile_id))
}

const RETURNED = 'returning consumable_id, order_id, amount, currency_code, is_active, granted_at, revoked_at'

const GRANT: Statement = {
  name: 'grant consumables',
  text: `
    insert into consumables (organization_id, consumable_id, order_id, external_id, amount, currency_code, granted_at)
    select organization_id, consumable_id, order_id, external_id, amount, currency_code, granted_at
    from json_populate_recordset(null::consumables, $1)`,
}

const REVOKE: Statement = {
  name: 'revoke consumable',
  text: `update consumables set is_active = false, revoked_at = $3
         where organization_id = $1 and order_id = $2 and is_active ${RETURNED}`,
}

function event(type: 'consumable.granted' | 'consumable.revoked', row: Row, profile_id: string | null): Event {
  const { consumable_id, order_id, amount, currency_code, is_active, granted_at, revoked_at } = row
  const data = {
    consumable_id,
    order_id,
    amount: jsonAmount(amount),
    currency_code,
    is_active: is_active === 't',
    granted_at: instantFromPg(granted_at),
    revoked_at: revoked_at && instantFromPg(revoked_at),
  }
  return { type, object_id: consumable_id, profile_id, data }
}
