// Who leaves and who stays: churn by a dimension, and a forecast of renewals.

import { readHorizon } from '../../core/lists/horizon.ts'
import { CHURN_BY, readChurn } from '../../data/figures/churn.ts'
import { FILTERS } from '../../data/figures/filters.ts'
import { FORECAST_DAYS, readForecast } from '../../data/figures/forecast.ts'
import { addDays } from '../../lib/days.ts'
import { Type } from '../../lib/shape/schema.ts'
import {
  daysFields,
  daysIn,
  daysQuery,
  filtersBy,
  filtersOf,
  nowFields,
  nowOf,
  readDays,
  TAG,
  testQuery,
} from './figures-query.ts'
import { reading } from './operation.ts'

const count = (description: string) => Type.Integer({ description })
const number = (description: string) => Type.Number({ description })
const share = (description: string) => Type.OrNull(Type.Number(), description)
const orNull = (description: string) => Type.OrNull(Type.Integer(), description)

const row = Type.Named('Churn', {
  key: Type.OrNull(Type.String(), 'Value of `by`; empty: none; null: all together.'),
  paying: count('Paying subscriptions before the first day; by `reason`, all of them.'),
  ended: count('Paying subscriptions that were paused, or whose paid period ended.'),
  churn_rate: share('Ended divided by paying; null without paying ones.'),
  mrr_lost: number('MRR of the people who left.'),
  mrr_churn_rate: share('The same divided by the MRR before the first day.'),
  trials: orNull('Trials that began on these days; null by `reason`.'),
  converted: orNull('Those of them that were paid for since.'),
  trial_conversion: share('The share of trials that were paid for since.'),
})

const churn = reading({
  id: 'getChurn',
  right: 'figures',
  command: 'figures churn',
  path: '/projects/:project_id/figures/churn',
  tag: TAG,
  summary: 'Get who leaves, and which trials are paid for',
  description: 'Days in the future are left out. docs/figures.md defines each figure.',
  query: Type.Object({
    ...daysQuery,
    by: Type.Optional(
      Type.String({
        enum: CHURN_BY,
        description:
          'The dimension of the rows; by default one row for all. The `cohort` is the month of the first payment, of a trial that of its beginning.',
      }),
    ),
    ...filtersBy(...FILTERS),
    ...testQuery,
  }),
  response: Type.Named('ChurnOut', {
    ...daysFields,
    data: Type.Array(row, { description: 'Those with the most ends first.' }),
  }),
  checkInput: ({ query }) => readDays(query),
  async run({ db }, { params, query }) {
    const { by, test = false } = query
    const { today, from, to, fields } = await daysIn(db, params.project_id, query)
    const last = [to, addDays(today, 1)].sort()[0]!
    const days = { from: [from, last].sort()[0]!, to: last }
    const data = await readChurn(db, {
      projects: [params.project_id],
      ...days,
      ...(by && { by }),
      filters: filtersOf(query),
      test,
    })
    return { ...fields, data }
  },
})

const day = Type.Named('ForecastDay', {
  day: Type.String({ description: 'The day.' }),
  renewals: count('Active subscriptions whose period ends on this day.'),
  renewals_due: number('Their price.'),
  trials: count('Trials that end on this day.'),
  trials_due: number('The price of their subscriptions.'),
  expected: share('What is due times the rates; null if a rate is not known.'),
})

const forecast = reading({
  id: 'getRenewalForecast',
  right: 'figures',
  command: 'figures forecast',
  path: '/projects/:project_id/figures/forecast',
  tag: TAG,
  summary: 'Get a forecast of the renewals of the next thirty days',
  description: `A forecast, not a figure: what is due on each of the next ${FORECAST_DAYS} days, times the share that was paid in the last 90 days.`,
  query: Type.Object({ ...filtersBy(...FILTERS), ...testQuery }),
  response: Type.Named('RenewalForecast', {
    renewal_rate: share('Renewals divided by renewals and ended subscriptions, in the last 90 days.'),
    trial_rate: share('The share of the trials of the last 90 days that were paid for.'),
    without_usd: count('Payments that are due and left out, because they have no value in the reporting currency.'),
    ...nowFields,
    data: Type.Array(day, { description: 'The next days, from tomorrow.' }),
  }),
  async run({ db }, { params, query }) {
    const { test = false } = query
    await readHorizon(db, params.project_id)
    const { today, ...now } = await nowOf(db, params.project_id)
    const { days, ...rates } = await readForecast(db, params.project_id, today, { test, filters: filtersOf(query) })
    return { ...rates, ...now, data: days }
  },
})

export const churnOperations = [churn, forecast] as const
