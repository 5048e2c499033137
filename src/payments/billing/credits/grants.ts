// What a charge grants: the property `grants` of its request, or the rules of the organization for its amount.
import { isJsonObject, type JsonObject } from '../../../lib/json/read.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { instantFromPg } from '../../../lib/time.ts'
import { minorFromDatabase } from '../amount.ts'
import { expiryAfter, readExpiresAfter } from './after.ts'
import {
  type Credits,
  checkDecimals,
  creditsFromText,
  formatCredits,
  readCredits,
  type SentAmount,
  shareOf,
} from './amount.ts'
import { unknownUnit } from './calls.ts'
import type { Cause } from './parts.ts'
import { creditsIn, unitIn } from './requests.ts'
import { heldIn, save } from './save.ts'
import { type AccountKey, isHeld, lockAccounts, nameOf } from './store.ts'

// A pack of several units; more would be a mistake.
const MOST_GRANTS = 10

export const grantsIn = Type.Array(
  Type.Named('ChargeGrant', {
    unit: unitIn,
    amount: creditsIn('What the charge grants'),
    expires_after: Type.Optional({
      type: ['string', 'null'],
      maxLength: 16,
      description: 'How long it lasts, such as `90d` or `12h`; without it, it does not expire.',
      examples: ['90d'],
    }),
  }),
  {
    description:
      'Credits that the charge grants when it succeeds, in place of what the organization’s rules grant for its amount. A repeated request must have the same.',
    maxItems: MOST_GRANTS,
    examples: [[]],
  },
)

/** As it is stored in an order: the amount as text, the time in hours. */
interface Granted {
  unit: string
  amount: string
  expires_after: number | null
}

/** The text of `grants` for the order, in one form, so that texts compare; null if the request has none. Throws a 400. */
export function readGrants(grants: unknown): string | null {
  if (grants === undefined) return null
  const read = (grants as JsonObject[]).filter(isJsonObject).map(
    (one): Granted => ({
      unit: one.unit as string,
      amount: formatCredits(readCredits(one.amount as SentAmount, { field: 'grants.amount' })),
      expires_after: readExpiresAfter(one.expires_after as string | null | undefined, 'grants.expires_after'),
    }),
  )
  return JSON.stringify(
    read
      .map((one) => JSON.stringify(one))
      .sort()
      .map((text) => JSON.parse(text)),
  )
}

/** Throws a 400 for grants in a unit that does not exist, or with more decimals than it has. */
export async function checkGrants(query: Query, organizationId: string, grants: string | null): Promise<void> {
  const wanted = grantsOf(grants)
  if (wanted.length === 0) return
  const units = (await query(READ_UNITS, [organizationId])).map(unitFrom)
  const decimals = new Map(units.map((row) => [row.unit, row.decimals]))
  for (const { unit, amount } of wanted) {
    const most = decimals.get(unit)
    if (most === undefined) throw unknownUnit(unit)
    checkDecimals(creditsFromText(amount), { unit, decimals: most, field: 'grants.amount' })
  }
}

const unitFrom = rowReader<{ unit: string; decimals: number }>({ decimals: 'number' })

const READ_UNITS: Statement = {
  name: 'read credit units',
  text: 'select unit, decimals from credit_units where organization_id = $1',
}

/** SQL: what an order `o` grants when it is charged with `amount` in `currency`; null: nothing. */
export const grantsOfOrder = (currency: string) => `coalesce(o.grants::text, (
  select json_agg(json_build_object('unit', r.unit, 'amount', trim_scale(r.amount)::text, 'expires_after', r.expires_after))
  from credit_rules r where r.organization_id = o.organization_id and r.currency_code = ${currency} and r.charged = o.amount
  )::text)`

/** An order that succeeded, with what it grants. */
export interface Granting {
  organization_id: string
  order_id: string
  external_id: string
  grants: string | null
  amount: string
  currency_code: string
  asked_amount: string
  asked_currency_code: string
}

/**
 * Grants what these orders grant, once, in the transaction that settles them, which has locked them. A charge of another amount
 * than was requested grants its share.
 */
export async function grantForOrders(query: Query, orders: readonly Granting[]): Promise<void> {
  const wanted = orders.flatMap((order) => grantsOf(order.grants).map((grant) => ({ order, grant })))
  if (wanted.length === 0) return
  const keys = wanted.map(({ order, grant }) => keyOf(order, grant.unit))
  const accounts = await lockAccounts(query, keys, { create: keys })
  for (const { order, grant } of wanted) {
    const held = accounts.get(nameOf(keyOf(order, grant.unit)))
    if (held === undefined || !isHeld(held)) throw new Error(`Bug: an order cannot grant its credits: ${held}`)
    const amount = shareCharged(order, creditsFromText(grant.amount), held.decimals)
    if (amount === 0n) continue
    const expiresAt = expiryAfter(held.account.now, grant.expires_after)
    held.account.grant(amount, expiresAt, 'charge', { orderId: order.order_id })
  }
  await save(query, heldIn(accounts))
}

function shareCharged(order: Granting, amount: Credits, decimals: number): Credits {
  const { currency_code, asked_currency_code } = order
  if (currency_code !== asked_currency_code) return amount
  const charged = minorFromDatabase(order.amount, currency_code)
  const asked = minorFromDatabase(order.asked_amount, currency_code)
  return charged < asked ? shareOf(amount, charged, asked, decimals) : amount
}

/** An order whose credits follow its refunds and disputes. */
export interface Revocable {
  organization_id: string
  order_id: string
  external_id: string
}

/**
 * Revokes the share of an order's credits that was paid back, or gives back what was revoked beyond it; repeating it changes nothing. The
 * caller has locked the order.
 */
export async function revokeShare(
  query: Query,
  order: Revocable,
  share: { part: bigint; whole: bigint },
  cause: Cause,
): Promise<void> {
  const { organization_id, order_id } = order
  const units = (await query(READ_GRANTED, [organization_id, order_id])).map(grantedFrom)
  if (units.length === 0) return
  const keys = units.map(({ unit, external_id }) => keyOf({ ...order, external_id }, unit))
  const accounts = heldIn(await lockAccounts(query, keys, { orderIds: [order_id] }))
  const makesDebt = units[0]!.makes_debt
  const takenAt = await lastMoved(query, { ...order, external_id: units[0]!.external_id }, cause)
  for (const { account } of accounts) account.setRevoked(order_id, share, { makesDebt, cause, takenAt })
  await save(query, accounts)
}

/**
 * When credits of the order were last taken, or given back, which has prolonged what is still taken; null unless `cause` gives them
 * back.
 */
async function lastMoved(query: Query, order: Revocable, cause: Cause): Promise<string | null> {
  if (cause !== 'refund_failed' && cause !== 'dispute_won') return null
  const { organization_id, external_id, order_id } = order
  const [row] = await query(LAST_MOVED, [organization_id, external_id, order_id])
  return row ? instantFromPg(row.created_at!) : null
}

const LAST_MOVED: Statement = {
  name: 'find when credits of order were revoked',
  text: `select e.created_at from credit_entries e
    where e.organization_id = $1 and e.external_id = $2 and e.order_id = $3 and e.account = 'revoked'
    order by e.created_at desc limit 1`,
}

const grantedFrom = rowReader<{ unit: string; external_id: string; makes_debt: boolean }>({ makes_debt: 'boolean' })

const READ_GRANTED: Statement = {
  name: 'read units granted by order',
  text: `select distinct g.unit, g.external_id, o.credits_debt as makes_debt
    from credit_grants g join organizations o on o.id = g.organization_id
    where g.organization_id = $1 and g.order_id = $2`,
}

const grantsOf = (grants: string | null): Granted[] => (grants === null ? [] : JSON.parse(grants))

const keyOf = ({ organization_id, external_id }: Omit<Revocable, 'order_id'>, unit: string): AccountKey => ({
  organizationId: organization_id,
  externalId: external_id,
  unit,
})
