// Columns of rows, as lists to compare.
import type { Json } from './server.ts'

/** The values of a column. */
export const column = <Row extends Record<string, Json>>(rows: Iterable<Row>, name: keyof Row) =>
  Array.from(rows, (row) => row[name])

/** The values of these columns, a list for each row. */
export const columns = <Row extends Record<string, Json>>(rows: Iterable<Row>, ...names: (keyof Row)[]) =>
  Array.from(rows, (row) => names.map((name) => row[name]))
