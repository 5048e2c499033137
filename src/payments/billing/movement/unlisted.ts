// Merchant accounts that were not listed since a backup was restored, or since a failover lost commits: they may have charged keys
// that this database does not know.
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { AT_PROVIDER, type AtProvider, atParams, isAt } from '../ledger/orders.ts'
import type { InProgress } from './in-progress.ts'

/**
 * How long before the loss a list of an account must begin: the provider's clock may be behind by minutes, and a charge may have been under
 * way when the backup was made.
 */
export const LISTED_BEFORE_MS = 3_600_000

/** SQL: the latest instant from which on a list counts, by that of the loss. */
export const listedFrom = (lost: string) => `(${lost} - interval '${LISTED_BEFORE_MS} milliseconds')`

/** SQL: whether an organization has such an account, or the simulator, which may have refunds that are lost here. */
export const hasUnlisted = (organizationId: string) =>
  `((select true from unlisted_accounts u where u.organization_id = ${organizationId} limit 1) is not null)`

/** SQL: whether an organization has an account that may have charged keys. The simulator forgets none. */
export const mayHaveCharged = (organizationId: string) =>
  `((select true from unlisted_accounts u where u.organization_id = ${organizationId} and u.psp <> 'simulator' limit 1) is not null)`

/** SQL: their names, joined to a text. */
export const unlistedOf = (organizationId: string) =>
  `(select string_agg(u.psp || ' ' || u.psp_merchant_id, ', ' order by u.psp, u.psp_merchant_id)
    from unlisted_accounts u where u.organization_id = ${organizationId} and u.psp <> 'simulator')`

/** Whether the account of this movement is one. */
export async function isUnlisted(
  query: Query,
  { organization_id, psp, psp_merchant_id }: InProgress,
): Promise<boolean> {
  return (await query(IS_UNLISTED, [organization_id, psp, psp_merchant_id])).length > 0
}

const IS_UNLISTED: Statement = {
  name: 'is account unlisted',
  text: `select 1 from unlisted_accounts where organization_id = $1 and psp = $2 and psp_merchant_id = $3`,
}

/** Removes an account that was listed since an instant, unless that is too late: an hour before the backup is needed. */
export async function noteListed(query: Query, at: AtProvider, since: string): Promise<void> {
  await query(LISTED, [since, ...atParams(at)])
}

const LISTED: Statement = {
  name: 'note listed account',
  text: `delete from unlisted_accounts o where ${listedFrom('o.since')} >= $1 and ${isAt('$2', '$3', '$4::text')}`,
}

/**
 * Milliseconds until a list of the account has every call that was under way when its orders were lost, the database's time; 0 if it has
 * by now, or if the account need not be listed.
 *
 * @param lagMs how long after it was sent a call may be missing in the list
 */
export async function msUntilListable(query: Query, at: AtProvider, lagMs: number): Promise<number> {
  const [row] = await query(LISTABLE, [lagMs / 1000, ...atParams(at)])
  return Math.max(0, Math.ceil(Number(row?.ms ?? 0)))
}

// A second failover marks no account anew that is marked already. At most $1, also after the clock was set back.
const LISTABLE: Statement = {
  name: 'time until account can be listed',
  text: `
    select extract(epoch from least(make_interval(secs => $1),
      max(greatest(o.marked_at, f.noticed_at)) + make_interval(secs => $1) - db_clock())) * 1000 as ms
    from unlisted_accounts o, (select max(noticed_at) as noticed_at from failovers) f where ${AT_PROVIDER}
    having max(greatest(o.marked_at, f.noticed_at)) is not null`,
}

/** Has a worker take an account again after this time. */
export async function postponeList(query: Query, { organizationId, psp, merchantId }: Unlisted, ms: number) {
  await query(POSTPONE, [organizationId, psp, merchantId, ms / 1000])
}

const POSTPONE: Statement = {
  name: 'postpone list of account',
  text: `update unlisted_accounts set lease_until = db_clock() + make_interval(secs => $4)
         where organization_id = $1 and psp = $2 and psp_merchant_id = $3`,
}

/** An account that a worker has to list, and from when on. */
export interface Unlisted {
  organizationId: string
  psp: string
  merchantId: string
  since: string
}

/** Takes an account that a failover left unlisted, for as long as the lease; undefined if there is none. */
export async function takeUnlisted(query: Query, leaseMs: number): Promise<Unlisted | undefined> {
  const [row] = await query<Record<'organization_id' | 'psp' | 'psp_merchant_id' | 'since', string>>(TAKE, [
    leaseMs / 1000,
  ])
  if (!row) return undefined
  return { organizationId: row.organization_id, psp: row.psp, merchantId: row.psp_merchant_id, since: row.since }
}

// A lease further in the future than any lasts was set before the clock was set back.
const TAKE: Statement = {
  name: 'take unlisted account',
  text: `
    update unlisted_accounts u set lease_until = db_clock() + make_interval(secs => $1)
    from (select organization_id, psp, psp_merchant_id from unlisted_accounts
      where cause = 'failover' and (lease_until is null or lease_until <= db_clock()
        or lease_until > db_clock() + interval '1 hour')
      order by 1, 2, 3 limit 1 for update skip locked) t
    where (u.organization_id, u.psp, u.psp_merchant_id) = (t.organization_id, t.psp, t.psp_merchant_id)
    returning u.organization_id, u.psp, u.psp_merchant_id, ${listedFrom('u.since')} as since`,
}
