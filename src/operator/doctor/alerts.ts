// The doctor's check of alerts: destinations that cannot be reached, and rules that cannot be checked.
import type { Db } from '../../lib/pg/db.ts'
import { type Finding, ofTenant, warning } from './finding.ts'

/** Returns no finding if messages arrive and every rule can be checked. */
export async function checkAlerts(db: Db): Promise<Finding[]> {
  const failing = await db.query(`
    select project_id, id, last_error from alert_destinations where failing_since is not null order by project_id, id`)
  const broken = await db.query(`
    select project_id, id, problem from alert_rules where problem is not null order by project_id, id`)
  return [
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
