// What a statement, its parameters and its rows are: shared by all that speak to PostgreSQL.

/** A row by column name, every value its text: booleans `t`/`f`, times `2026-01-31 23:59:59.123456+00`. */
export type NamedRow = Record<string, string | null>
export type Param = string | number | bigint | boolean | null | readonly (string | null)[] | Buffer

/** A statement of the pipelined pool. With a name it is prepared once on each connection. */
export interface Statement {
  name?: string
  text: string
  /** A read ends after so many rows. */
  most?: number
  /** A read of so many rows that short ones shall not wait behind it. */
  large?: boolean
}

/** Runs one statement of a transaction; with a name it is prepared once on each connection, for what is run often. */
export type Query = <R extends NamedRow = NamedRow>(
  statement: string | Statement,
  params?: readonly Param[],
) => Promise<R[]>
