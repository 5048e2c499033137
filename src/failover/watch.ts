// Notices a failover, and commits that it lost: writes a beat about once a second and remembers what was confirmed.
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Db } from '../lib/pg/db.ts'
import { isUnavailable, sqlState } from '../lib/pg/errors.ts'
import { announceLosses } from './announce.ts'

const EVERY_MS = 1000

/** The newest beat whose commit was confirmed to this process. */
interface Known {
  generation: bigint
  number: bigint
  /** What the database's clock showed, and the monotonic clock then. */
  at: string
  sinceMs: number
}

/** Starts the watch; returns what stops it. */
export function watchFailovers({ db, clock, log }: { db: Db; clock: Clock; log: Logger }): () => Promise<void> {
  const stopping = new AbortController()
  let known: Known | undefined

  async function look(): Promise<void> {
    const askedMs = clock.monotonicMs()
    const [row] = await db.query(BEAT, [`${EVERY_MS} milliseconds`])
    if (!row) return void (await db.query(BEGIN))
    const [generation, number] = [BigInt(row.generation!), BigInt(row.number!)]
    const isOther = known !== undefined && generation !== known.generation
    const isBehind = known !== undefined && !isOther && number < known.number
    if (isOther || isBehind || row.same_timeline !== 't') return note()
    known = { generation, number, at: row.at!, sinceMs: askedMs }
    if (row.unannounced === 't') await announceLosses(db)
  }

  /** What is not known is left to the next look, which remembers the row as it then is. */
  async function note(): Promise<void> {
    const elapsed = known ? `${clock.monotonicMs() - known.sinceMs} milliseconds` : null
    const { generation = null, number = null, at = null } = known ?? {}
    const [noted] = await db.query(NOTE, [generation?.toString() ?? null, number?.toString() ?? null, at, elapsed])
    known = undefined
    if (!noted) return
    const { loss, lost_from } = noted
    if (loss === 'none') log.info('The database has failed over. No commit was lost.')
    else log.error({ loss, lost_from }, LOST)
  }

  const work = async () => {
    while (!stopping.signal.aborted) {
      await look().catch((error) => {
        if (!isUnavailable(error) && !isStandby(error)) log.error({ err: error }, 'Watching for failovers failed.')
      })
      await clock.sleep(EVERY_MS, stopping.signal)
    }
  }
  const working = work()
  return async () => {
    stopping.abort()
    await working
  }
}

const LOST =
  'The database has lost commits in a failover, or may have. Run "tundish doctor" and "tundish reconcile --since" with this instant.'

// "recovery is in progress": the server is a standby.
const isStandby = (error: unknown) => sqlState(error) === '55000'

const BEGIN = `
  insert into commit_beat (timeline, waits, at, safe_until) values (wal_timeline(), commits_wait(), db_clock(), safe_until())
  on conflict do nothing`

// A clock set back must not silence it. A process that loses the race for a beat returns an older one, which is true as well.
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

// A process that knows nothing yet has missed nothing: it is as far as the row.
const NOTE = {
  name: 'note failover',
  text: `
    select n.loss, n.lost_from
    from commit_beat b
    cross join lateral note_failover(coalesce($1::bigint, b.generation), coalesce($2::bigint, b.number),
      $3::timestamptz + $4::interval) n`,
}
