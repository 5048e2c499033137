// Figures of a project or an organization: metrics by period and dimension, beside an earlier period; and their rebuild.

import type { App } from '../app.ts'
import { rebuildFigures } from '../figures/follow.ts'
import { type MetricName, metricNames, metrics } from '../figures/metrics.ts'
import { comparedDays, type Figure, figuresAsOf, type Question, readFigures } from '../figures/read.ts'
import { ApiError } from '../lib/errors.ts'
import { Type } from '../lib/shape/schema.ts'
import { instantFromPg } from '../lib/time.ts'
import { requireOrganization, requireProject } from './exist.ts'
import type { Act, Operation, Reading } from './operation.ts'

const TAG = 'Figures'
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
  'kind',
  'decline',
  'reason',
  'cohort',
]
const PERIODS = ['day', 'week', 'month']
// Ten years of days.
const MOST_DAYS = 3660
const MOST_METRICS = 20

const day = (description: string) => Type.String({ description, pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' })

const query = Type.Object({
  metric: Type.String({
    description: `One metric, or several separated by commas: ${metricNames.map((name) => `\`${name}\``).join(', ')}.`,
    maxLength: 1000,
  }),
  from: Type.Optional(day('The first day, in UTC. Left out: 30 days before `to`.')),
  to: Type.Optional(day('The day after the last. Left out: tomorrow.')),
  by: Type.Optional(
    Type.String({
      description: `A period (\`day\`, \`week\`, \`month\`), a dimension (${DIMENSIONS.map((name) => `\`${name}\``).join(', ')}), or both separated by a comma.`,
      maxLength: 40,
    }),
  ),
  compare: Type.Optional({
    type: 'string',
    enum: ['previous', 'year'],
    description: 'Adds the values of as many days before, or of the same days a year earlier.',
  }),
  funnel: Type.Optional(Type.String({ description: 'Only of this funnel.', maxLength: 64 })),
  money: Type.Optional({
    type: 'string',
    enum: ['usd', 'own'],
    default: 'usd',
    description: '`usd`: in US dollars, as far as that value is known; `own`: in each currency of its own.',
  }),
  test: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether sandbox and preview data is counted too.' }),
  ),
})

const values = { type: 'object', additionalProperties: { type: ['number', 'null'] } }

const answer = Type.Object(
  {
    from: Type.String({ description: 'The first day.' }),
    to: Type.String({ description: 'The day after the last.' }),
    compared_with: Type.Union(
      [Type.Object({ from: Type.String(), to: Type.String() }, { additionalProperties: false }), Type.Null()],
      { description: 'The days of `previous`.' },
    ),
    as_of: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'Every change before this instant is counted; null before the first look at the records.',
    }),
    data: Type.Array(
      Type.Object(
        {
          period: Type.Union([Type.String(), Type.Null()], { description: 'First day of the period.' }),
          key: Type.Union([Type.String(), Type.Null()], {
            description: 'Value of the dimension; empty where records have none.',
          }),
          currency: Type.Union([Type.String(), Type.Null()], {
            description: 'Currency of the money among the values.',
          }),
          values: { ...values, description: 'By metric. Money in major units, a ratio from 0 to 1.' },
          previous: Type.Optional({ ...values, description: 'The same of the days it is compared with.' }),
        },
        { title: 'Figure', additionalProperties: false },
      ),
      { description: 'In the order of periods and keys; what has no records is left out.' },
    ),
  },
  { title: 'Figures', additionalProperties: false },
)

interface Given {
  metric: string
  from?: string
  to?: string
  by?: string
  compare?: 'previous' | 'year'
  funnel?: string
  money?: 'usd' | 'own'
  test?: boolean
}

/** Reads the query of the operation, or throws what is wrong with it. */
function questionOf(given: Given, projects: readonly string[], today: string): Question {
  const names = given.metric.split(',').filter(Boolean)
  const unknown = names.find((name) => !Object.hasOwn(metrics, name))
  if (unknown !== undefined || names.length === 0 || names.length > MOST_METRICS)
    throw new ApiError(
      400,
      'invalid_value',
      `metric must be 1 to ${MOST_METRICS} of ${metricNames.join(', ')}, got "${given.metric}".`,
    )
  const to = checkDay('to', given.to ?? addDays(today, 1))
  const from = checkDay('from', given.from ?? addDays(to, -30))
  if (from >= to) throw new ApiError(400, 'invalid_value', `from must be before to, got ${from} and ${to}.`)
  if ((Date.parse(to) - Date.parse(from)) / DAY_MS > MOST_DAYS)
    throw new ApiError(400, 'invalid_value', `from and to must be at most ${MOST_DAYS} days apart.`)
  return {
    projects,
    metrics: names as MetricName[],
    from,
    to,
    ...splitBy(given.by),
    ...(given.funnel !== undefined && { funnel: given.funnel }),
    money: given.money ?? 'usd',
    test: given.test ?? false,
  }
}

const DAY_MS = 86_400_000
const addDays = (text: string, days: number) => new Date(Date.parse(text) + days * DAY_MS).toISOString().slice(0, 10)

function checkDay(name: string, text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms) || addDays(text, 0) !== text)
    throw new ApiError(400, 'invalid_value', `${name} must be a day, got "${text}".`)
  return text
}

function splitBy(by: string | undefined): Pick<Question, 'period' | 'dimension'> {
  const words = by?.split(',') ?? []
  const period = words.find((word) => PERIODS.includes(word)) as Question['period']
  const dimension = words.find((word) => DIMENSIONS.includes(word))
  if (words.length !== [period, dimension].filter(Boolean).length)
    throw new ApiError(
      400,
      'invalid_value',
      `by must be one of ${PERIODS.join(', ')}, one of ${DIMENSIONS.join(', ')}, or both.`,
    )
  return { ...(period && { period }), ...(dimension && { dimension }) }
}

/** The answer of the operation for these projects. */
async function answerFigures({ db }: Pick<App, 'db'>, projects: readonly string[], given: Given) {
  const [now] = await db.query(`select to_char(db_clock() at time zone 'UTC', 'YYYY-MM-DD') as today`)
  const question = questionOf(given, projects, now!.today!)
  const days = given.compare && comparedDays(question, given.compare)
  const [asOf, figures, before] = await Promise.all([
    figuresAsOf(db, projects),
    readFigures(db, question),
    days ? readFigures(db, { ...question, ...days }) : undefined,
  ])
  return {
    from: question.from,
    to: question.to,
    compared_with: days ?? null,
    as_of: asOf && instantFromPg(asOf),
    data: before ? paired(figures, before, question.from, days!.from) : figures,
  }
}

/** Puts each figure beside the one of the period that lies as far behind the first day. */
function paired(figures: Figure[], before: Figure[], from: string, beforeFrom: string) {
  const shift = (Date.parse(from) - Date.parse(beforeFrom)) / DAY_MS
  const place = ({ period, key, currency }: Figure, days: number) =>
    JSON.stringify([period && addDays(period, days), key, currency])
  const earlier = new Map(before.map((figure) => [place(figure, shift), figure.values]))
  return figures.map((figure) => ({ ...figure, previous: earlier.get(place(figure, 0)) ?? {} }))
}

const about = {
  method: 'GET' as const,
  tag: TAG,
  command: 'figures show',
  description:
    'Sums over days, kept beside the records: docs/figures.md defines each metric. Several metrics come in one answer; money and counts of different kinds may come in items of their own, told apart by `currency`.',
  query,
  answer,
}

const ofProject: Reading = {
  ...about,
  id: 'getProjectFigures',
  path: '/projects/:project_id/figures',
  summary: 'Get figures of a project',
  async run(app, { params, query: given }) {
    await requireProject(app.db.query, params.project_id!)
    return answerFigures(app, [params.project_id!], given as unknown as Given)
  },
}

const ofOrganization: Reading = {
  ...about,
  id: 'getOrganizationFigures',
  path: '/organizations/:organization_id/figures',
  summary: 'Get figures of an organization, the sums of its projects',
  async run(app, { params, query: given }) {
    await requireOrganization(app.db.query, params.organization_id!)
    const rows = await app.db.query('select id from projects where organization_id = $1', [params.organization_id!])
    return answerFigures(
      app,
      rows.map(({ id }) => id!),
      given as unknown as Given,
    )
  },
}

const rebuild: Act = {
  id: 'rebuildFigures',
  command: 'figures rebuild',
  method: 'POST',
  path: '/projects/:project_id/figures/rebuild',
  tag: TAG,
  summary: 'Compute all figures of a project again from its records',
  description: 'For a project whose figures `tundish doctor` finds wrong. Figures are read while they are computed.',
  answer: Type.Object(
    { days: Type.Integer({ description: 'Days that have figures now.' }) },
    { title: 'FiguresRebuilt', additionalProperties: false },
  ),
  entry: ({ params }) => ({ action: 'figures.rebuilt', target: `project ${params.project_id}` }),
  async act({ db }, { params }) {
    await requireProject(db.query, params.project_id!)
    return { days: await rebuildFigures(db, params.project_id!) }
  },
}

export const figures: Operation[] = [ofProject, ofOrganization, rebuild]
