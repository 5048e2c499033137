// Reads figures for pages by the operations of the API, and turns them into tables.
import { addDays } from '../../lib/days.ts'
import { parametersOf } from './dimensions.ts'
import { leftOf, readFiltered } from './filtered.ts'
import { money, number, percent } from './format.ts'
import type { Piece } from './html.ts'
import { comparable, type Span } from './period.ts'
import { type PeriodRow, periodsOf, periodTable } from './periods.ts'
import { type Cell, type Column, cell, type Table, type Unit } from './sheet.ts'
import { allChoices, organizationOf, shownProjects, type View } from './view.ts'

export interface Figure {
  period: string | null
  key: string | null
  currency: string | null
  values: Record<string, number | null>
  /** The values of the days that are over, and those of the days they are compared with; undefined if there are none. */
  compared?: Record<string, number | null>
  previous?: Record<string, number | null>
  /** The metrics that are not known with the filters of the page. */
  left?: ReadonlySet<string>
}

interface FigureQuery {
  by?: string
  compare?: boolean
  funnel?: string
  money?: 'own' | 'usd'
  /** The first day and the day after the last, if not those of the page. */
  from?: string
  to?: string
}

/** Reads figures of the chosen project, or of all projects of the chosen organization, with the filters of the page. */
export async function figures(view: View, metric: string, query: FigureQuery = {}): Promise<Figure[]> {
  const { span, test } = view
  const { by, compare, funnel, money = 'usd', from = span.from, to = span.to } = query
  const [operation, params] = view.project
    ? (['getProjectFigures', { project_id: view.project.id }] as const)
    : (['getOrganizationFigures', { organization_id: organizationOf(view).id }] as const)
  const read = async (metric: string): Promise<Figure[]> => {
    const result = await view.call(operation, {
      params,
      query: {
        metric,
        from,
        to: addDays(to, -1),
        money,
        test,
        ...(by !== undefined && { by }),
        ...(compare && { compare: span.compare }),
        ...parametersOf(view.filters),
        ...(funnel !== undefined && { funnel }),
      },
    })
    return result.data
  }
  view.filtered.applied = true
  view.filtered.byForm = true
  return view.filters.length === 0 ? read(metric) : readFiltered(view, metric, query, read)
}

/** A figure of the whole period with values that were not read by `figures`. */
export const figureWith = ({ reporting: { currency } }: View, values: Figure['values']): Figure => ({
  period: null,
  key: null,
  currency,
  values,
})

/** Figures of the period, and those of its days that are over, with the values they are compared with; none if no day is over. */
export async function withComparison(
  view: View,
  metric: string,
  query: FigureQuery = {},
): Promise<[Figure[], Figure[]]> {
  const days = comparable(view.span)
  return Promise.all([
    figures(view, metric, query),
    days ? figures(view, metric, { ...query, ...days, compare: true }) : [],
  ])
}

/** The figure of the whole period; empty if there are no records. Only the days that are over are compared. */
export async function total(view: View, metric: string, query: FigureQuery = {}): Promise<Figure> {
  const [found, [over]] = await withComparison(view, metric, query)
  const [all = { ...figureWith(view, {}), left: leftOf(found) }] = found
  return { ...all, ...(over && { compared: over.values, previous: over.previous! }) }
}

/** The value at the end of the period, such as the MRR, compared with the end of the period it is compared with. */
export async function endOfPeriod(view: View, metric: string): Promise<Figure> {
  const all = await figures(view, metric, { compare: true })
  const [found] = all
  return found ? { ...found, compared: found.values } : { ...figureWith(view, {}), left: leftOf(all) }
}

export type { Unit }

/** `usd` is money in the reporting currency. */
export function show(unit: Unit, value: number | null | undefined, currency: string): Piece {
  return unit === 'usd' ? money(value, currency) : unit === 'percent' ? percent(value) : number(value)
}

/** A table shows money in the reporting currency of its page. */
export const valueCell = (unit: Unit, value: number | null | undefined): Cell => ({
  ...cell(show(unit, value, 'USD'), value),
  unit,
})

export interface Series {
  label: string
  metric: string
  unit: Unit
  /** Whether the metric is an average or a share, which an empty period has none of: its cell is empty, not 0. */
  isRate?: boolean
  /** Whether the metric is the sum of the others. */
  sum?: boolean
  /** Whether the values are those of the earlier period; the figures must be read with `compare`. */
  earlier?: boolean
}

/** The same series in the earlier period, which a chart draws as a faint line. */
export const inEarlier = (series: Series): Series => ({ ...series, sum: false, earlier: true })

interface Rows {
  /** The periods, if not those of the page. */
  span?: Span
  /** Whether the values are those at the end of each period, and not sums over it: then no period is marked incomplete. */
  atEnd?: boolean
  /** The values of rates over all periods. */
  ofAll?: Figure['values']
}

/** A table with a row for each period and a column for each metric. */
export function seriesTable(
  view: View,
  caption: string,
  found: Figure[],
  series: Series[],
  { span = view.span, atEnd = false, ofAll = {} }: Rows = {},
): Table {
  const byPeriod = new Map(found.map((figure) => [figure.period, figure]))
  const left = leftOf(found)
  const rows = periodsOf(span).map((period) => {
    const { values = {}, previous = {} } = byPeriod.get(period.start) ?? {}
    return {
      period,
      cells: series.map(({ metric, unit, isRate = unit === 'percent', earlier = false }) =>
        valueCell(unit, (earlier ? previous : values)[metric] ?? (isRate || left.has(metric) ? null : 0)),
      ),
    }
  })
  const columns = series.map(
    ({ label, metric, unit, isRate = unit === 'percent', sum = false, earlier = false }): Column => ({
      label: earlier ? `${label} ${EARLIER[span.compare]}` : label,
      sum,
      earlier,
      total: !atEnd && !isRate,
      ...(isRate && { ofAll: ofAll[metric] ?? null }),
    }),
  )
  const shown = (all: PeriodRow[]) => (series.every(({ metric }) => left.has(metric)) ? [] : all)
  return periodTable(caption, span, columns, shown(atEnd ? rows.map(markComplete) : rows), zoomOf(view, span))
}

/** The link of a day, week or month: the page with only its days. A page of a single day has none. */
function zoomOf(view: View, { from, to }: Span): ((first: string, last: string) => string) | undefined {
  if (addDays(from, 1) >= to) return undefined
  const choices = { ...allChoices(view), period: null, by: null }
  return (first, last) => view.href(view.path, { ...choices, from: first, to: last })
}

const EARLIER: Record<Span['compare'], string> = {
  previous: 'in the period before',
  month: 'a month earlier',
  year: 'a year earlier',
}

const markComplete = ({ period, cells }: PeriodRow): PeriodRow => ({ period: { ...period, part: undefined }, cells })

/** A table with a row for each period, and a column for each of the largest keys, for all others and for the total. */
export function pivotTable(
  view: View,
  caption: string,
  found: Figure[],
  {
    metric,
    unit,
    most = 6,
    name = (key: string) => key || 'none',
  }: { metric: string; unit: Unit; most?: number; name?: (key: string) => string },
): Table {
  const sums = new Map<string, number>()
  for (const { key, values } of found) sums.set(key!, (sums.get(key!) ?? 0) + (values[metric] ?? 0))
  const sorted = [...sums].sort(([, a], [, b]) => b - a).map(([key]) => key)
  const shown = sorted.slice(0, sorted.length > most + 1 ? most : sorted.length)
  const others = sorted.slice(shown.length)
  const columns = [...shown.map((key) => [key]), ...(others.length > 0 ? [others] : [])]
  if (columns.length > 1) columns.push(sorted)
  const byPeriod = Map.groupBy(found, ({ period }) => period)
  const rows = periodsOf(view.span).map((period) => {
    const here = byPeriod.get(period.start) ?? []
    const sumOf = (keys: string[]) =>
      roundMoney(
        here.filter(({ key }) => keys.includes(key!)).reduce((sum, { values }) => sum + (values[metric] ?? 0), 0),
      )
    return { period, cells: columns.map((keys) => valueCell(unit, sumOf(keys))) }
  })
  const labels = [...shown.map(name), ...(others.length > 0 ? ['others'] : [])]
  const heads = labels.map((label) => ({ label, total: true }))
  const total = columns.length > 1 ? [{ label: 'Total', sum: true, total: true }] : []
  return periodTable(caption, view.span, [...heads, ...total], sorted.length === 0 ? [] : rows, zoomOf(view, view.span))
}

/** The figures with the largest value of a metric first. */
export const mostFirst = (found: readonly Figure[], metric: string): Figure[] =>
  found.toSorted((a, b) => (b.values[metric] ?? 0) - (a.values[metric] ?? 0))

/** Removes the error of binary fractions from a sum: no amount has more than four decimals. */
export const roundMoney = (sum: number) => Math.round(sum * 1e4) / 1e4

export interface Names {
  funnels: Record<string, string>
  products: Record<string, string>
  experiments: Record<string, string>
}

/** The title of a funnel, its id if it has none; undefined if there is no funnel. */
export const nameOfFunnel = ({ funnels }: Names, id: string | null): string | undefined =>
  id === null ? undefined : (funnels[id] ?? id)

// Each project is a query. Funnels and products of further projects are shown by their id.
const MAX_NAMED = 20

/** The names of funnels, products and experiments of the chosen project, or of the newest projects of the organization. */
export async function namesOf(view: View): Promise<Names> {
  const all = await Promise.all(
    shownProjects(view)
      .slice(0, MAX_NAMED)
      .map(({ id }) => view.call('getProjectNames', { params: { project_id: id } }) as Promise<Names>),
  )
  // Without a prototype, because an id may be "constructor".
  const merged = (of: keyof Names): Record<string, string> =>
    Object.assign(Object.create(null), ...all.map((names) => names[of]))
  return { funnels: merged('funnels'), products: merged('products'), experiments: merged('experiments') }
}
