// Locks accounts of credits and reads them, for the rest of a transaction.
import { isClosed } from '../../../core/tenants/leaving.ts'
import type { LockTimeout } from '../../../lib/batching.ts'
import { makeUuid } from '../../../lib/ids.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import { limitWaits } from '../../../lib/pg/lock-timeout.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { instantFromPg } from '../../../lib/time.ts'
import { Account } from './account.ts'
import { type Credits, creditsFromDatabase } from './amount.ts'
import type { Hold, Lot, TopUp } from './parts.ts'

export interface AccountKey {
  organizationId: string
  externalId: string
  unit: string
}

/** An account that is locked until commit, with what surrounds it. */
export interface Held extends AccountKey {
  accountId: string
  projectId: string
  profileId: string | null
  /** Whether the customer's profile is erased: nothing personal may be written. */
  isErased: boolean
  decimals: number
  /** `credits.low` is sent when what is available falls below it. */
  lowBelow: Credits | null
  /** The rule of an automatic top-up that is on; null if there is none. */
  topUp: TopUp | null
  /** What was available before anything due was booked. */
  availableBefore: Credits
  /** When it was due before that. */
  dueBefore: string | null
  account: Account
}

/** Why there is no account. `none`: the customer has had no credits of the unit yet. */
export type Missing = 'moving' | 'unknown_customer' | 'unknown_unit' | 'none'

export const isHeld = (one: Held | Missing): one is Held => typeof one !== 'string'

/** The key of an account in the result of `lockAccounts`. */
export const nameOf = ({ organizationId, externalId, unit }: AccountKey) =>
  JSON.stringify([organizationId, externalId, unit])

interface Options {
  /** The accounts to make if they do not exist yet. */
  create?: readonly AccountKey[]
  lockTimeout?: LockTimeout
  /** Also reads the grants of these orders that are used up. */
  orderIds?: readonly string[]
}

/**
 * Locks accounts and reads them, in one round trip. They are locked in sorted order, so that two processes wait for each other
 * without a deadlock; a transaction that locks orders as well locks those first.
 */
export async function lockAccounts(
  query: Query,
  keys: readonly AccountKey[],
  { create = [], lockTimeout = null, orderIds = [] }: Options = {},
): Promise<Map<string, Held | Missing>> {
  const rows = rowsOf(keys)
  const made = rowsOf(create).map((row) => ({ ...row, account_id: makeUuid() }))
  // The statement that reads is a later one than that which locks: it sees what was committed while that waited.
  const [read] = await Promise.all(
    [
      ...(made.length > 0 ? [CREATE(made, lockTimeout)] : []),
      LOCK(rows, lockTimeout),
      READ(rows, orderIds.length > 0 ? [...orderIds] : null),
    ]
      .map((statement) => query(...statement))
      .reverse(),
  )
  return new Map(read!.map(rowFrom).map((row) => [nameOf(keyOf(row)), heldOf(row)]))
}

/** The accounts of a customer, as they are now, by unit. Nothing is locked, and nothing may be written. */
export async function readAccounts(query: Query, organizationId: string, externalId: string): Promise<Held[]> {
  const rows = await query(READ_OF_CUSTOMER, [null, organizationId, externalId])
  return rows.map(rowFrom).map(heldOf).filter(isHeld)
}

/** Each account once. */
export function rowsOf(keys: readonly AccountKey[]) {
  const distinct = new Map(keys.map((key) => [nameOf(key), key]))
  return Array.from(distinct.values(), rowOf)
}

export type KeyRow = Record<'organization_id' | 'external_id' | 'unit', string>

export const rowOf = ({ organizationId, externalId, unit }: AccountKey): KeyRow => ({
  organization_id: organizationId,
  external_id: externalId,
  unit,
})

/** The columns of `rowOf`. */
export const KEY = { organization_id: 'text', external_id: 'text', unit: 'text' }
export const IS_SAME = (row: string) =>
  `${row}.organization_id = a.organization_id and ${row}.external_id = a.external_id and ${row}.unit = a.unit`

const CREATE = onGivenRows(
  'create credit accounts',
  { ...KEY, account_id: 'uuid' },
  (rows) => `
    with ${limitWaits('$1')}
    insert into credit_accounts (organization_id, external_id, unit, account_id, created_at, updated_at)
    select a.organization_id, a.external_id, a.unit, a.account_id, now.at, now.at
    from limited, (select db_clock() as at) now, ${rows}
    join customers c on c.organization_id = a.organization_id and c.external_id = a.external_id
    join credit_units u on u.organization_id = a.organization_id and u.unit = a.unit
    order by a.organization_id, a.external_id, a.unit
    on conflict do nothing`,
  1,
)

const LOCK = onGivenRows(
  'lock credit accounts',
  KEY,
  (rows) => `
    with ${limitWaits('$1')}
    select from limited, ${rows} join credit_accounts c on ${IS_SAME('c')}
    order by c.organization_id, c.external_id, c.unit for no key update of c`,
  1,
)

const LOTS = `(select json_agg(json_build_array(l.grant_id, l.amount::text, l.remaining::text, l.expired::text, l.revoked::text,
    l.expires_at::text, l.order_id)) from credit_grants l
  where ${IS_SAME('l')} and l.remaining > 0)`
// In a second list, so that the first is read by the index of grants with a rest.
const LOTS_OF_ORDERS = `(select json_agg(json_build_array(l.grant_id, l.amount::text, l.remaining::text, l.expired::text,
    l.revoked::text, l.expires_at::text, l.order_id)) from credit_grants l
  where $1::uuid[] is not null and l.organization_id = a.organization_id and l.order_id = any($1) and ${IS_SAME('l')}
    and l.remaining = 0)`
const HOLDS = `(select json_agg(json_build_array(h.hold_id, h.amount::text, h.expires_at::text)) from credit_holds h
  where ${IS_SAME('h')} and h.status = 'open')`

const reading = (rows: string) => `
    select a.*, not ${isClosed('a.organization_id')} as is_known, u.decimals, u.low_below, c.project_id, c.profile_id,
      coalesce(p.anonymized_at is not null, false) as is_erased, k.account_id, k.granted, k.spent, k.expired, k.revoked,
      k.adjusted, t.top_up_id, t.below as top_up_below, t.due_at is not null as top_up_is_due, k.balance - k.held as available_before, k.due_at, db_clock() as now, ${LOTS} as lots,
      ${LOTS_OF_ORDERS} as lots_of_orders, ${HOLDS} as holds
    from ${rows}
    left join credit_units u on u.organization_id = a.organization_id and u.unit = a.unit
    left join customers c on c.organization_id = a.organization_id and c.external_id = a.external_id
    left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    left join credit_accounts k on ${IS_SAME('k')}
    left join credit_top_ups t on ${IS_SAME('t')} and t.status = 'on'`

const READ = onGivenRows('read credit accounts', KEY, reading, 1)

const READ_OF_CUSTOMER: Statement = {
  name: 'read credit accounts of customer',
  text: `${reading(`(select organization_id, external_id, unit from credit_accounts
      where organization_id = $2 and external_id = $3) as a`)} order by a.unit`,
}

type Row = Record<keyof typeof KEY | 'now' | 'top_up_below', string> &
  Record<'granted' | 'spent' | 'expired' | 'revoked' | 'adjusted' | 'available_before', string> & {
    is_known: boolean
    decimals: number | null
    low_below: string | null
    project_id: string | null
    profile_id: string | null
    is_erased: boolean
    account_id: string | null
    top_up_id: string | null
    top_up_is_due: boolean
    due_at: string | null
    lots: string | null
    lots_of_orders: string | null
    holds: string | null
  }

const rowFrom = rowReader<Row>({
  is_known: 'boolean',
  decimals: 'number',
  is_erased: 'boolean',
  top_up_is_due: 'boolean',
})

export const keyOf = ({ organization_id, external_id, unit }: KeyRow): AccountKey => ({
  organizationId: organization_id,
  externalId: external_id,
  unit,
})

function heldOf(row: Row): Held | Missing {
  if (!row.is_known) return 'moving'
  if (row.project_id === null) return 'unknown_customer'
  if (row.decimals === null) return 'unknown_unit'
  if (row.account_id === null) return 'none'
  const { decimals, granted, spent, expired, revoked, adjusted } = row
  const sums = {
    granted: creditsFromDatabase(granted),
    spent: creditsFromDatabase(spent),
    expired: creditsFromDatabase(expired),
    revoked: creditsFromDatabase(revoked),
    adjusted: creditsFromDatabase(adjusted),
  }
  const lots = [...listOf(row.lots), ...listOf(row.lots_of_orders)].map(lotOf)
  const holds = listOf(row.holds).map(holdOf)
  return {
    ...keyOf(row),
    accountId: row.account_id,
    projectId: row.project_id,
    profileId: row.profile_id,
    isErased: row.is_erased,
    decimals,
    lowBelow: row.low_below === null ? null : creditsFromDatabase(row.low_below),
    topUp: topUpOf(row),
    availableBefore: creditsFromDatabase(row.available_before),
    dueBefore: row.due_at === null ? null : instantFromPg(row.due_at),
    account: new Account({ sums, lots, holds, now: instantFromPg(row.now), decimals }),
  }
}

const topUpOf = ({ top_up_id, top_up_below, top_up_is_due }: Row): TopUp | null =>
  top_up_id === null ? null : { topUpId: top_up_id, below: creditsFromDatabase(top_up_below), isDue: top_up_is_due }

type Column = string | null

const listOf = (json: string | null): Column[][] => (json === null ? [] : JSON.parse(json))

function lotOf([grantId, amount, remaining, expired, revoked, expiresAt, orderId]: Column[]): Lot {
  return {
    grantId: grantId!,
    amount: creditsFromDatabase(amount!),
    remaining: creditsFromDatabase(remaining!),
    expired: creditsFromDatabase(expired!),
    revoked: creditsFromDatabase(revoked!),
    expiresAt: expiresAt == null ? null : instantFromPg(expiresAt),
    orderId: orderId ?? null,
    change: 'none',
  }
}

function holdOf([holdId, amount, expiresAt]: Column[]): Hold {
  return {
    holdId: holdId!,
    amount: creditsFromDatabase(amount!),
    captured: null,
    status: 'open',
    expiresAt: instantFromPg(expiresAt!),
    change: 'none',
  }
}
