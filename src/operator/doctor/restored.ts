// The doctor's checks after a restored backup or a failover: merchant accounts to list, movements that have no order here, and keys
// that are valid again.
import { openMarks, type RestoredMark, sentenceOf } from '../../core/tenants/restored.ts'
import type { Db } from '../../lib/pg/db.ts'
import { count } from '../../lib/text.ts'
import { instantFromPg } from '../../lib/time.ts'
import { listedFrom } from '../../payments/billing/movement/unlisted.ts'
import { IS_OPEN } from '../../payments/providers/lost-movements.ts'
import { type Finding, failed, warning } from './finding.ts'

/** Returns no finding if everything was listed and nothing is lost. */
export async function checkRestored(db: Db): Promise<Finding[]> {
  return [...(await checkUnlisted(db)), ...(await checkLost(db)), ...(await checkSettings(db))]
}

async function checkUnlisted(db: Db): Promise<Finding[]> {
  const rows = await db.query(UNLISTED)
  if (rows.length === 0) return []
  const from = instantFromPg(rows.map(({ since }) => since!).sort()[0]!)
  const names = rows.map(({ name, is_connected }) => (is_connected === 't' ? name : `${name} (not connected)`))
  const message = `The database was restored, or a failover lost commits, and ${count(rows.length, 'merchant account was', 'merchant accounts were')} not compared since: ${names.join(', ')}. New charges of these organizations get 503 (restore_not_reconciled).`
  const isAnyAway = rows.some(({ is_connected }) => is_connected === 'f')
  const connect = isAnyAway ? 'Connect those that are not connected, then run' : 'Run'
  return [failed('restore', message, `${connect}: tundish reconcile --since ${from}`)]
}

const UNLISTED = `
  select u.psp || ' ' || u.psp_merchant_id || ' of organization ' || u.organization_id as name,
    ${listedFrom('u.since')} as since, coalesce(m.credentials is not null, false) as is_connected
  from unlisted_accounts u left join merchant_accounts m using (organization_id, psp, psp_merchant_id)
  where u.psp <> 'simulator' order by u.organization_id, u.psp, u.psp_merchant_id`

async function checkLost(db: Db): Promise<Finding[]> {
  const rows = await db.query(LOST)
  if (rows.length === 0) return []
  const [{ lost }] = rows as [{ lost: string }]
  const of = rows.map(({ organization_id }) => organization_id).join(', ')
  const message = `${count(Number(lost), 'charge or refund', 'charges or refunds')} at payment providers have no order here (organizations: ${of}). A key that is charged again brings its order back.`
  const fix = 'List them: tundish reconcile lost. Adopt them, or accept that they were made elsewhere.'
  return [warning('restore', message, fix)]
}

// Declined charges moved no money.
const LOST = `
  select l.organization_id, sum(count(*)) over () as lost from lost_movements l
  where l.state <> 'failed' and ${IS_OPEN} group by 1 order by 1`

async function checkSettings(db: Db): Promise<Finding[]> {
  const marks = await openMarks(db.query)
  const fix =
    'Revoke or regenerate keys that must not be valid, check endpoints and settings, then run: tundish keys confirm'
  return marks.map((mark) => warning('restore', describeMark(mark), fix))
}

function describeMark({ made_at, compared, differences }: RestoredMark): string {
  if (!compared)
    return `A backup of ${made_at} was restored without a replaced database to compare with: keys that were revoked since are valid again.`
  const shown = differences.slice(0, MOST_SHOWN).map(sentenceOf)
  const others = differences.length - shown.length
  const rest = others > 0 ? [`${count(others, 'other')}: see the entry backup.restored of the audit log.`] : []
  return [`A backup of ${made_at} was restored.`, ...shown, ...rest].join(' ')
}

// More would hide the other findings.
const MOST_SHOWN = 10
