// Compares the figures of some days with the records they were computed from.
import { countDifferences } from '../../data/figures/compute.ts'
import { families } from '../../data/figures/families.ts'
import { HAS_NEWS } from '../../data/figures/reports.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query } from '../../lib/pg/types.ts'
import { count } from '../../lib/text.ts'
import { type Finding, failed, ofTenant, ok, warning } from './finding.ts'

// Computing one day of a large project takes less than a second.
const DAYS_A_PROJECT = 3
const PROJECTS = 20
const BEHIND = '10 minutes'

/** Compares random days of random projects, and finds marked days that have waited too long. */
export async function checkFigures(db: Db): Promise<Finding[]> {
  const findings: Finding[] = []
  let compared = 0
  const projects = await db.query('select project_id as id from figure_progress order by random() limit $1', [PROJECTS])
  for (const { id } of projects) {
    const { days, wrong } = await db.tx((query) => compare(query, id!))
    compared += days
    if (wrong.length === 0) continue
    const message = `The figures of project ${id} differ from its records on ${wrong[0]}.`
    const finding = failed('figures', message, `Run: tundish figures rebuild --project ${id}`)
    findings.push(ofTenant({ project_id: id! }, finding))
  }
  for (const { project_id, day, code, days } of await db.query(FAILED, [PROJECTS])) {
    const others = days === '1' ? '' : `, and of ${count(Number(days) - 1, 'more day')}`
    const message = `The figures of project ${project_id} on ${day}${others} cannot be computed (SQLSTATE ${code}).`
    const fix = `See the server's log, correct the records of the day, and run: tundish figures rebuild --project ${project_id}`
    findings.push(ofTenant({ project_id: project_id! }, failed('figures', message, fix)))
  }
  for (const { project_id } of (await db.query(LATE, [BEHIND])).slice(0, PROJECTS)) {
    const message = `The figures of project ${project_id} are more than ${BEHIND} behind.`
    const fix = 'Check that a server or "tundish worker" runs, and see its log.'
    findings.push(ofTenant({ project_id: project_id! }, warning('figures', message, fix)))
  }
  return findings.length > 0
    ? findings
    : [ok('figures', `The figures of ${count(compared, 'day')} agree with the records.`)]
}

/** Compares within one snapshot; leaves out days that are marked, or whose changes may not be processed yet. */
async function compare(query: Query, projectId: string): Promise<{ days: number; wrong: string[] }> {
  await query('set transaction isolation level repeatable read, read only')
  await query('set local statement_timeout = 0')
  const days = await query(SAMPLE, [projectId, DAYS_A_PROJECT])
  const wrong: string[] = []
  for (const { from, to } of days) {
    for (const family of families) {
      const differences = await countDifferences(query, projectId, family, { from: from!, to: to! })
      if (differences > 0) wrong.push(from!)
    }
  }
  return { days: days.length, wrong }
}

// The days of charges that have not marked theirs are left out with all later ones: stamps of charges only grow.
const SAMPLE = `
  select day as "from", day + 1 as "to" from (
    select distinct day from figures_sales where project_id = $1 and split = ''
    union select distinct day from figures_visits where project_id = $1 and split = '') known
  where not exists (select from figure_marks m where m.project_id = $1 and (m.day = known.day or m.family = 'all'))
    and not exists (select from figure_failures e where e.project_id = $1 and e.day = known.day)
    and not exists (
      select from projects p join organization_clocks c using (organization_id)
      left join figure_reports f using (organization_id)
      where p.id = $1 and ${HAS_NEWS}
        and known.day >= coalesce(((f.reported - interval '15 minutes') at time zone p.time_zone)::date, '-infinity'))
  order by random() limit $2`

const FAILED = `
  select project_id, max(day)::text as day, min(code) as code, count(distinct day) as days from figure_failures
  group by project_id order by project_id limit $1`

const LATE = `
  select f.project_id from figure_progress f
  where f.updated_at < db_clock() - $1::interval
    and exists (select from figure_marks m where m.project_id = f.project_id)`
