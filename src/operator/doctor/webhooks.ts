// The doctor's check of the keys that sign webhooks: without one nothing is sent, and later events are given up.
import type { Db } from '../../lib/pg/db.ts'
import { type Finding, failed, ofTenant, warning } from './finding.ts'

// Time to tell the receivers of another secret.
const SOON = '7 days'

/** Returns no finding if each project that sends signed messages has a full key, and still has one in a week. */
export async function checkSigningKeys(db: Db): Promise<Finding[]> {
  const rows = await db.query(ENDING_KEYS, [SOON])
  return rows.map(({ project_id, ends_at }) => {
    const create = `tundish keys create --project ${project_id}, without --scope`
    const finding =
      ends_at === null
        ? failed(
            'webhooks',
            `Project ${project_id} has no full key, so its webhooks cannot be signed: none is sent, and each event is given up in the end.`,
            `Create one, and give its webhook_secret to the receivers: ${create}`,
          )
        : warning(
            'webhooks',
            `The last full key of project ${project_id} ends at ${ends_at}: from then on its webhooks cannot be signed, and none is sent.`,
            `Create another one before, and give its webhook_secret to the receivers: ${create}`,
          )
    return ofTenant({ project_id: project_id! }, finding)
  })
}

// The organization leads the index of keys.
const ENDING_KEYS = `
  select p.id as project_id, to_char(max(k.expires_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') as ends_at
  from projects p
  left join secret_keys k on k.organization_id = p.organization_id and k.project_id = p.id and k.scopes is null
    and (k.expires_at is null or k.expires_at > db_clock())
  where exists (select from webhook_endpoints e where e.project_id = p.id and e.enabled and e.removed_at is null)
    or exists (select from alert_destinations d where d.project_id = p.id and d.kind = 'webhook')
  group by p.id
  having count(k.id) = 0 or max(coalesce(k.expires_at, 'infinity')) < db_clock() + $1::interval
  order by 1`
