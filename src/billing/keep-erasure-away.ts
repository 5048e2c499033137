// Keeps erasures away from whoever writes what callers say of customers.
import type { Query, Statement } from '../lib/db.ts'

/**
 * Whoever writes what may be personal data of a profile (metadata in an order, in an event) locks it first and looks in a
 * later statement whether it is erased; an erasure waits for the commit, and then wipes what was written. The lock is the
 * weakest that keeps an erasure out: an import that is changing the profile does not block it. All who lock several do so
 * in one order.
 */
export async function keepErasureAway(query: Query, organizationId: string, externalIds: string[]): Promise<void> {
  await query(KEEP_ERASURE_AWAY, [organizationId, externalIds])
}

const KEEP_ERASURE_AWAY: Statement = {
  name: 'keep erasure away',
  text: `
    select 1 from unnest($2::text[]) as a (external_id)
    join customers c on c.organization_id = $1 and c.external_id = a.external_id
    join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    order by p.project_id, p.id for key share of p`,
}
