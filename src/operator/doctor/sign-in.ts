// The doctor's check of OIDC_ROLES: each organization and project that it gives to a group exists.
import type { GroupAccess } from '../../core/tenants/group-access.ts'
import type { Db } from '../../lib/pg/db.ts'
import { type Finding, warning } from './finding.ts'

/** A finding for each tenant that is not in this database, so that the people of its group would look for it in vain. */
export async function checkSignIn(db: Db, groups: GroupAccess): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const [group, { reach }] of groups) {
    for (const [what, ids] of Object.entries({
      organization: reach?.organizations ?? [],
      project: reach?.projects ?? [],
    })) {
      const rows = await db.query(`select id from ${what}s where id = any($1)`, [ids])
      const known = new Set(rows.map(({ id }) => id))
      for (const id of ids.filter((one) => !known.has(one))) {
        const message = `OIDC_ROLES gives the group "${group}" the ${what} "${id}", which does not exist here: its people do not see it.`
        findings.push(warning('sign-in', message, 'Correct the id in OIDC_ROLES, unless it is on another shard.'))
      }
    }
  }
  return findings
}
