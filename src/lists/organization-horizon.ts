// The horizon of lists that cover all projects of an organization.
import type { Db } from '../lib/pg/db.ts'
import { instantFromPg } from '../lib/time.ts'
import { readHorizon } from './horizon.ts'

/** The least horizon of the organization's projects: what `readHorizon` promises holds for all of them before it. */
export async function readOrganizationHorizon(db: Db, organizationId: string): Promise<string> {
  const rows = await db.read(PROJECTS, [organizationId])
  let least: string | undefined
  for (const row of rows) {
    const stored = row.text(1)
    const horizon = stored === null ? await readHorizon(db, row.text(0)!) : instantFromPg(stored)
    if (least === undefined || horizon < least) least = horizon
  }
  // Without a project there is nothing that could change.
  return least ?? BEGINNING
}

const BEGINNING = '1970-01-01T00:00:00.000000Z'

// The horizon where it is new enough, null where it has to be advanced.
const PROJECTS = {
  name: 'horizons of projects',
  text: `select p.id, case when c.horizon between db_clock() - interval '1 second' and db_clock() then c.horizon end
         from projects p join project_clocks c on c.project_id = p.id where p.organization_id = $1`,
}
