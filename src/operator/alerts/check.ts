// Checks the projects that are due: decides their rules, and makes their digests and the messages about figures that are behind.
import { LEAVING_PROJECTS } from '../../core/tenants/leaving.ts'
import type { Db } from '../../lib/pg/db.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import { type Content, staleContent } from './content.ts'
import { writeDigest } from './digest.ts'
import { addMessages } from './queue.ts'
import { decideRules } from './rules.ts'
import { isToDo, readState, type Shared, type State } from './state.ts'

// The hour from which on it is said that the figures of the day before are not complete.
const STALE_HOUR = 6
const BATCH = 20
const KEPT = '90 days'

/** Checks all projects that are due. One that fails does not stop the others. */
export async function checkDue(app: Shared, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const due = await app.db.query<{ project_id: string }>(CLAIM, [BATCH])
    for (const { project_id } of due) {
      if (signal?.aborted) return
      await check(app, project_id).catch((error) => {
        if (isUnavailable(error)) throw error
        app.log.error({ err: error, project_id }, 'The alerts of a project could not be checked.')
      })
    }
    if (due.length < BATCH) return
  }
}

// A time that is far ahead was set before the clock was set back. A project that is leaving is checked on the other shard.
const CLAIM = `
  update alert_settings s set next_check_at = db_clock() + interval '1 minute'
  from (select project_id from alert_settings
        where (next_check_at <= db_clock() or next_check_at > db_clock() + interval '10 minutes')
          and project_id <> all (${LEAVING_PROJECTS})
        order by next_check_at limit $1 for no key update skip locked) due
  where s.project_id = due.project_id returning s.project_id`

async function check(app: Shared, projectId: string): Promise<void> {
  const state = await readState(app.db, projectId)
  if (!state) return
  await decideRules(app, state)
  if (!state.isComplete && state.asOf !== undefined && state.hour >= STALE_HOUR)
    await addStale(app.db, state, staleContent(state))
  if (state.digestHour !== null && state.hour >= state.digestHour) await writeDigest(app, state)
  await app.db.query(
    `delete from alert_messages where project_id = $1 and created_at < db_clock() - $2::interval and status <> 'pending'`,
    [projectId, KEPT],
  )
}

/** Adds the message about figures that are not complete, once a day, if the project has rules about whole days. */
async function addStale(db: Db, { projectId, yesterday }: State, content: Content): Promise<void> {
  await db.query(ADD_STALE, [projectId, yesterday, JSON.stringify(content)])
}

const ADD_STALE = `
  with claimed as (
    update alert_settings set stale_day = $2::date where project_id = $1 and ${isToDo('stale_day', '$2::date')}
      and exists (select from alert_rules r where r.project_id = $1 and not r.today) returning 1
  )
  ${addMessages('stale', 'alert', `''`, '$2::date', '$3::jsonb')}`
