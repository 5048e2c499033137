// Figures of a project or an organization: metrics by period and dimension, beside an earlier period; and their rebuild.
import type { App } from '../app.ts'
import { rebuildFigures } from '../figures/follow.ts'
import { comparedDays, type Figure, figuresAsOf, readFigures } from '../figures/read.ts'
import { addDays, DAY_MS } from '../lib/days.ts'
import { Type } from '../lib/shape/schema.ts'
import { instantFromPg } from '../lib/time.ts'
import { requireOrganization, requireProject } from './exist.ts'
import { type Asked, query, questionOf, readQuery } from './figures-query.ts'
import type { Act, Operation, Reading } from './operation.ts'

const TAG = 'Figures'
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

/** The answer of the operation for these projects. */
async function answerFigures({ db }: Pick<App, 'db'>, projects: readonly string[], asked: Asked) {
  const [now] = await db.query(`select to_char(db_clock() at time zone 'UTC', 'YYYY-MM-DD') as today`)
  const question = questionOf(asked, projects, now!.today!)
  const days = asked.compare && comparedDays(question, asked.compare)
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
  async run(app, { params, query }) {
    const asked = readQuery(query)
    await requireProject(app.db.query, params.project_id!)
    return answerFigures(app, [params.project_id!], asked)
  },
}

const ofOrganization: Reading = {
  ...about,
  id: 'getOrganizationFigures',
  path: '/organizations/:organization_id/figures',
  summary: 'Get figures of an organization, the sums of its projects',
  async run(app, { params, query }) {
    const asked = readQuery(query)
    await requireOrganization(app.db.query, params.organization_id!)
    const rows = await app.db.query('select id from projects where organization_id = $1', [params.organization_id!])
    return answerFigures(
      app,
      rows.map(({ id }) => id!),
      asked,
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
