// Figures for pages: asked of the operation, picked, and turned into the rows of pictures.
import { DAY_MS } from '../lib/days.ts'
import { money, number, percent } from './format.ts'
import { cell, type Table } from './sheet.ts'
import { type Answer, organizationOf, type Project, type View } from './view.ts'

export interface Figure {
  period: string | null
  key: string | null
  currency: string | null
  values: Record<string, number | null>
  previous?: Record<string, number | null>
}

interface Asked {
  by?: string
  compare?: boolean
  funnel?: string
  money?: 'own' | 'usd'
  /** Other days than those of the page. */
  from?: string
  to?: string
}

/** Figures of the page's project, or of all projects of its organization, for its days. */
export async function figures(view: View, metric: string, asked: Asked = {}): Promise<Figure[]> {
  const { span, test } = view
  const { by, compare, funnel, money = 'usd', from = span.from, to = span.to } = asked
  const [operation, params] = view.project
    ? ['getProjectFigures', { project_id: view.project.id }]
    : ['getOrganizationFigures', { organization_id: organizationOf(view).id }]
  const answer: Answer = await view.call(operation, {
    params,
    query: {
      metric,
      from,
      to,
      money,
      test,
      ...(by !== undefined && { by }),
      ...(compare && { compare: span.compare }),
      ...(funnel !== undefined && { funnel }),
    },
  })
  return answer.data
}

/** The figure of the whole period, empty when there are no records. */
export async function total(view: View, metric: string, asked: Asked = {}): Promise<Figure> {
  const [found] = await figures(view, metric, { ...asked, compare: true })
  return found ?? { period: null, key: null, currency: null, values: {}, previous: {} }
}

export type Unit = 'usd' | 'percent' | 'number'
const SHOW: Record<Unit, typeof number> = { usd: (value) => money(value), percent, number }

export const show = (unit: Unit, value: number | null | undefined) => cell(SHOW[unit](value), value)

/** The first days of all periods of the page, so that a picture has no gaps. */
function periodsOf({ span: { from, to, by } }: View): string[] {
  const found = new Set<string>()
  for (let ms = Date.parse(from); ms < Date.parse(to); ms += DAY_MS) {
    const day = new Date(ms).toISOString().slice(0, 10)
    const week = new Date(ms - ((new Date(ms).getUTCDay() + 6) % 7) * DAY_MS).toISOString().slice(0, 10)
    found.add(by === 'month' ? `${day.slice(0, 7)}-01` : by === 'week' ? week : day)
  }
  return [...found]
}

const periodLabel = ({ span: { by } }: View) => ({ day: 'Day', week: 'Week from', month: 'Month' })[by]
const periodText = ({ span: { by } }: View, period: string) => (by === 'month' ? period.slice(0, 7) : period)

interface Series {
  label: string
  metric: string
  unit: Unit
}

/** A row a period, a column a metric. */
export function seriesTable(view: View, caption: string, found: Figure[], series: Series[]): Table {
  const byPeriod = new Map(found.map((figure) => [figure.period, figure.values]))
  return {
    caption,
    columns: [{ label: periodLabel(view) }, ...series.map(({ label }) => ({ label, number: true }))],
    rows: periodsOf(view).map((period) => {
      const values = byPeriod.get(period) ?? {}
      const isRate = (unit: Unit) => unit === 'percent'
      return [
        periodText(view, period),
        ...series.map(({ metric, unit }) => show(unit, values[metric] ?? (isRate(unit) ? null : 0))),
      ]
    }),
  }
}

/** A row a period, a column each of the largest keys and one for all others. */
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
  const hasOthers = shown.length < sorted.length
  const rows = periodsOf(view).map((period) => {
    const here = found.filter((figure) => figure.period === period)
    const sumOf = (keys: string[]) =>
      here.filter(({ key }) => keys.includes(key!)).reduce((sum, { values }) => sum + (values[metric] ?? 0), 0)
    const columns = shown.map((key) => show(unit, sumOf([key])))
    const others = sorted.filter((key) => !shown.includes(key))
    return [periodText(view, period), ...columns, ...(hasOthers ? [show(unit, sumOf(others))] : [])]
  })
  const labels = [...shown.map(name), ...(hasOthers ? ['others'] : [])]
  return {
    caption,
    columns: [{ label: periodLabel(view) }, ...labels.map((label) => ({ label, number: true }))],
    rows: sorted.length === 0 ? [] : rows,
  }
}

export interface Names {
  funnels: Record<string, string>
  products: Record<string, string>
  experiments: Record<string, string>
}

// More names than this are not worth the wait: what has none is shown by its id.
const MOST_NAMED = 20

/** Names in the project, or in the newest projects of the organization. */
export async function namesOf(view: View): Promise<Names> {
  const all = await Promise.all(
    chosenProjects(view)
      .slice(0, MOST_NAMED)
      .map(({ id }) => view.call('getProjectNames', { params: { project_id: id } }) as Promise<Names>),
  )
  const merged = (of: keyof Names): Record<string, string> => Object.assign({}, ...all.map((names) => names[of]))
  return { funnels: merged('funnels'), products: merged('products'), experiments: merged('experiments') }
}

/** The chosen project, or all of the chosen organization. */
const chosenProjects = ({ project, projects, organization }: View): Project[] =>
  project ? [project] : projects.filter(({ organization_id }) => organization_id === organization?.id)
