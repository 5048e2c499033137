// The query of the figures' operations: its schema, and the `Question` that is read from it.
import { readHorizon } from '../../core/lists/horizon.ts'
import { todayIn } from '../../core/tenants/reporting.ts'
import { dimensionsOf, FILTERS, isFilter } from '../../data/figures/filters.ts'
import { type MetricName, metricNames, metrics } from '../../data/figures/metrics.ts'
import { PERIODS } from '../../data/figures/periods.ts'
import type { Filter, Question } from '../../data/figures/read.ts'
import { settingsOf } from '../../data/figures/settings.ts'
import { MOST_RECORDS } from '../../data/figures/source.ts'
import { LAST_TOUCH, VISITED } from '../../data/figures/splits.ts'
import { addDays, DAY_MS, readDay } from '../../lib/days.ts'
import { invalidParameter } from '../../lib/errors.ts'
import { DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import type { Db } from '../../lib/pg/db.ts'
import { Type, type TypeOf } from '../../lib/shape/schema.ts'
import { day } from './day-filters.ts'

const DIMENSIONS = [
  'currency',
  'project',
  'funnel',
  'country',
  'locale',
  'version',
  'experiment',
  'screen',
  'product',
  'provider',
  'account',
  'kind',
  'decline',
  'reason',
  'cohort',
  'movement',
  'hour',
  'attempt',
  ...VISITED,
  ...LAST_TOUCH,
]
// Ten years of days.
export const MAX_DAYS = 3660
const DEFAULT_DAYS = 30
const MAX_METRICS = 20

export const TAG = 'Figures'

const listOf = (names: readonly string[], max: number) => `^(${names.join('|')})(,(${names.join('|')})){0,${max - 1}}$`
const PERIOD = PERIODS.join('|')
const DIMENSION = DIMENSIONS.join('|')

export const daysQuery = {
  from: Type.Optional(day('The first day, in the time zone of the project; by default the period is 30 days long.')),
  to: Type.Optional(day('The last day, which is included; by default today.')),
}

export const testQuery = {
  test: Type.Optional(Type.Boolean({ default: false, description: 'Whether sandbox and preview data is included.' })),
}

type FilterName = (typeof FILTERS)[number]
const filterOf = (name: string) =>
  Type.Optional(
    Type.String({
      description: `Only the figures of this ${name}. Combinations that are not stored are computed from the records, if they are at most ${MOST_RECORDS}.`,
      maxLength: 256,
    }),
  )

/** The parameters of an operation whose figures can be filtered by these dimensions. */
export const filtersBy = <Name extends FilterName>(...names: Name[]) =>
  Object.fromEntries(names.map((name) => [name, filterOf(name)])) as Record<Name, ReturnType<typeof filterOf>>

export const filtersOf = (given: unknown): Filter[] =>
  FILTERS.flatMap((name) => {
    const value = (given as Partial<Record<FilterName, string>>)[name]
    return value === undefined ? [] : [{ dimension: name, value }]
  })

export const query = Type.Object({
  metric: Type.String({
    description: `One metric, or several separated by commas: ${metricNames.map((name) => `\`${name}\``).join(', ')}.`,
    maxLength: 1000,
    [DECLARED_ONLY]: { pattern: listOf(metricNames, MAX_METRICS) },
  }),
  ...daysQuery,
  by: Type.Optional(
    Type.String({
      description: `A period (\`day\`, \`week\`, \`month\`), a dimension (${DIMENSIONS.map((name) => `\`${name}\``).join(', ')}), or both separated by a comma.`,
      maxLength: 40,
      [DECLARED_ONLY]: {
        pattern: `^((${PERIOD})|(${DIMENSION})|(${PERIOD}),(${DIMENSION})|(${DIMENSION}),(${PERIOD}))$`,
      },
    }),
  ),
  compare: Type.Optional(
    Type.String({
      enum: ['previous', 'month', 'year'],
      description:
        'Adds the values of an earlier period: as many days before, or the same days a month or a year earlier.',
    }),
  ),
  ...filtersBy(...FILTERS),
  money: Type.Optional(
    Type.String({
      enum: ['usd', 'own'],
      default: 'usd',
      description:
        '`usd`: in the reporting currency of the project, which is the US dollar unless it has another, without amounts whose rate is unknown; `own`: each currency separately.',
    }),
  ),
  ...testQuery,
})

type Given = TypeOf<typeof query>

/** A `Question` without its projects, and with days only if they were given. */
export interface FiguresRequest extends Pick<Given, 'from' | 'to' | 'compare'> {
  about: Omit<Question, 'projects' | 'from' | 'to'>
}

/** Reads the query of the operation, or throws a 400 for its first broken rule. */
export function readQuery(query: unknown): FiguresRequest {
  const { metric, by, money = 'usd', test = false, from, to, compare } = query as Given
  const days = { ...(from !== undefined && { from }), ...(to !== undefined && { to }), ...(compare && { compare }) }
  const filters = filtersOf(query)
  const metrics = readMetrics(metric)
  readDays(days)
  const split = splitBy(by)
  checkDimension(
    metrics,
    split.dimension,
    filters.map(({ dimension }) => dimension),
  )
  return { ...days, about: { metrics, ...split, ...(filters.length > 0 && { filters }), money, test } }
}

/** A metric without the dimensions is left out of the response, but one of them must have them. */
function checkDimension(names: MetricName[], dimension: string | undefined, filters: readonly string[]): void {
  const of = filters.join(' and ')
  if (filters.length > 0 && dimension === undefined && !names.some((name) => isFilter(name, ...filters)))
    throw invalidParameter(`${filters[0]}: ${names.join(', ')} cannot be filtered by ${of}.`)
  const all = [...new Set(names.flatMap((name) => dimensionsOf(name, filters)))]
  if (dimension === undefined || all.includes(dimension)) return
  const what = `${names.join(', ')}${of && ` of one ${of}`}`
  throw invalidParameter(
    `by: ${what} cannot be split by ${dimension}, only by ${all.length > 0 ? all.join(', ') : 'day, week or month'}.`,
  )
}

function readMetrics(metric: string): MetricName[] {
  const names = metric.split(',').filter(Boolean)
  const unknown = names.find((name) => !Object.hasOwn(metrics, name))
  if (unknown !== undefined || names.length === 0 || names.length > MAX_METRICS)
    throw invalidParameter(`metric must be 1 to ${MAX_METRICS} of ${metricNames.join(', ')}, got "${metric}".`)
  return names as MetricName[]
}

/**
 * The question about these projects. Days that were left out follow from `today`. Throws a 400 for a period that is not
 * possible.
 */
export const questionOf = (request: FiguresRequest, projects: readonly string[], today: string): Question => ({
  ...request.about,
  projects,
  ...daysOf(request, today),
})

/** The days of a query, `to` the day after the last. Throws a 400 for days that are not possible. */
export function daysOf(given: Pick<Given, 'from' | 'to'>, today: string): { from: string; to: string } {
  const last = given.to ?? today
  const from = given.from ?? readDay('from', addDays(last, 1 - DEFAULT_DAYS))
  checkDays(from, last)
  return { from, to: addDays(last, 1) }
}

export interface Now {
  /** The present day in the time zone, by the clock of the database. */
  today: string
  time_zone: string
  /** The currency of the stored figures. */
  currency: string
}

/** Today in the time zone of a project, and what its figures are in. */
export async function nowOf(db: Db, projectId: string): Promise<Now> {
  const { timeZone, currency } = await settingsOf(db.query, projectId)
  return { today: await todayIn(db.query, timeZone), time_zone: timeZone, currency }
}

/** Today in the time zone of these projects; in UTC if they have several. */
export async function todayOf(
  db: Db,
  projects: readonly string[],
): Promise<{ today: string; time_zone: string | null }> {
  const zones = await db.query('select distinct time_zone from projects where id = any($1)', [projects as string[]])
  const zone = zones.length === 1 ? zones[0]!.time_zone! : null
  return { today: await todayIn(db.query, zone ?? 'UTC'), time_zone: zone }
}

/** What the figures of a project are in: fields of a response. */
export const nowFields = {
  time_zone: Type.String({ description: 'Time zone of the days.', examples: ['Europe/Madrid'] }),
  currency: Type.String({ description: 'Reporting currency: that of all amounts.', examples: ['USD'] }),
}

/** Fields of a response about days of a project. */
export const daysFields = {
  from: Type.String({ description: 'The first day.' }),
  to: Type.String({ description: 'The last day.' }),
  ...nowFields,
}

/** Advances the horizon of a project, and returns the days of a query as `daysOf` does, today, and the values of `daysFields`. */
export async function daysIn(db: Db, projectId: string, given: Pick<Given, 'from' | 'to'>) {
  await readHorizon(db, projectId)
  const { today, ...now } = await nowOf(db, projectId)
  const { from, to } = daysOf(given, today)
  return { today, from, to, fields: { from, to: addDays(to, -1), ...now } }
}

/** Reads the days that were given, or throws a 400. */
export function readDays(given: Pick<Given, 'from' | 'to'>): void {
  for (const name of ['from', 'to'] as const) if (given[name] !== undefined) readDay(name, given[name])
  if (given.from !== undefined && given.to !== undefined) checkDays(given.from, given.to)
}

function checkDays(from: string, last: string): void {
  if (from > last) throw invalidParameter(`from must not be after to, got ${from} and ${last}.`)
  if ((Date.parse(last) - Date.parse(from)) / DAY_MS >= MAX_DAYS)
    throw invalidParameter(`from and to must include at most ${MAX_DAYS} days.`)
}

function splitBy(by: string | undefined): Pick<Question, 'period' | 'dimension'> {
  const words = by?.split(',') ?? []
  const period = PERIODS.find((one) => words.includes(one))
  const dimension = words.find((word) => DIMENSIONS.includes(word))
  if (words.length !== [period, dimension].filter(Boolean).length)
    throw invalidParameter(`by must be one of ${PERIODS.join(', ')}, one of ${DIMENSIONS.join(', ')}, or both.`)
  return { ...(period && { period }), ...(dimension && { dimension }) }
}
