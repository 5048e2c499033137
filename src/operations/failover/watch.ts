// Detects failovers and the commits that they lost: writes a heartbeat about once a second, and remembers the newest one
// whose commit was confirmed.
import type { Logger } from 'pino'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { sqlState } from '../../lib/pg/errors.ts'
import { repeat } from '../../lib/repeat.ts'
import { announceLosses } from './announce.ts'

const EVERY_MS = 1000

/** The newest heartbeat whose commit was confirmed to this process. */
interface Known {
  generation: bigint
  number: bigint
  /** The same instant by the database's clock and by this process's monotonic clock. */
  at: string
  sinceMs: number
}

/** Starts to detect failovers; returns the function that stops it. */
export function watchFailovers({ db, clock, log }: { db: Db; clock: Clock; log: Logger }): () => Promise<void> {
  let known: Known | undefined

  async function beat(): Promise<void> {
    const sentMs = clock.monotonicMs()
    const [row] = await db.query(BEAT, [`${EVERY_MS} milliseconds`])
    if (!row) return void (await db.query(BEGIN))
    const generation = BigInt(row.generation!)
    const number = BigInt(row.number!)
    const isOther = known !== undefined && generation !== known.generation
    const isBehind = known !== undefined && !isOther && number < known.number
    if (isOther || isBehind || row.same_timeline !== 't') return recordFailover()
    known = { generation, number, at: row.at!, sinceMs: sentMs }
    if (row.unannounced === 't') await announceLosses(db)
  }

  /** Records the failover and what it lost. The next heartbeat starts from the row as it is then. */
  async function recordFailover(): Promise<void> {
    const elapsed = known ? `${clock.monotonicMs() - known.sinceMs} milliseconds` : null
    const { generation = null, number = null, at = null } = known ?? {}
    const [recorded] = await db.query(RECORD, [generation?.toString() ?? null, number?.toString() ?? null, at, elapsed])
    known = undefined
    if (!recorded) return
    const { loss, lost_from } = recorded
    if (loss === 'none') log.info('The database has failed over. No commit was lost.')
    else log.error({ loss, lost_from }, LOST)
  }

  return repeat({ clock, log }, { pauseMs: EVERY_MS, failure: 'Watching for failovers failed.' }, () =>
    beat().catch((error) => {
      if (!isStandby(error)) throw error
    }),
  )
}

const LOST =
  'The database has lost commits in a failover, or may have. Run "tundish doctor" and "tundish reconcile --since" with an hour before this instant.'

// "recovery is in progress": the server is a standby.
const isStandby = (error: unknown) => sqlState(error) === '55000'

const BEGIN = `
  insert into commit_beat (timeline, waits, at, safe_until) values (wal_timeline(), commits_wait(), db_clock(), safe_until())
  on conflict do nothing`

// A new heartbeat is due after a second, and also if the last one is in the future because the clock was set back. A process
// that loses the race for a heartbeat returns the older one, whose commit is confirmed as well.
const BEAT = {
  name: 'commit beat',
  text: `
    with here as materialized (select wal_timeline() as timeline), beaten as (
      update commit_beat b set number = b.number + 1, waits = commits_wait(), at = db_clock(), safe_until = safe_until()
      from here where b.timeline = here.timeline and b.at not between db_clock() - $1::interval and db_clock()
      returning b.number, b.at)
    select r.generation, coalesce(b.number, r.number) as number, coalesce(b.at, r.at) as at,
      r.timeline = here.timeline as same_timeline,
      exists (select 1 from failovers where loss <> 'none' and announced_at is null) as unannounced
    from commit_beat r cross join here left join beaten b on true`,
}

// A process that has just started knows no heartbeat. It takes the row's own, and so finds no loss.
const RECORD = {
  name: 'note failover',
  text: `
    select n.loss, n.lost_from
    from commit_beat b
    cross join lateral note_failover(coalesce($1::bigint, b.generation), coalesce($2::bigint, b.number),
      $3::timestamptz + $4::interval) n`,
}
