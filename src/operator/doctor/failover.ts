// The doctor's check of failovers: whether one of them lost commits.
import type { Db } from '../../lib/pg/db.ts'
import { count } from '../../lib/text.ts'
import { instantFromPg } from '../../lib/time.ts'
import { listedFrom } from '../../payments/billing/movement/unlisted.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

const SHOWN_FOR = '30 days'

/** Returns no finding if no failover was ever detected. */
export async function checkFailovers(db: Db): Promise<Finding[]> {
  const rows = await db.query(
    `select loss, lost_from, ${listedFrom('lost_from')} as since from failovers where noticed_at > db_clock() - $1::interval order by generation`,
    [SHOWN_FOR],
  )
  if (rows.length === 0) return []
  const losses = rows.filter(({ loss }) => loss !== 'none')
  if (losses.length === 0)
    return [ok('failover', `${count(rows.length, 'failover')} in ${SHOWN_FOR}, none lost a commit.`)]
  return losses.map(({ loss, lost_from, since }) => {
    const lostFrom = instantFromPg(lost_from!)
    const fix = `Run: tundish reconcile --since ${instantFromPg(since!)}. Readers of changes receive X-Void-From.`
    if (loss === 'certain') return failed('failover', `A failover lost commits that were made after ${lostFrom}.`, fix)
    const message = `A failover may have lost commits that were made after ${lostFrom}: they did not wait for a standby.`
    return warning('failover', message, fix)
  })
}
