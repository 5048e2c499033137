// What a family of figures is: facts computed from the records, the dimensions they are split by, and what is summed.

export interface Family {
  /** Its name in `figure_marks`. Families with the same name are computed together. */
  name: 'visits' | 'sales' | 'payments' | 'subscriptions'
  table: string
  /** Dimensions that a fact has as a column, beside `day` and `test`. */
  dimensions: readonly string[]
  /** The one or two dimensions of each split; every family also has the split by nothing. */
  splits: readonly (readonly string[])[]
  /** Whether each row is of one currency. */
  money: boolean
  measures: readonly string[]
  /**
   * SQL: one row a fact, with `day`, `test`, the dimensions (never null) and the measures. $1 is the project, $2 and $3
   * the first day and the one after the last, $4 the decimals of each currency as JSON.
   */
  facts: string
}

/** SQL: the day in UTC of an instant. */
export const dayOf = (instant: string) => `(${instant} at time zone 'UTC')::date`

/** SQL: that an instant lies within the days asked for. */
export const within = (instant: string) =>
  `${instant} >= $2::date::timestamp at time zone 'UTC' and ${instant} < $3::date::timestamp at time zone 'UTC'`

/** SQL: the month in UTC of an instant, as `2026-01`. */
export const monthOf = (instant: string) => `to_char(${instant} at time zone 'UTC', 'YYYY-MM')`

/** SQL: a dimension that a record may lack. */
export const orNone = (value: string) => `coalesce(${value}, '')`
