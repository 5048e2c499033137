// The consumable: granted by a successful charge, revoked by a full refund or a dispute, listed under a customer's assets.
import type { Event } from '../../../core/events/outbox.ts'
import { makeUuid } from '../../../lib/ids.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { boolean, decimal, instant, shape, text } from '../../../lib/shape/shape.ts'
import { instantFromPg } from '../../../lib/time.ts'
import { jsonAmount } from '../amount.ts'
import { changedOf } from './changed.ts'
import type { CustomerOrder } from './orders.ts'

export const consumable = shape('Consumable', 'c', {
  consumable_id: text('Identifier (UUID).', { example: '0198c1de-6a3d-7e21-8d0b-2f6a1c9b7e44' }),
  order_id: text('Order of the charge that granted it (UUID).', { example: '0198c1de-6a3c-7cc1-a9d4-3f1b7e5a9c20' }),
  amount: decimal('Amount that was charged, in major units.', { example: 10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  is_active: boolean('False after a full refund or a dispute has revoked it.'),
  granted_at: instant('When it was granted.'),
  revoked_at: instant('When it was revoked.', { nullable: true }),
})

type Row = {
  consumable_id: string
  order_id: string
  amount: string
  currency_code: string
  is_active: boolean
  granted_at: string
  revoked_at: string | null
}

/** An order that succeeded, with its customer's profile. */
interface Buyer extends CustomerOrder {
  amount: string
  currency_code: string
  profile_id: string | null
  stamp: string
}

/** The consumable of a successful charge. */
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
  await query(...GRANT(consumables.map(({ stamp, ...one }) => ({ ...one, granted_at: stamp }))))
}

/** The event of a consumable that is granted. */
export function grantedEvent({ stamp, profile_id, ...one }: Consumable): Event {
  return event('consumable.granted', { ...one, is_active: true, granted_at: stamp, revoked_at: null }, profile_id)
}

/** The consumable of an order, as `HELD_COLUMNS` select it; all null when the order granted none. */
export type Held = {
  held_id: string | null
  held_amount: string | null
  held_currency_code: string | null
  held_granted_at: string | null
  held_is_active: boolean | null
  /** Whether a dispute has taken the money of the order. */
  is_charged_back: boolean
  /** Whether the order granted credits. */
  has_credits: boolean
}

/** The columns of `Held` that are not text. */
export const HELD_NOT_TEXT = { held_is_active: 'boolean', is_charged_back: 'boolean', has_credits: 'boolean' } as const

/** Whether a dispute `d` holds the money. Of a lost one only what had been refunded before is returned. */
export const IS_CHARGED_BACK = `d.funds_withdrawn_at is not null
  and (d.funds_reinstated_at is null or d.status = 'lost')`

/** Of a consumable `held` and its order `o`. */
export const HELD_COLUMNS = `held.consumable_id as held_id, held.amount as held_amount,
  held.currency_code as held_currency_code, held.granted_at as held_granted_at, held.is_active as held_is_active,
  exists (select from disputes d where d.organization_id = o.organization_id and d.order_id = o.order_id
    and ${IS_CHARGED_BACK}) as is_charged_back,
  exists (select from credit_grants g where g.organization_id = o.organization_id and g.order_id = o.order_id) as has_credits`

/** An order and its consumable, locked. */
export type Holder = Held & { organization_id: string; order_id: string; profile_id: string | null; stamp: string }

/** Revokes the consumable of an order. */
export async function revoke(query: Query, { organization_id, order_id, stamp }: Holder): Promise<void> {
  await query(SET_ACTIVE, [organization_id, order_id, false, stamp])
}

/** Makes a revoked consumable active again. */
export async function restore(query: Query, { organization_id, order_id }: Holder): Promise<void> {
  await query(SET_ACTIVE, [organization_id, order_id, true, null])
}

export const revokedEvent = (holder: Holder) =>
  event('consumable.revoked', rowOf(holder, holder.stamp), holder.profile_id)

export const restoredEvent = (holder: Holder) => event('consumable.granted', rowOf(holder, null), holder.profile_id)

function rowOf(holder: Holder, revokedAt: string | null): Row {
  const { held_id, held_amount, held_currency_code, held_granted_at, order_id } = holder
  return {
    consumable_id: held_id!,
    order_id,
    amount: held_amount!,
    currency_code: held_currency_code!,
    is_active: revokedAt === null,
    granted_at: held_granted_at!,
    revoked_at: revokedAt,
  }
}

const GRANT = onGivenRows(
  'grant consumables',
  {
    organization_id: 'text',
    consumable_id: 'uuid',
    order_id: 'uuid',
    external_id: 'text',
    amount: 'numeric',
    currency_code: 'text',
    granted_at: 'timestamptz',
  },
  (rows) => `
    insert into consumables (organization_id, consumable_id, order_id, external_id, amount, currency_code, granted_at,
      updated_at)
    select organization_id, consumable_id, order_id, external_id, amount, currency_code, granted_at, granted_at
    from ${rows}`,
)

const SET_ACTIVE: Statement = {
  name: 'revoke or restore consumable',
  text: `update consumables set is_active = $3, revoked_at = $4::timestamptz, updated_at = ${changedOf('consumables')}
         where organization_id = $1 and order_id = $2 and is_active <> $3`,
}

function event(type: 'consumable.granted' | 'consumable.revoked', row: Row, profile_id: string | null): Event {
  const { consumable_id, order_id, amount, currency_code, is_active, granted_at, revoked_at } = row
  const data = {
    consumable_id,
    order_id,
    amount: jsonAmount(amount),
    currency_code,
    is_active,
    granted_at: instantFromPg(granted_at),
    revoked_at: revoked_at && instantFromPg(revoked_at),
  }
  return { type, object_id: consumable_id, profile_id, data }
}
