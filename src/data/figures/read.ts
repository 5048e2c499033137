// Reads figures: sums over days from the rollups, by period and dimension.
import { sameCurrency } from '../../core/tenants/reporting.ts'
import type { Db } from '../../lib/pg/db.ts'
import { sumsOfRecords } from './combined.ts'
import type { Filter } from './family.ts'
import { ofFacts } from './filters.ts'
import { type MetricName, metrics, type Sum, type SumName, sums, sumsOf } from './metrics.ts'
import { type Period, startOf, starts } from './periods.ts'
import { minorUnitsOf, rounded } from './rounding.ts'
import { currenciesOf } from './settings.ts'
import { has, type Source, storedSource } from './source.ts'

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

/** The part of a question that says which records count: the projects, the days and the filters. */
export type QuestionOfDays = Pick<Question, 'projects' | 'from' | 'to' | 'filters' | 'test'>

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
  const { projects, from, to, period, dimension, filters = [] } = question
  const dimensions = ofFacts(dimension)
  if (dimension === 'currency' && !family.money) return []
  if (!has(family, [...new Set([...dimensions, ...filters.map((one) => one.dimension)])])) return []
  const place = {
    projects,
    dimensions,
    filters,
    // A metric at the end is the sum of all days up to it.
    days: atEnd ? { to } : { from, to },
  }
  const source = storedSource(family, place)
  const rows = source
    ? await db.query(statementOf(source, names, question), source.params)
    : sumDays(await sumsOfRecords(db, family, place), names, question)
  return atEnd && period ? accumulate(rows, names, question) : rows
}

/** SQL: the sums of stored rows. */
function statementOf({ table, where, columns: columnOf, add }: Source, names: SumName[], question: Question): string {
  const { family, atEnd = false } = sums[names[0]!]
  const { from, to, period, dimension, money, test } = question
  const currency = family.money && money === 'own' ? 'currency' : undefined
  const first = period || !atEnd ? add(from) : ''
  const conditions = [where, `day < ${add(to)}::date`, `(not test or ${add(test)})`]
  if (!atEnd) conditions.push(`day >= ${first}::date`)
  const columns = {
    ...(period && { start: startIn(period, atEnd, first) }),
    ...(dimension && {
      key: ofFacts(dimension).length > 0 ? columnOf[dimension]! : dimension === 'project' ? 'project_id' : 'currency',
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

/** The same sums of days that were read from the records. */
function sumDays(found: Awaited<ReturnType<typeof sumsOfRecords>>, names: SumName[], question: Question): Rows {
  const { family, atEnd = false } = sums[names[0]!]
  const { from, to, period, dimension, money, test } = question
  const inCurrencies = family.money && money === 'own' && names.some((name) => sums[name].unit === 'money')
  const added = names.map((name) => (isKnown(sums[name], money) ? termsOf(sums[name], money) : []))
  const groups = new Map<string, { columns: Record<string, string>; values: number[] }>()
  const groupOf = (start = '', key = '', currency = '') => {
    const place = `${start}\0${key}\0${currency}`
    const known = groups.get(place)
    if (known) return known
    const columns = { ...(period && { period: start }), ...(dimension && { key }), ...(inCurrencies && { currency }) }
    const group = { columns, values: names.map(() => 0) }
    groups.set(place, group)
    return group
  }
  if (!period && !dimension && !inCurrencies) groupOf()
  for (const { projectId, rows } of found) {
    for (const row of rows) {
      const day = row.day!
      if (day >= to || (day < from && !atEnd) || (row.test === 't' && !test)) continue
      const { values } = groupOf(
        period && (day < from ? '' : startOf(Date.parse(day), period)),
        dimension === 'project' ? projectId : dimension && row[dimension]!,
        inCurrencies ? row.currency! : '',
      )
      for (const [n, terms] of added.entries())
        for (const { sign, column } of terms) values[n]! += sign * Number(row[column])
    }
  }
  return [...groups.values()].map(({ columns, values }) => ({
    ...columns,
    ...Object.fromEntries(values.map((value, n) => [`v${n}`, isKnown(sums[names[n]!], money) ? String(value) : null])),
  }))
}

// Without a time zone, and formatted as text after the sums: for each row either takes longer than the sums.
function startIn(period: Period, atEnd: boolean, from: string): string {
  const start = period === 'day' ? 'day' : `date_trunc('${period}', day::timestamp)`
  // Days before the first one count in metrics at the end of a period. They are a separate group.
  return atEnd ? `case when day >= ${from}::date then ${start} end` : start
}

const PERIOD = `coalesce(to_char(start, 'YYYY-MM-DD'), '') as period`

/** Whether the sum has a value in this money. */
const isKnown = ({ ownOnly = false }: Sum, money: Question['money']) => !(ownOnly && money === 'usd')

/** The columns whose sums are added and subtracted. */
const termsOf = ({ terms, unit }: Sum, money: Question['money']) =>
  terms.map((term) => {
    const [sign, name] = term.startsWith('-') ? ([-1, term.slice(1)] as const) : ([1, term] as const)
    return { sign, column: unit === 'money' && money === 'usd' ? `${name}_usd` : name }
  })

// Each column is summed separately: PostgreSQL computes a sum once for all metrics that use it.
function expression(sum: Sum, money: Question['money']): string {
  if (!isKnown(sum, money)) return 'null'
  return `coalesce(${termsOf(sum, money)
    .map(({ sign, column }) => `${sign < 0 ? '-' : '+'} sum(${column})`)
    .join(' ')}, 0)`
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
