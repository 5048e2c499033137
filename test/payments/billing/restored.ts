// What a restored backup leaves: merchant accounts to list, and orders that are gone.
import type { Db } from '../../../src/lib/pg/db.ts'

/** What `tundish restore` does: the organization's accounts have to be listed since the time of the backup, now if it is left out. */
export async function markUnlisted(db: Db, organizationId: string, since = 'db_clock()'): Promise<void> {
  await db.query(
    `insert into unlisted_accounts (organization_id, psp, psp_merchant_id, since, cause)
     select organization_id, psp, psp_merchant_id, ${since}, 'restore' from merchant_accounts
     where organization_id = $1 and psp <> 'simulator' and is_sandbox is not null
     on conflict (organization_id, psp, psp_merchant_id) do update set since = excluded.since`,
    [organizationId],
  )
}

/** The organization's accounts that have to be listed. */
export async function unlisted(db: Db, organizationId: string): Promise<string[]> {
  const rows = await db.query('select psp_merchant_id from unlisted_accounts where organization_id = $1 order by 1', [
    organizationId,
  ])
  return rows.map(({ psp_merchant_id }) => psp_merchant_id!)
}

/** Deletes orders with everything that was written because of them, as for a backup that is older. */
export async function forgetOrders(db: Db, orderIds: string[]): Promise<void> {
  for (const table of ['consumables', 'refunds', 'order_log', 'disputes', 'report_transactions', 'orders'])
    await db.query(`delete from ${table} where order_id = any($1)`, [orderIds])
}
