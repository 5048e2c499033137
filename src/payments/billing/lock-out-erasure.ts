// Blocks the erasure of customers' profiles while metadata about these customers is written.
import type { LockTimeout } from '../../lib/batching.ts'
import { limitWaits } from '../../lib/pg/lock-timeout.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'

/**
 * Blocks erasure of these customers' profiles until commit, so that metadata written now is not missed: call it first,
 * and read in a later statement whether the profile is erased. Both locks are the weakest that block an erasure, so that
 * imports which change customers or profiles go on; an import that links a customer to another profile at the same time does
 * not matter, for an erasure of that profile waits for this lock of the customer too, and then wipes again. Rows are
 * locked in one order, so that transactions that lock several do not deadlock.
 */
export async function lockOutErasure(
  query: Query,
  customers: { organizationId: string; externalId: string }[],
  lockTimeout: LockTimeout = null,
): Promise<void> {
  const organizationIds = customers.map(({ organizationId }) => organizationId)
  const externalIds = customers.map(({ externalId }) => externalId)
  await query(LOCK_OUT_ERASURE, [organizationIds, externalIds, lockTimeout])
}

const LOCK_OUT_ERASURE: Statement = {
  name: 'lock out erasure',
  text: `
    with ${limitWaits('$3')}, c as materialized (
      select c.project_id, c.profile_id
      from limited, unnest($1::text[], $2::text[]) as a (organization_id, external_id)
      join customers c on c.organization_id = a.organization_id and c.external_id = a.external_id
      order by c.organization_id, c.external_id for key share of c)
    select 1 from c join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    order by p.project_id, p.id for key share of p`,
}
