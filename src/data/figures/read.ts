// Reads figures: sums over days from the rollups, by period and dimension.
import { sameCurrency } from '../../core/tenants/reporting.ts'
import { DAY_MS } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import { type MetricName, metrics, type Sum, type SumName, sums, sumsOf } from './metrics.ts'
import { minorUnitsOf, rounded } from './rounding.ts'
import { currenciesOf } from './settings.ts'
import { type Filter, has, isStored, type Source, sourcesOf, sumOver } from './source.ts'

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
  /** Only figures of these values of dimensions. */
  filters?: readonly Filter[]
  /** `usd`: all amounts in the reporting currency of the projects; `own`: each currency separately. */
  money: 'usd' | 'own'
  /** Whether sandbox and preview data counts too. */
  test: boolean
}

export type { Filter }

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
      for (const [n, name] of names.entries())
        if (row[`v${n}`] !== null) one.sums.set(name, Number(row[`v${n}`]) / scale(sums[name], currency))
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
  const { projects, from, to, period, dimension, filters = [], money, test } = question
  const inner = ofFacts(dimension)
  const sources = await sourcesOf(db, family, {
    projects,
    dimensions: inner,
    filters,
    // A metric at the end is the sum of all days up to it.
    days: atEnd ? { to } : { from, to },
  })
  const currency = family.money && money === 'own' ? 'currency' : undefined
  const statement = ({ table, where, columns: columnOf, add }: Source): string => {
    const first = period || !atEnd ? add(from) : ''
    const conditions = [where, `day < ${add(to)}::date`, `(not test or ${add(test)})`]
    if (!atEnd) conditions.push(`day >= ${first}::date`)
    const columns = {
      ...(period && { start: startIn(period, atEnd, first) }),
      ...(dimension && {
        key: inner.length > 0 ? columnOf[dimension]! : dimension === 'project' ? 'project_id' : 'currency',
      }),
      ...(currency && names.some((name) => sums[name].unit === 'money') && { currency }),
    }
    const groups = Object.keys(columns).map((_name, n) => n + 1)
    const values = names.map((name, n) => `${expression(sums[name], money)} as v${n}`)
    const list = [...Object.entries(columns).map(([name, sql]) => `${sql} as ${name}`), ...values]
    const text = `select ${list.join(', ')} from ${table} where ${conditions.join(' and ')}
      ${groups.length > 0 ? `group by ${groups.join(', ')}` : ''}`
    return period ? `select *, ${PERIOD} from (${text}) summed` : text
  }
  const rows = await sumOver(db, sources, statement, (column) => /^v\d+$/.test(column))
  return atEnd && period ? accumulate(rows, names, question) : rows
}

/** The dimension, if facts have it as a column. */
const ofFacts = (dimension: string | undefined): string[] =>
  dimension === undefined || dimension === 'currency' || dimension === 'project' ? [] : [dimension]

/** The dimensions of a metric, or those that it has when it is filtered by others. */
export function dimensionsOf(name: MetricName, filters: readonly string[]): string[] {
  const { family } = metrics[name]
  const all = ['project', ...(family.money ? ['currency'] : []), ...new Set(family.splits.flat())]
  return all.filter((dimension) => has(family, [...new Set([...ofFacts(dimension), ...filters])]))
}

/** Whether a metric can be filtered by these dimensions together. */
export const isFilter = (name: MetricName, ...filters: string[]): boolean => has(metrics[name].family, filters)

/** Whether figures of the metric by this dimension are stored, so that they can be read at any time without a scan of records. */
export const isStoredFilter = (name: MetricName, filter: string): boolean => isStored(metrics[name].family, [filter])

// Without a time zone, and formatted as text after the sums: for each row either takes longer than the sums.
function startIn(period: Period, atEnd: boolean, from: string): string {
  const start = period === 'day' ? 'day' : `date_trunc('${period}', day::timestamp)`
  // Days before the first one count in metrics at the end of a period. They are a separate group.
  return atEnd ? `case when day >= ${from}::date then ${start} end` : start
}

const PERIOD = `coalesce(to_char(start, 'YYYY-MM-DD'), '') as period`

// Each column is summed separately: PostgreSQL computes a sum once for all metrics that use it.
function expression({ terms, unit, ownOnly = false }: Sum, money: Question['money']): string {
  if (ownOnly && money === 'usd') return 'null'
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
