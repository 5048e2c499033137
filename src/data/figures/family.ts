// A family of figures: facts from the records, the dimensions they are split by, and the measures that are summed.

export interface Family {
  /** The name in `figure_marks`. Families with the same name are computed together. */
  name: 'visits' | 'sales' | 'payments' | 'subscriptions' | 'experiments' | 'renewals' | 'declines'
  table: string
  /** The dimensions that facts have as columns, besides `day` and `test`. */
  dimensions: readonly string[]
  /** The one or two dimensions of each split. Every family also has the totals, a split without a dimension. */
  splits: readonly (readonly string[])[]
  /**
   * Dimensions whose values a visitor can choose. Each split keeps at most 1,000 values of them a day, those with the most of the first
   * measure; the others are `other`.
   */
  limited?: readonly string[]
  /** Columns that every row has besides those of its split, and their types. */
  also?: Readonly<Record<string, string>>
  /** Whether rows have a currency. */
  money: boolean
  measures: readonly string[]
  /**
   * SQL: a row for each fact, with `day`, `test`, the dimensions (never null) and the measures. $1 is the project, $2 the first
   * day, $3 the day after the last, $4 the number of decimals of each currency as JSON.
   */
  facts: string
}

/** SQL: the day in UTC of an instant. */
export const dayOf = (instant: string) => `(${instant} at time zone 'UTC')::date`

/** SQL: the hour in UTC of an instant, `00` to `23`. */
export const hourOf = (instant: string) => `to_char(${instant} at time zone 'UTC', 'HH24')`

/** SQL: whether an instant is within the days from $2 to $3. */
export const within = (instant: string) =>
  `${instant} >= $2::date::timestamp at time zone 'UTC' and ${instant} < $3::date::timestamp at time zone 'UTC'`

/** SQL: the month in UTC of an instant, as `2026-01`. */
export const monthOf = (instant: string) => `to_char(${instant} at time zone 'UTC', 'YYYY-MM')`

/**
 * SQL: a dimension that a record may lack. Records that were stored before texts had limits may have longer ones than the index of
 * figures can hold.
 */
export const orNone = (value: string) => `coalesce(left(${value}, 256), '')`

/**
 * SQL: the value of an amount in US dollars: the stored one, or the amount itself if it is in US dollars or 0. An import may leave
 * out the stored one. Null if the value is not known.
 */
export const inDollars = (stored: string, amount: string, currency: string) =>
  `coalesce(${stored}, case when ${currency} = 'USD' or ${amount} = 0 then ${amount} end)`

/** SQL: minor units of an amount in major units. */
export const minor = (amount: string, currency: string) =>
  `round(${amount} * power(10::numeric, coalesce(($4::jsonb ->> ${currency})::int, 2)))`
