// Lines that have only the fields that change: the other fields are taken from the stored record and from earlier lines.
import type { Kind, Scope } from '../../core/records/record.ts'
import { contentOf, sameKey, UPDATED_AT } from './conditions.ts'
import { columnsOf } from './row.ts'
import { staged } from './staging.ts'

/**
 * SQL that completes the staged lines about stored records. What an erasure has wiped in a line stays wiped: the stored row may
 * belong to another, living profile.
 */
export function completeFromStored(kind: Kind, scope: Scope): string {
  const wiped = new Set([...kind.erased.map(({ column }) => column), 'anonymized_at'])
  const columns = columnsOf(kind).filter(({ name }) => name !== UPDATED_AT && !kind.key.includes(name))
  const values = columns.map(({ name }) => {
    const stays = wiped.has(name) ? `(s.erased is true or ${isGiven(kind, name)})` : isGiven(kind, name)
    return `${name} = case when ${stays} then s.${name} else t.${name} end`
  })
  return `
    update ${staged(kind)} s set ${values.join(', ')} from ${kind.table} t
    where ${sameKey(kind, scope)} and s.given is not null`
}

/** SQL that gives the last of several lines about one record the fields that only earlier ones have. */
export function completeFromEarlier(kind: Kind, lines: string): string {
  const columns = contentOf(kind).map(({ name }) => name)
  const key = kind.key.join(', ')
  const has = (name: string) => `given is null or ${isGiven(kind, name, '')}`
  const found = columns.map(
    (name) =>
      `count(*) filter (where ${has(name)}) > 0 as has_${name},
       (array_agg(${name} order by moment desc, source desc, line desc) filter (where ${has(name)}))[1] as ${name}`,
  )
  return `
    with lines as (${lines}), found as (
      select ${key}, ${found.join(', ')} from lines where not skipped group by ${key})
    update ${staged(kind)} s
    set ${columns.map((name) => `${name} = case when f.has_${name} then f.${name} else s.${name} end`).join(', ')}
    from found f, lines l
    where s.ctid = l.at and l.place = 1 and s.given is not null and ${kind.key.map((name) => `f.${name} = l.${name}`).join(' and ')}`
}

/** SQL: whether the line has the column. */
export function isGiven(kind: Kind, name: string, row = 's.'): string {
  const place = columnsOf(kind).findIndex((column) => column.name === name)
  return `(${row}given is null or substr(${row}given, ${place + 1}, 1) = '1')`
}
