// Several lines of one import about the same record: one of them is written, as if each had been imported alone.
import type { Kind, Scope } from '../../core/records/record.ts'
import { contentOf, isDated, isSkipped, isUnchanged, sameKey } from './conditions.ts'
import { completeFromEarlier, isGiven } from './merged-lines.ts'
import { requiredColumns } from './row.ts'
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
  return `
    with given as (${repeatedLines(
      kind,
      scope,
      `s.ctid as at, ${key}, s.source, s.line, ${contentText(kind, scope)} as content,
        exists (select from ${kind.table} t where ${sameKey(kind, scope)} and ${isUnchanged(kind, scope)}) as stored`,
    )}), lines as (
      select at, place, skipped, stored
          or content is not distinct from lead(content) over (partition by ${key}, skipped order by source, line) as unchanged
      from given
    ), gone as (
      delete from ${staged(kind)} s using lines where s.ctid = lines.at and lines.place > 1
      returning s.source, lines.skipped, s.erased, lines.unchanged)
    select counted, source, count(*) as n from (
      select source, case when skipped then 'skipped' when erased then 'erased' when unchanged then 'unchanged' end as counted from gone
    ) each where counted is not null group by counted, source`
}

/** SQL that completes the line that will be written, if lines have only the fields that change. Call it first. */
export function completeRepeated(kind: Kind, scope: Scope): string {
  return completeFromEarlier(kind, repeatedLines(kind, scope, 's.ctid as at, s.*, moment.time as moment'))
}

/** SQL: the lines whose key comes more than once, with `skipped`, and `place`, which is 1 for the line to be written. */
function repeatedLines(kind: Kind, scope: Scope, columns: string): string {
  const key = kind.key.map((name) => `s.${name}`).join(', ')
  const time = isDated(kind) ? `coalesce(s.updated_at, ${LATER})` : LATER
  const before = `over (partition by ${key} order by s.source, s.line rows between unbounded preceding and 1 preceding)`
  const stored = (condition: string) =>
    `exists (select from ${kind.table} t where ${sameKey(kind, scope)} and (${condition}))`
  // An older line without which the new record could not be written.
  const creates = requiredColumns(kind).map(
    ({ name }) => `${isGiven(kind, name)} and not bool_or(${isGiven(kind, name)}) ${before}`,
  )
  return `
      select ${columns},
        coalesce(time < max(time) ${before} and (not (${creates.join(' or ')}) or ${stored('true')})
          or ${stored(isSkipped(kind))}, false) as skipped,
        row_number() over (partition by ${key} order by time desc, s.source desc, s.line desc) as place
      from ${staged(kind)} s cross join lateral (select ${time} as time) moment
      where (${key}) in (select ${kind.key.join(', ')} from ${staged(kind)} group by ${kind.key.join(', ')} having count(*) > 1)`
}

const LATER = `'infinity'::timestamptz`

/** SQL: everything that a line says, to be compared with the next line about the same record. */
function contentText(kind: Kind, { live }: Scope): string {
  const columns = contentOf(kind).map(({ name, json }) => `s.${name}${json ? '::text' : ''}`)
  return `row(${[...columns, ...(live || !isDated(kind) ? [] : ['s.updated_at'])].join(', ')})::text`
}
