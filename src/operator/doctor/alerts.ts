// The doctor's check of alerts: destinations that cannot be reached or are missing, and rules that cannot be checked.
import { receives } from '../../core/events/alert-addresses.ts'
import type { Db } from '../../lib/pg/db.ts'
import { type Finding, ofTenant, warning } from './finding.ts'

/** Returns no finding if messages arrive and every rule can be checked. */
export async function checkAlerts(db: Db): Promise<Finding[]> {
  const failing = await db.query(`
    select project_id, id, last_error from alert_destinations where failing_since is not null order by project_id, id`)
  const broken = await db.query(`
    select project_id, id, problem from alert_rules where problem is not null order by project_id, id`)
  const lonely = await db.query(`
    select project_id, string_agg(what, ' and ' order by what) as what from (
      select distinct project_id, 'alerts' as what from alert_rules r
      where not exists (select from alert_destinations d where d.project_id = r.project_id and ${receives('alert')})
      union all
      select project_id, 'digests' from alert_settings s where digest_hour is not null
        and not exists (select from alert_destinations d where d.project_id = s.project_id and ${receives('digest')})) missing
    group by project_id order by project_id`)
  return [
    ...lonely.map(({ project_id, what }) => {
      const message = `The ${what} of project ${project_id} are sent to nobody: no destination receives them.`
      const fix = `Set one: tundish alert destination set NAME --project ${project_id}`
      return ofTenant({ project_id: project_id! }, warning('alerts', message, fix))
    }),
    ...failing.map(({ project_id, id, last_error }) => {
      const message = `Alerts of project ${project_id} do not reach the destination ${id}: ${last_error}`
      const fix = `Correct it (tundish alert destination set), then: tundish alert send --project ${project_id}`
      return ofTenant({ project_id: project_id! }, warning('alerts', message, fix))
    }),
    ...broken.map(({ project_id, id, problem }) => {
      const message = `The alert ${id} of project ${project_id} cannot be checked: ${problem}`
      return ofTenant({ project_id: project_id! }, warning('alerts', message, 'Set it again: tundish alert set'))
    }),
  ]
}
