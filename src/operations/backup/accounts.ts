// Marks the merchant accounts that may have charged since the backup: no new key is charged before they were listed.

import { Refusal } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Header } from './format.ts'

/** A merchant account that the operator names. */
export interface NamedAccount {
  organizationId: string
  psp: string
  merchantId: string
}

/** Saves the accounts of the database that is being replaced; call it before the database is emptied. */
export async function keepAccounts(query: Query): Promise<void> {
  await query(`create temporary table former_accounts on commit drop as ${CONNECTED}`)
}

/**
 * Throws unless the backup has no account with a real provider: one that was connected after the backup was made is not in it, so
 * the operator has to name it. Call it before anything that takes long.
 */
export async function refuseIfConnected(query: Query): Promise<void> {
  const [connected] = await query(`${CONNECTED} limit 1`)
  if (connected)
    throw new Refusal(
      'Name the merchant accounts that were connected after the backup was made, because charges since then may be there: --accounts ORGANIZATION/PROVIDER/ACCOUNT, several with commas, or --accounts none. Nothing was changed.',
    )
}

/**
 * Marks every account that was ever connected, by the backup, by the replaced database or by the operator. A mark in the backup is
 * older, of an earlier restore, and is kept. Returns the names of all.
 */
export async function markUnlisted(
  query: Query,
  { made_at }: Pick<Header, 'made_at'>,
  named: readonly NamedAccount[] = [],
): Promise<string[]> {
  const names = JSON.stringify(named.map(({ organizationId, psp, merchantId }) => [organizationId, psp, merchantId]))
  const [unknown] = await query(UNKNOWN_ORGANIZATION, [names])
  if (unknown)
    throw new Refusal(`The backup has no organization "${unknown.id}", which --accounts names. Nothing was changed.`)
  await query(MARK, [made_at, names])
  const marked = await query(MARKED)
  return marked.map(({ organization_id, psp, psp_merchant_id }) => `${organization_id}/${psp}/${psp_merchant_id}`)
}

// The simulator moves play money, and never forgets a key. Others were connected if their mode is known; before there were modes, none
// was connected, and the column is missing.
const CONNECTED = `
  select organization_id, psp, psp_merchant_id from merchant_accounts m
  where psp <> 'simulator' and to_jsonb(m) ->> 'is_sandbox' is not null`

const UNKNOWN_ORGANIZATION = `
  select n ->> 0 as id from json_array_elements($1) n where not exists (select from organizations g where g.id = n ->> 0) limit 1`

const MARKED = `
  select organization_id, psp, psp_merchant_id from unlisted_accounts where psp <> 'simulator' order by 1, 2, 3`

// The simulator forgets no key of a charge, so its mark blocks none. But refunds with other keys may be lost: until it is listed, they
// are looked up before one is made.
const MARK = `
  insert into unlisted_accounts as u (organization_id, psp, psp_merchant_id, since, cause)
  select organization_id, psp, psp_merchant_id, $1, 'restore' from (
    ${CONNECTED}
    union select f.organization_id, f.psp, f.psp_merchant_id from former_accounts f
      join organizations g on g.id = f.organization_id
    union select n ->> 0, n ->> 1, n ->> 2 from json_array_elements($2) n
    union select g.id, 'simulator', '*' from organizations g
      where exists (select from orders o where o.organization_id = g.id and o.psp = 'simulator')) accounts
  on conflict (organization_id, psp, psp_merchant_id) do update
    set since = least(u.since, excluded.since), cause = 'restore', lease_until = null, marked_at = db_clock()`
