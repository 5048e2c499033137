// Ends cancelled subscriptions when their last period is over: a cancelled one is paid until then, and expired afterwards.
import type { App } from '../../app.ts'
import { emitSubscriptionEvents } from '../../core/events/changes.ts'
import { repeat } from '../../lib/repeat.ts'

const PAUSE_MS = 2_000
// The number of subscriptions that one transaction ends, each with its event.
const BATCH = 200

/**
 * Starts to end subscriptions whose period is over, in any number of processes. Returns the function that stops it. An import may
 * bring many such subscriptions at once; they are ended a batch of each project at a time.
 */
export function expireSubscriptions({ db, clock, log }: Pick<App, 'db' | 'clock' | 'log'>): () => Promise<void> {
  const options = { pauseMs: PAUSE_MS, failure: 'Ending cancelled subscriptions failed.' }
  return repeat({ clock, log }, options, async (signal) => {
    const failures: unknown[] = []
    let isMore = false
    for (const { project_id } of await db.query(DUE_PROJECTS)) {
      if (signal.aborted) return PAUSE_MS
      // The other projects must not wait for one that is being moved to another shard.
      const count = await expireSome(db, project_id!).catch((error) => {
        failures.push(error)
        return 0
      })
      isMore ||= count === BATCH
    }
    if (failures.length > 0) throw failures[0]
    return isMore ? 0 : PAUSE_MS
  })
}

// One index lookup for each project that has cancelled subscriptions.
const DUE_PROJECTS = {
  name: 'projects with subscriptions to expire',
  text: `
    with recursive first as (
      (select project_id, period_ends_at from subscriptions where status = 'cancelled'
       order by project_id, period_ends_at limit 1)
      union all
      select n.project_id, n.period_ends_at from first f cross join lateral (
        select s.project_id, s.period_ends_at from subscriptions s
        where s.status = 'cancelled' and s.project_id > f.project_id
        order by s.project_id, s.period_ends_at limit 1) n)
    select project_id from first where period_ends_at <= db_clock()`,
}

/** Ends some subscriptions of a project with their events; returns how many. Another process may end others at the same time. */
function expireSome(db: App['db'], projectId: string): Promise<number> {
  return db.tx(async (query) => {
    const [begun] = await query<{ stamp: string }>('select begin_write($1) as stamp', [projectId])
    const rows = await query(EXPIRE, [projectId, begun!.stamp, BATCH])
    if (rows.length === 0) return 0
    await query(COUNT, [projectId, rows.length])
    const before = { status: 'cancelled', renewed_at: null, period_starts_at: null }
    await emitSubscriptionEvents(
      query,
      projectId,
      rows.map(({ id }) => ({ id: id!, before })),
    )
    return rows.length
  })
}

const EXPIRE = {
  name: 'expire subscriptions',
  text: `
    update subscriptions t set status = 'expired', updated_at = greatest($2, t.updated_at + interval '1 microsecond')
    where t.project_id = $1 and t.id in (
      select id from subscriptions where project_id = $1 and status = 'cancelled' and period_ends_at <= db_clock()
      order by period_ends_at limit $3 for no key update skip locked)
    returning t.id`,
}

const COUNT = {
  name: 'count expired subscriptions',
  text: `
    insert into counts (project_id, list, field, value, n)
    values ($1, 'subscriptions', 'status', 'cancelled', -$2::bigint), ($1, 'subscriptions', 'status', 'expired', $2)`,
}
