// The horizon of lists over all projects of an organization.
import type { Db } from '../../lib/pg/db.ts'
import { instantFromPg } from '../../lib/time.ts'
import { readHorizon } from './horizon.ts'

/**
 * The earliest horizon of the organization's projects, before which the guarantee of `readHorizon` holds for all of them.
 */
export async function readOrganizationHorizon(db: Db, organizationId: string): Promise<string> {
  const rows = await db.read(PROJECTS, [organizationId])
  let earliest: string | undefined
  for (const row of rows) {
    const stored = row.text(1)
    const horizon = stored === null ? await readHorizon(db, row.text(0)!) : instantFromPg(stored)
    if (earliest === undefined || horizon < earliest) earliest = horizon
  }
  // Without a project nothing can change.
  return earliest ?? BEGINNING
}

const BEGINNING = '1970-01-01T00:00:00.000000Z'

// The horizon if it is recent enough, null if it has to be advanced.
const PROJECTS = {
  name: 'horizons of projects',
  text: `select p.id, case when c.horizon between db_clock() - interval '1 second' and db_clock() then c.horizon end
         from projects p join project_clocks c on c.project_id = p.id where p.organization_id = $1`,
}
