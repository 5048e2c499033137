// Blocks erasure of customers' profiles while metadata of these customers is written.
import type { Query, Statement } from '../lib/pg/types.ts'

/**
 * Blocks erasure of these customers' profiles until commit, so that metadata written now is not missed: call it first,
 * and read in a later statement whether the profile is erased. Both locks are the weakest that block an erasure, so that
 * imports which change customers or profiles go on; an import that links a customer to another profile meanwhile does
 * not matter, for an erasure of that profile waits for this lock of the customer too, and then wipes again. Rows are
 * locked in one order, so that transactions that lock several do not deadlock.
 */
export async function lockOutErasure(query: Query, organizationId: string, externalIds: string[]): Promise<void> {
  await query(LOCK_OUT_ERASURE, [organizationId, externalIds])
}

const LOCK_OUT_ERASURE: Statement = {
  name: 'lock out erasure',
  text: `
    with c as materialized (
      select project_id, profile_id from customers
      where organization_id = $1 and external_id = any($2) order by external_id for key share)
    select 1 from c join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    order by p.project_id, p.id for key share of p`,
}
