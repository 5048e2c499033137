// Keeps erasures away from whoever writes what callers say of customers.
import type { Query, Statement } from '../lib/pg/types.ts'

/**
 * Whoever writes what may be personal data of a profile (metadata in an order, in an event) locks it first and looks in a
 * later statement whether it is erased; an erasure waits for the commit, and then wipes what was written. The lock is the
 * weakest that keeps an erasure out: an import that is changing the profile does not block it. All who lock several do so
 * in one order. An import that links a customer to an erased profile waits for the customer's, and then wipes again.
 */
export async function keepErasureAway(query: Query, organizationId: string, externalIds: string[]): Promise<void> {
  await query(KEEP_ERASURE_AWAY, [organizationId, externalIds])
}

const KEEP_ERASURE_AWAY: Statement = {
  name: 'keep erasure away',
  text: `
    with c as materialized (
      select project_id, profile_id from customers
      where organization_id = $1 and external_id = any($2) order by external_id for key share)
    select 1 from c join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    order by p.project_id, p.id for key share of p`,
}
