// The doctor's check of the archive of PostgreSQL's write-ahead log: whether the database can be restored to any point in time.
import type { Db } from '../../lib/pg/db.ts'
import { count } from '../../lib/text.ts'
import { instantFromPg } from '../../lib/time.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

// A healthy archive is one or two segments behind, or more during an import; but then segments follow each other.
const MOST_SEGMENTS_BEHIND = 10
const LONGEST_PAUSE = '30 seconds'

/** Returns no finding where the server keeps no archive. */
export async function checkArchive(db: Db): Promise<Finding[]> {
  const [row] = await db.query(STATE, [LONGEST_PAUSE])
  if (!row) return []
  if (row.is_told === 'f') {
    const message =
      'archive_mode is on, but neither archive_command nor archive_library is set: pg_wal keeps every segment and fills its disk.'
    const fix = 'Set archive_command and reload PostgreSQL, or set archive_mode = off and restart it.'
    return [failed('archive', message, fix)]
  }
  const since = row.archived_at ? `since ${instantFromPg(row.archived_at)}` : 'anything'
  if (row.is_failing === 't') {
    const message = `PostgreSQL has not archived ${since}: archive_command fails for ${row.failed_wal}, ${count(Number(row.failures), 'time')} so far. No later point in time can be restored, and pg_wal fills its disk.`
    return [failed('archive', message, FAILING)]
  }
  if (row.is_behind === 't') {
    const message = `PostgreSQL has not archived ${since}, and its archive is ${count(Number(row.behind), 'segment')} behind: archive_command does not end, or is too slow.`
    const fix = 'Look for its process on the machine of PostgreSQL, and whether the disk of the archive responds.'
    return [warning('archive', message, fix)]
  }
  if (!row.archived_at)
    return [ok('archive', 'PostgreSQL archives its log, and has not had to yet since its statistics began.')]
  const rest =
    row.is_timed === 't'
      ? ''
      : ' archive_timeout is 0: what was written since then is in the archive only when a segment is full.'
  return [ok('archive', `PostgreSQL has archived ${row.archived_wal} at ${instantFromPg(row.archived_at)}.${rest}`)]
}

const FAILING =
  "PostgreSQL's log has the reason. If a file of this name is in the archive already, it is of a copy that broke off, or of another server that archives into the same folder: compare it with the file in pg_wal, and move it away if they differ. See docs/backup.md."

// The number of a segment, from the name of its file: timeline, and two halves of the number.
const numberOf = (name: string) => `case when ${name} ~ '^[0-9A-F]{24}$' then
  ('x' || substr(${name}, 9, 8))::bit(32)::bigint * (4294967296 / s.bytes) + ('x' || substr(${name}, 17, 8))::bit(32)::bigint end`

const STATE = `
  with s as (select pg_size_bytes(current_setting('wal_segment_size')) as bytes,
    coalesce(current_setting('archive_command', true), '') as command, coalesce(current_setting('archive_library', true), '') as library
  ), known as (
    select s.*, a.*, ${numberOf('pg_walfile_name(pg_current_wal_lsn())')} - ${numberOf('a.last_archived_wal')} - 1 as behind
    from s cross join pg_stat_archiver a
    where current_setting('archive_mode') <> 'off' and not pg_is_in_recovery())
  select command not in ('', '(disabled)') or library <> '' as is_told,
    last_archived_wal as archived_wal, last_archived_time as archived_at, last_failed_wal as failed_wal, failed_count as failures,
    coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) as is_failing, behind,
    coalesce(behind > ${MOST_SEGMENTS_BEHIND} and last_archived_time < clock_timestamp() - $1::interval, false) as is_behind,
    current_setting('archive_timeout') <> '0' as is_timed
  from known`
