// The SQL statements of a walk: a page of its rows, and its total.
import type { Statement } from '../../lib/pg/types.ts'
import type { List } from './list.ts'
import type { Counter, Walk } from './walk.ts'

// The limits of prepared statements; for a limit between them, the next larger statement is stopped early.
const PREPARED_LIMITS = [20, 50, 100, 200, 250, 500]
// A page of this many items is a short read.
export const SHORT = 50

/**
 * Finds the rows before joining anything to them. In one step the planner, which estimates every window as a two hundredth
 * of the table, would join and sort all rows of a window that it considers smaller than a page.
 */
export function pageStatement(walk: Walk, limit: number, isContinued: boolean): Statement {
  const { list, bySync, params } = walk
  const { alias, shape } = list
  const at = bySync ? `${alias}.updated_at` : `${alias}.created_at`
  const [comparison, direction] = bySync ? ['>', 'asc'] : ['<', 'desc']
  const place = isContinued
    ? ` and (${at}, ${alias}.id) ${comparison} ($${params.length + 1}::timestamptz, $${params.length + 2})`
    : ''
  const order = `order by ${at} ${direction}, ${alias}.id ${direction}`
  const text = (maxRows: number) => `
    select ${at}, ${alias}.id, ${walk.counter && !isContinued ? counterSum(walk.counter, list) : 'null'}, ${shape.columns}
    from (select ${alias}.* from ${matching(walk)}${place} ${order} limit ${maxRows}) ${alias} ${list.joins} ${order}`
  return limited(nameOf(walk, isContinued ? 'next' : 'first'), limit, limit + 1, text)
}

/** The name of the walk's prepared statement; undefined if it is not prepared. */
function nameOf({ list, given, conditions, isPrepared }: Walk, purpose: string): string | undefined {
  return isPrepared ? `${list.name} ${Object.keys(given).join(' ')} ${purpose} ${conditions.length}` : undefined
}

/** The matching rows, as a `from` clause. Filters that leave few rows are applied first, the others to their result. */
function matching({ list: { table, alias }, conditions, selective }: Walk): string {
  const where = (which: string[]) => which.join(' and ')
  if (selective.length === 0 || conditions.length === selective.length + 1)
    return `${table} ${alias} where ${where(conditions)}`
  const [tenant, ...filters] = conditions as [string, ...string[]]
  const rest = filters.filter((condition) => !selective.includes(condition))
  // `offset 0` keeps the planner from merging the two.
  return `(select * from ${table} ${alias} where ${where([tenant, ...selective])} offset 0) ${alias} where ${where(rest)}`
}

/**
 * A statement for at most `maxRows` rows, with the next larger of a few limits in its text. As a parameter, the planner would
 * not know that only a few rows are wanted; with every limit in the text, planning would cost several times as much as
 * running. Without a name it is not prepared.
 */
export function limited(
  name: string | undefined,
  limit: number,
  maxRows: number,
  text: (maxRows: number) => string,
): Statement {
  const prepared = name === undefined ? undefined : PREPARED_LIMITS.find((one) => one >= limit)
  const large = limit > SHORT
  if (prepared === undefined) return { text: text(maxRows), large }
  const statement = { large, name: statementName(`${name} ${prepared}`), text: text(prepared + maxRows - limit) }
  return prepared === limit ? statement : { ...statement, maxRows }
}

const names = new Map<string, string>()

/** A short name for a long one, because PostgreSQL truncates names to 63 bytes. */
function statementName(long: string): string {
  const name = names.get(long) ?? `page ${names.size}`
  names.set(long, name)
  return name
}

/** The total as a sum of counters; the filter's value, if any, is the second parameter. */
function counterSum({ field, filtered }: Counter, { name, countedAs = name }: List): string {
  return `(select coalesce(sum(n), 0) from counts
    where project_id = $1 and list = '${countedAs}' and field = '${field}' and value = ${filtered ? '$2' : "''"})`
}

/** The total of the walk, from counters or from its rows. */
export function countStatement(walk: Walk): Statement {
  const { list, counter } = walk
  const text = counter ? `select ${counterSum(counter, list)}` : `select count(*) from ${matching(walk)}`
  const long = nameOf(walk, 'count')
  return { name: long && statementName(long), text }
}
