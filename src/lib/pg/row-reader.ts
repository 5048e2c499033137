// Reads the columns of a row that are not text once, where the row arrives, for code that decides by them.
import type { NamedRow } from './types.ts'

/** A boolean as PostgreSQL writes it. */
export const booleanFromPg = (text: string): boolean => text === 't'

/** The columns of a row type that are not text, each with its type. */
export type NotText<Row> = {
  [K in keyof Row as Row[K] extends string | null ? never : K]-?: NonNullable<Row[K]> extends boolean
    ? 'boolean'
    : 'number'
}

/**
 * Returns a function that reads a row of a statement, whose values are all text, as `Row`; null stays null. It changes the
 * row that it is given, so a row is read once: a second time, or without one of the columns, it throws.
 */
export function rowReader<Row extends object>(columns: NotText<Row>): (row: NamedRow) => Row {
  const named = Object.entries<string>(columns)
  return (row) => {
    const values: Record<string, unknown> = row
    for (const [name, type] of named) {
      const text = values[name]
      if (text === null) continue
      if (typeof text !== 'string') throw new Error(`Bug: the column ${name} is missing, or was read before`)
      values[name] = type === 'boolean' ? booleanFromPg(text) : Number(text)
    }
    return values as Row
  }
}
