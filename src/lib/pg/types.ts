// The types of statements, parameters and rows.

/** A row by column name, every value its text: booleans `t`/`f`, times `2026-01-31 23:59:59.123456+00`. */
export type NamedRow = Record<string, string | null>
export type Param = string | number | bigint | boolean | null | readonly (string | null)[] | Buffer

/** A statement of the pipelined pool. With a name it is prepared once on each connection. */
export interface Statement {
  name?: string
  text: string
  /** The limit of rows of a read. */
  maxRows?: number
  /** A read of so many rows that short reads should not wait behind it. */
  large?: boolean
}

/** Runs one statement of a transaction; with a name, for frequent statements, it is prepared once on each connection. */
export type Query = <R extends NamedRow = NamedRow>(
  statement: string | Statement,
  params?: readonly Param[],
) => Promise<R[]>
