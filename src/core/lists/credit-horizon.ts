// The horizon of entries of credits, which are stamped by the clock of their organization, in the order of commits.
import type { Db } from '../../lib/pg/db.ts'
import { instantFromPg } from '../../lib/time.ts'

/**
 * An instant before which every entry of the project's organization is visible, and none will be stamped later. Undefined in an
 * organization without credits. It may lag by a second, so that reading seldom writes.
 */
export async function readCreditHorizon(db: Db, projectId: string): Promise<string | undefined> {
  const [clock] = await db.read(FRESH, [projectId])
  if (!clock) return undefined
  const fresh = clock.text(0)
  if (fresh !== null) return instantFromPg(fresh)
  const [raised] = await db.read(RAISE, [projectId])
  return instantFromPg(raised!.text(0)!)
}

// Transactions in progress stamp later entries than the last one that is visible.
const FRESH = {
  name: 'fresh credit horizon',
  text: `
    select case when c.last_entry_at >= db_clock() - interval '1 second' then c.last_entry_at end
    from projects p join credit_clocks c on c.organization_id = p.organization_id where p.id = $1`,
}

// Waits for the transaction that holds the clock: its entries are visible afterwards, and later ones have later stamps.
const RAISE = {
  name: 'raise credit clock',
  text: `
    update credit_clocks c set last_entry_at = greatest(c.last_entry_at, db_clock())
    from projects p where p.id = $1 and c.organization_id = p.organization_id returning c.last_entry_at`,
}
