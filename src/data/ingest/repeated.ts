// Several lines of one import about the same record: one of them is written, as if each had been imported alone.
import type { Kind, Scope } from '../../core/records/record.ts'
import { contentOf, isDated, isSkipped, isUnchanged, sameKey } from './conditions.ts'
import { staged } from './staging.ts'

export function findRepeated(kind: Kind): string {
  return `select exists (select from ${staged(kind)} group by ${kind.key.join(', ')} having count(*) > 1) as repeated`
}

/**
 * Leaves one line for each key, the last of the newest, and counts the others: older than an earlier line or
 * than what is stored, or written and then overwritten. A line without a time is newer than any line with one.
 */
export function dropRepeated(kind: Kind, scope: Scope): string {
  const key = kind.key.join(', ')
  const time = isDated(kind) ? `coalesce(s.updated_at, ${LATER})` : LATER
  return `
    with given as (
      select s.ctid as at, ${key}, s.source, s.line, time, ${contentText(kind, scope)} as content,
        coalesce(time < max(time) over (partition by ${key} order by s.source, s.line rows between unbounded preceding and 1 preceding)
          or exists (select from ${kind.table} t where ${sameKey(kind, scope)} and (${isSkipped(kind)})), false) as skipped,
        exists (select from ${kind.table} t where ${sameKey(kind, scope)} and ${isUnchanged(kind, scope)}) as stored,
        row_number() over (partition by ${key} order by time desc, s.source desc, s.line desc) as place
      from ${staged(kind)} s cross join lateral (select ${time} as time) given
      where (${key}) in (select ${key} from ${staged(kind)} group by ${key} having count(*) > 1)
    ), lines as (
      select at, place, skipped, stored
          or content is not distinct from lead(content) over (partition by ${key}, skipped order by source, line) as unchanged
      from given
    ), gone as (
      delete from ${staged(kind)} s using lines where s.ctid = lines.at and lines.place > 1
      returning lines.skipped, s.erased, lines.unchanged)
    select counted, count(*) as n from (
      select case when skipped then 'skipped' when erased then 'erased' when unchanged then 'unchanged' end as counted from gone
    ) each where counted is not null group by counted`
}

const LATER = `'infinity'::timestamptz`

/** SQL: everything that a line says, to be compared with the next line about the same record. */
function contentText(kind: Kind, { live }: Scope): string {
  const columns = contentOf(kind).map(({ name, json }) => `s.${name}${json ? '::text' : ''}`)
  return `row(${[...columns, ...(live || !isDated(kind) ? [] : ['s.updated_at'])].join(', ')})::text`
}
