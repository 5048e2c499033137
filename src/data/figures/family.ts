// A family of figures: facts from the records, the dimensions they are split by, and the measures that are summed.
import { convertedBy } from '../../core/records/exchange-rates.ts'
import { dayIn } from '../../core/tenants/reporting.ts'

/** Only figures of this value of a dimension. */
export interface Filter {
  dimension: string
  value: string
}

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
   * day, $3 the day after the last, $4 the time zone of the days, $5 the number of decimals of each currency as JSON, $6 the
   * reporting currency. Facts with either of the last two have both.
   */
  facts: string
  /** Whether each fact joins a row of `profiles`, whose country it has. */
  ofPeople?: boolean
  /** Further dimensions that figures can only be filtered by, from the records, with facts that have them as columns too. */
  more?: { dimensions: readonly string[]; facts: string }
}

const ZONE = '$4::text'

/** SQL: the day of an instant. */
export const dayOf = (instant: string) => dayIn(instant, ZONE)

/** SQL: the hour of an instant by the clock of the zone, `00` to `23`. One that comes twice on a day is one hour. */
export const hourOf = (instant: string) => `to_char(${instant} at time zone ${ZONE}, 'HH24')`

/**
 * SQL: whether an instant is within the days from $2 to $3. The two instants are for the index. The rest leaves out what is of another day
 * although it is between them, where clocks were set back over midnight; as a comparison that the planner expects to be true.
 */
export const within = (instant: string) =>
  `${instant} >= day_begins($2::date, ${ZONE}) and ${instant} < $3::date::timestamp at time zone ${ZONE}
   and (case when ${dayOf(instant)} >= $2::date and ${dayOf(instant)} < $3::date then 1 else 0 end) <> 0`

/** SQL: the month of an instant, as `2026-01`. */
export const monthOf = (instant: string) => `to_char(${instant} at time zone ${ZONE}, 'YYYY-MM')`

/** SQL: the first instant of the month of an instant. */
export const monthStart = (instant: string) =>
  `day_begins(date_trunc('month', ${instant} at time zone ${ZONE})::date, ${ZONE})`

/**
 * SQL: a dimension that a record may lack. Records that were stored before texts had limits may have longer ones than the index of
 * figures can hold.
 */
export const orNone = (value: string) => `coalesce(left(${value}, 256), '')`

interface Amount {
  /** Minor units of the amount. */
  amount: string
  currency: string
  /** The value in US cents that was stored with it; null without one: an import may leave it out. */
  cents: string
  /** The instant of whose day the exchange rate is. */
  at: string
}

/**
 * SQL: the value of an amount in the reporting currency, in minor units: the amount itself if it is in this currency or 0, the stored one if
 * this currency is the US dollar, and else the amount by the organization's exchange rates. Null if the value is not known.
 */
export const reported = ({ amount, currency, cents, at }: Amount) => `case
  when $6::text = 'USD' then coalesce(${cents}, case when ${currency} = 'USD' or ${amount} = 0 then ${amount} end)
  when ${currency} = $6::text or ${amount} = 0 then ${amount}
  else (${convertedBy(
    '(select organization_id from projects where id = $1)',
    currency,
    '$6::text',
    dayOf(at),
    (from, to) => `round(${amount} * ${to} * ${unitsOf('$6::text')} / (${from} * ${unitsOf(currency)}))`,
  )}) end`

/** SQL: how many minor units one of a currency has. */
const unitsOf = (currency: string) => `power(10::numeric, coalesce(($5::jsonb ->> ${currency})::int, 2))`

/** SQL: minor units of an amount in major units. */
export const minor = (amount: string, currency: string) => `round(${amount} * ${unitsOf(currency)})`

/** SQL: the value in the reporting currency of a row of the payment report. */
export const reportedRow = (row: string, at: string) =>
  reported({
    amount: minor(`${row}.amount`, `${row}.currency_code`),
    currency: `${row}.currency_code`,
    cents: `round(${row}.amount_usd * 100)`,
    at,
  })

/** SQL: the value in the reporting currency of the price of a transaction or subscription, by the rate of the day it was created. */
export const reportedPrice = (row: string) =>
  reported({
    amount: `${row}.price`,
    currency: `${row}.currency`,
    cents: `${row}.price_usd`,
    at: `${row}.created_at`,
  })
