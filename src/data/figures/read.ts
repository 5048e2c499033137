// Reads figures: sums over days from the rollups, by period and dimension.
import { sameCurrency } from '../../core/tenants/reporting.ts'
import { DAY_MS } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Param } from '../../lib/pg/types.ts'
import { type MetricName, metrics, type Sum, type SumName, sums, sumsOf } from './metrics.ts'
import { minorUnitsOf, rounded } from './rounding.ts'
import { currenciesOf } from './settings.ts'

const periods = ['day', 'week', 'month'] as const
export type Period = (typeof periods)[number]

export interface Question {
  projects: readonly string[]
  metrics: readonly MetricName[]
  /** Days as `2026-01-31`; `to` is the day after the last. */
  from: string
  to: string
  period?: Period
  /** A dimension of the family, or `currency`, or `project`. */
  dimension?: string
  /** Only figures of this value of a dimension. */
  filter?: Filter
  /** `usd`: all amounts in the reporting currency of the projects; `own`: each currency separately. */
  money: 'usd' | 'own'
  /** Whether sandbox and preview data counts too. */
  test: boolean
}

export interface Filter {
  dimension: string
  value: string
}

/** Money is in major units, ratios are from 0 to 1; null if the divisor is 0. */
export type Values = Partial<Record<MetricName, number | null>>

export interface Figure {
  /** The first day of the period; null: all days of the question. */
  period: string | null
  /** The value of the dimension; '': records without one; null: all records. */
  key: string | null
  /** Null for metrics that are not money. */
  currency: string | null
  values: Values
}

/** Reads the figures, ordered by period and key. Periods without records are left out. */
export async function readFigures(db: Db, question: Question): Promise<Figure[]> {
  const found = new Map<string, { figure: Figure; sums: Map<SumName, number> }>()
  const needed = [...new Set(question.metrics.flatMap(sumsOf))]
  const batches = Map.groupBy(needed, (name) => `${sums[name].family.table} ${sums[name].atEnd ?? false}`)
  const isMoney = question.metrics.some((name) => metrics[name].unit === 'money')
  // In one currency, a period and key are one figure. In several, metrics that are not money are a separate figure.
  const currencyIn = question.money === 'usd' && isMoney ? await reportedIn(db, question) : undefined
  const results = await Promise.all(
    [...batches.values()].map(async (names) => ({ names, rows: await read(db, names, question) })),
  )
  for (const { names, rows } of results) {
    for (const row of rows) {
      const { period = null, key = null } = row
      const currency = currencyIn?.(key) ?? (question.money === 'own' ? (row.currency ?? null) : null)
      const place = JSON.stringify([period, key, currency])
      const one = found.get(place) ?? { figure: { period, key, currency, values: {} }, sums: new Map() }
      found.set(place, one)
      for (const [n, name] of names.entries()) one.sums.set(name, Number(row[`v${n}`]) / scale(sums[name], currency))
    }
  }
  const figures = computeMetrics([...found.values()], question)
  return figures.sort(byOrder(question))
}

/**
 * The currency of money by the key of its figure. Throws a 400 for a sum of several currencies; figures by project are no such sum.
 */
async function reportedIn(db: Db, { projects, dimension }: Question): Promise<(key: string | null) => string> {
  const currencies = await currenciesOf(db, projects)
  if (dimension === 'project') return (key) => currencies.get(key!)!
  const currency = sameCurrency([...currencies.values()])
  return () => currency
}

/** The place of a figure among others: by period, key and currency. */
export const order = ({ period, key, currency }: Figure) => [period ?? '', key ?? '', currency ?? ''].join('\u0000')

/** Compares by `order`, and screens by their index. */
export function byOrder({ dimension }: Question): (a: Figure, b: Figure) => number {
  const place = (figure: Figure) => order(dimension === 'screen' ? { ...figure, key: padded(figure.key) } : figure)
  return (a, b) => (place(a) < place(b) ? -1 : 1)
}

// The digits of the largest integer of PostgreSQL.
const INDEX_DIGITS = 10
const padded = (key: string | null) => key?.replace(/^\d+/, (index) => index.padStart(INDEX_DIGITS, '0')) ?? null

/** Money is stored in minor units. */
const scale = ({ unit }: Sum, currency: string | null): number =>
  unit === 'money' ? minorUnitsOf(currency ?? 'USD') : 1

type Found = { figure: Figure; sums: Map<SumName, number> }

/** Computes the metrics from the sums. Counts without a currency, such as sessions, are the divisor in every currency. */
function computeMetrics(found: Found[], { metrics: names, money }: Question): Figure[] {
  const counted = new Map<string, Found>()
  for (const one of found) if (one.figure.currency === null) counted.set(order(one.figure), one)
  return found.flatMap(({ figure, sums: own }) => {
    const withoutCurrency = counted.get(order({ ...figure, currency: null }))?.sums
    const of = (name: SumName) => own.get(name) ?? (sums[name].family.money ? undefined : withoutCurrency?.get(name))
    const values: Values = {}
    for (const name of names) {
      const metric = metrics[name]
      // Money has a currency. With several currencies, other metrics are in the figure without one.
      if (metric.unit === 'money' && figure.currency === null) continue
      if (!metric.family.money && figure.currency !== null && money === 'own') continue
      if (!('of' in metric)) {
        if (own.has(name as SumName)) values[name] = rounded(own.get(name as SumName)!)
        continue
      }
      const [part, whole] = (metric.of as readonly SumName[]).map(of)
      if (part !== undefined || whole !== undefined) values[name] = whole ? rounded((part ?? 0) / whole) : null
    }
    return Object.keys(values).length > 0 ? [{ ...figure, values }] : []
  })
}

async function read(db: Db, names: SumName[], question: Question): Promise<Record<string, string | null>[]> {
  const { family, atEnd = false } = sums[names[0]!]
  const { projects, from, to, period, dimension, filter, money, test } = question
  const params: Param[] = [projects as string[], from, to, test]
  const split = splitOf(family.splits, dimension, filter?.dimension)
  if (!split) return []
  params.push(split.name)
  const where = [`project_id = any($1)`, `day < $3::date`, `(not test or $4)`, `split = $5`]
  // A metric at the end is the sum of all days up to it. $2 is named anyway, because PostgreSQL refuses unused parameters.
  where.push(atEnd ? '$2::date is not null' : 'day >= $2::date')
  if (filter) {
    params.push(filter.value)
    where.push(`${split.filter} = $6`)
  }
  const currency = family.money && money === 'own' ? 'currency' : undefined
  const columns = {
    ...(period && { start: startIn(period, atEnd) }),
    ...(dimension && { key: keyOf(dimension, split.key) }),
    ...(currency && names.some((name) => sums[name].unit === 'money') && { currency }),
  }
  const groups = Object.keys(columns).map((_name, n) => n + 1)
  const values = names.map((name, n) => `${expression(sums[name], money)} as v${n}`)
  const list = [...Object.entries(columns).map(([name, sql]) => `${sql} as ${name}`), ...values]
  const text = `select ${list.join(', ')} from ${family.table} where ${where.join(' and ')}
    ${groups.length > 0 ? `group by ${groups.join(', ')}` : ''}`
  const rows = await db.query(period ? `select *, ${PERIOD} from (${text}) summed` : text, params)
  return atEnd && period ? accumulate(rows, names, question) : rows
}

/** The dimensions of a metric, or those that it has when it is filtered by a dimension. */
export function dimensionsOf(name: MetricName, filter: string | undefined): string[] {
  const { family } = metrics[name]
  const all = ['project', ...(family.money ? ['currency'] : []), ...new Set(family.splits.flat())]
  return all.filter((dimension) => splitOf(family.splits, dimension, filter) !== undefined)
}

/** Whether a metric can be filtered by a dimension. */
export const isFilter = (name: MetricName, filter: string): boolean =>
  splitOf(metrics[name].family.splits, undefined, filter) !== undefined

/** The split with this dimension, filtered by another one if it is given; undefined if the family does not have it. */
function splitOf(
  splits: readonly (readonly string[])[],
  dimension: string | undefined,
  filter: string | undefined,
): { name: string; key: string; filter: string } | undefined {
  const inner = dimension === 'currency' || dimension === 'project' ? undefined : dimension
  const wanted = [...new Set([inner, filter].filter((one) => one !== undefined))]
  const has = (one: readonly string[]) => wanted.every((name) => one.includes(name))
  // Screens and versions have no meaning without their funnel.
  const known = wanted.length === 0 ? [] : splits.filter(has).sort((a, b) => a.length - b.length)[0]
  if (!known || (wanted.length === 1 && known.length > 1 && known[0] === 'funnel')) return undefined
  const column = (name: string | undefined) => (known.indexOf(name ?? '') === 1 ? 'subkey' : 'key')
  return { name: known.join('_'), key: column(inner), filter: column(filter) }
}

function keyOf(dimension: string, column: string): string {
  return dimension === 'currency' ? 'currency' : dimension === 'project' ? 'project_id' : column
}

// Without a time zone, and formatted as text after the sums: for each row either takes longer than the sums.
function startIn(period: Period, atEnd: boolean): string {
  const start = period === 'day' ? 'day' : `date_trunc('${period}', day::timestamp)`
  // Days before the first one count in metrics at the end of a period. They are a separate group.
  return atEnd ? `case when day >= $2::date then ${start} end` : start
}

const PERIOD = `coalesce(to_char(start, 'YYYY-MM-DD'), '') as period`

// Each column is summed separately: PostgreSQL computes a sum once for all metrics that use it.
function expression({ terms, unit }: Sum, money: Question['money']): string {
  const column = (name: string) => (unit === 'money' && money === 'usd' ? `${name}_usd` : name)
  const parts = terms.map((term) =>
    term.startsWith('-') ? `- sum(${column(term.slice(1))})` : `+ sum(${column(term)})`,
  )
  return `coalesce(${parts.join(' ')}, 0)`
}

type Rows = Record<string, string | null>[]

/** Turns the changes in each period into values at its end, for all periods of the question. */
function accumulate(rows: Rows, names: SumName[], { from, to, period }: Question): Rows {
  const series = Map.groupBy(rows, ({ key = null, currency = null }) => JSON.stringify([key, currency]))
  return [...series.values()].flatMap((one) => {
    const changes = new Map(one.map((row) => [row.period!, row]))
    const running = names.map(() => 0)
    return ['', ...starts(from, to, period!)].flatMap((start) => {
      const change = changes.get(start)
      for (const n of names.keys()) running[n]! += Number(change?.[`v${n}`] ?? 0)
      if (start === '') return []
      const values = Object.fromEntries(running.map((value, n) => [`v${n}`, String(value)]))
      return [{ ...one[0]!, period: start, ...values }]
    })
  })
}

const dayText = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** The first days of all periods from `from` until `to`. */
function starts(from: string, to: string, period: Period): string[] {
  const found = new Set<string>()
  for (let ms = Date.parse(from); ms < Date.parse(to); ms += DAY_MS) found.add(startOf(ms, period))
  return [...found]
}

/** The first day of the period with this instant. */
export function startOf(ms: number, period: Period): string {
  if (period === 'month') return `${dayText(ms).slice(0, 7)}-01`
  // Weeks begin on Monday, as in PostgreSQL.
  return dayText(period === 'day' ? ms : ms - ((new Date(ms).getUTCDay() + 6) % 7) * DAY_MS)
}
