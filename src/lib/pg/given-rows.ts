// Statements on rows that come as parameters: one text for a single row, and one for several.
import type { Param, Statement } from './types.ts'

/** A row for such a statement, by column. */
export type GivenRow<Column extends string> = Record<Column, string | null>

/** The SQL types of the columns. */
type Types<Column extends string> = Record<Column, string>

/**
 * A statement on rows that come as parameters; returns a function from rows to the statement with its parameters. `text`
 * gets the SQL to select them from, as `a` with these columns. Their parameters follow the first `before` ones, which the
 * caller passes behind the rows.
 *
 * One row is in the text as its values, which PostgreSQL plans like constants: there is no set to scan, join or sort, so
 * that setting up the plan costs less. Several rows are arrays, planned once for any number.
 */
export function onGivenRows<Column extends string>(
  name: string,
  types: Types<Column>,
  text: (rows: string) => string,
  before = 0,
): (rows: readonly GivenRow<Column>[], ...first: Param[]) => [Statement, Param[]] {
  const columns = Object.keys(types) as Column[]
  const parameters = (suffix: string) => columns.map((column, n) => `$${before + n + 1}::${types[column]}${suffix}`)
  const named = `a (${columns.join(', ')})`
  const one: Statement = { name, text: text(`(values (${parameters('').join(', ')})) as ${named}`) }
  const several: Statement = {
    name: `${name} (several)`,
    text: text(`unnest(${parameters('[]').join(', ')}) as ${named}`),
  }
  return (rows, ...first) => {
    const [only, ...others] = rows
    if (only && others.length === 0) return [one, [...first, ...columns.map((column) => only[column])]]
    return [several, [...first, ...columns.map((column) => rows.map((row) => row[column]))]]
  }
}
