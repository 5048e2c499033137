// Figures of a project or an organization: metrics by period and dimension, compared with an earlier period; and their rebuild.
import type { App } from '../../app.ts'
import { readHorizon } from '../../core/lists/horizon.ts'
import { readOrganizationHorizon } from '../../core/lists/organization-horizon.ts'
import { figuresAsOf } from '../../data/figures/as-of.ts'
import { comparedDays, withPrevious } from '../../data/figures/compare.ts'
import { failedDays } from '../../data/figures/failures.ts'
import { rebuildFigures } from '../../data/figures/follow.ts'
import { readFigures } from '../../data/figures/read.ts'
import { addDays } from '../../lib/days.ts'
import type { Param } from '../../lib/pg/types.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { instantFromPg } from '../../lib/time.ts'
import { type FiguresRequest, query, questionOf, readQuery, TAG, todayOf } from './figures-query.ts'
import { act, type Input, reading } from './operation.ts'
import { reachCondition } from './reach.ts'

const values = { type: 'object', additionalProperties: { type: ['number', 'null'] } }
type Values = Schema<Record<string, number | null>>

const failedDay = Type.Named('FailedDay', {
  project_id: Type.String({ description: 'The project.' }),
  day: Type.String({ description: 'The day.' }),
  code: Type.String({ description: 'SQLSTATE of the error, which is in the log of the server.' }),
})

const response = Type.Named('Figures', {
  from: Type.String({ description: 'The first day.' }),
  to: Type.String({ description: 'The last day.' }),
  time_zone: Type.OrNull(
    Type.String(),
    'Time zone of the days; null if the projects have several: each has its own days.',
  ),
  compared_with: Type.OrNull(
    Type.Object({ from: Type.String(), to: Type.String() }, { additionalProperties: false }),
    'The first and the last day of the `previous` values.',
  ),
  as_of: Type.OrNull(
    Type.String({ format: 'date-time' }),
    'Every change before this instant is counted, except on the days in `missing`; null until the records were first counted, and while they are counted again because the time zone or the currency was changed.',
  ),
  missing: Type.Array(failedDay, {
    description: 'The newest hundred days that cannot be computed: their changes are not counted, whatever `as_of` is.',
  }),
  data: Type.Array(
    Type.Named('Figure', {
      period: Type.OrNull(Type.String(), 'First day of the period.'),
      key: Type.OrNull(Type.String(), 'Value of the dimension; empty where records have none.'),
      currency: Type.OrNull(
        Type.String(),
        'Currency of the money among the values: the reporting currency, with `money=own` that of the amounts.',
      ),
      values: {
        ...values,
        description: 'Value of each metric: money in major units, ratios from 0 to 1.',
      } as Values,
      previous: Type.Optional({ ...values, description: 'The same values in the period of comparison.' } as Values),
    }),
    {
      description:
        'Ordered by period and key. Items without records are left out, with `compare` those without records in both periods.',
    },
  ),
})

/**
 * The response of the operation for these projects, whose horizon has just been advanced. `as_of` is read before the figures,
 * so that no change before it can be missing in them.
 */
async function figuresOf({ db }: Pick<App, 'db'>, projects: readonly string[], request: FiguresRequest) {
  const asOf = await figuresAsOf(db, projects)
  const { today, time_zone } = await todayOf(db, projects)
  const question = questionOf(request, projects, today)
  const days = request.compare && comparedDays(question, request.compare)
  const [missing, figures, before] = await Promise.all([
    failedDays(db, projects),
    readFigures(db, question),
    days ? readFigures(db, { ...question, ...days }) : undefined,
  ])
  return {
    from: question.from,
    to: addDays(question.to, -1),
    time_zone,
    compared_with: days ? { ...days, to: addDays(days.to, -1) } : null,
    as_of: asOf && instantFromPg(asOf),
    missing,
    data: before ? withPrevious(figures, before, question, days!) : figures,
  }
}

/** Each figure in a separate column; without `missing` days, the column of the key and others that are empty if there are none. */
function shown({ missing, data, ...response }: Record<string, unknown>): Record<string, unknown> {
  const rows = (data as Record<string, object | null>[]).map(({ values, previous, ...row }) => ({
    ...row,
    ...values,
    ...Object.fromEntries(Object.entries(previous ?? {}).map(([name, value]) => [`${name} before`, value])),
  }))
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const used = names.filter((name) => rows.some((row) => (row as Record<string, unknown>)[name] != null))
  const filled = rows.map((row) =>
    Object.fromEntries(used.map((name) => [name, (row as Record<string, unknown>)[name] ?? null])),
  )
  return { ...response, ...((missing as unknown[]).length > 0 && { missing }), data: filled }
}

const about = {
  method: 'GET' as const,
  tag: TAG,
  command: 'figures show',
  description:
    'Sums by day, stored with the records: docs/figures.md defines each metric. Several metrics may be requested at once; money and counts may then be in separate items, which differ in `currency`.',
  query,
  response,
  shown,
  checkInput: ({ query }: Pick<Input, 'query'>) => void readQuery(query),
}

const ofProject = reading({
  ...about,
  id: 'getProjectFigures',
  right: 'figures',
  path: '/projects/:project_id/figures',
  summary: 'Get figures of a project',
  async run(app, { params, query }) {
    const request = readQuery(query)
    await readHorizon(app.db, params.project_id)
    return figuresOf(app, [params.project_id], request)
  },
})

const ofOrganization = reading({
  ...about,
  id: 'getOrganizationFigures',
  right: 'figures',
  narrows: true,
  path: '/organizations/:organization_id/figures',
  summary: 'Get figures of an organization, the sums of its projects',
  async run(app, { params, query, access }) {
    const request = readQuery(query)
    await readOrganizationHorizon(app.db, params.organization_id)
    const values: Param[] = [params.organization_id]
    const within = reachCondition(access.reach, { organization: 'organization_id', project: 'id' }, values) ?? 'true'
    const rows = await app.db.query(`select id from projects where organization_id = $1 and ${within}`, values)
    return figuresOf(
      app,
      rows.map(({ id }) => id!),
      request,
    )
  },
})

const rebuild = act({
  id: 'rebuildFigures',
  right: 'imports',
  command: 'figures rebuild',
  method: 'POST',
  path: '/projects/:project_id/figures/rebuild',
  tag: TAG,
  summary: 'Compute all figures of a project again from its records',
  description: 'For a project whose figures `tundish doctor` finds wrong. Figures can be read while it runs.',
  response: Type.Named('FiguresRebuilt', {
    days: Type.Integer({ description: 'Number of days that have figures.' }),
    missing: Type.Array(failedDay, { description: 'The newest hundred days that cannot be computed.' }),
  }),
  entry: ({ params }) => ({ action: 'figures.rebuilt', target: `project ${params.project_id}` }),
  async act({ db }, { params }) {
    const days = await rebuildFigures(db, params.project_id)
    return { days, missing: await failedDays(db, [params.project_id]) }
  },
})

export const figures = [ofProject, ofOrganization, rebuild] as const
