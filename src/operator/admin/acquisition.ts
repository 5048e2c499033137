// What customers cost and what they are worth: spend with its return, and the lifetime value of cohorts.

import { FILTERS, VISITED_BY } from '../../data/figures/filters.ts'
import { COHORTS, LIFETIME_BY, readLifetime, SINCE } from '../../data/figures/lifetime.ts'
import { BY, RETURN_DAYS, readReturns } from '../../data/figures/returns.ts'
import { DAY_MS } from '../../lib/days.ts'
import { invalidParameter } from '../../lib/errors.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { daysFields, daysIn, daysQuery, filtersBy, filtersOf, readDays, TAG, testQuery } from './figures-query.ts'
import { reading } from './operation.ts'

const nullable = (description: string) => Type.OrNull(Type.Number(), description)
const choice = <const N extends string>(names: readonly N[], description: string): Schema<N> => ({
  type: 'string',
  enum: names,
  description,
})
const unvalued = (description: string) =>
  Type.Array(
    Type.Named('Unvalued', {
      currency: Type.String({ description: 'ISO 4217 code.' }),
      amount: Type.Number({ description: 'The amount.' }),
    }),
    { description },
  )
const withoutUsd = Type.Integer({
  description:
    'Payments, refunds and chargebacks of these people that are left out, because they have no value in the reporting currency.',
})
const eachDay = RETURN_DAYS.join(', ')

const row = Type.Named('Return', {
  key: Type.OrNull(Type.String(), 'Value of `by`; empty: none; null: all together.'),
  spend: nullable(
    'What was spent on these days; null of one country or variant, which money for advertising is not divided by.',
  ),
  spend_without_usd: Type.Integer({
    description: 'Amounts left out of `spend`, because they have no value in the reporting currency.',
  }),
  sessions: Type.Integer({ description: 'Sessions.' }),
  people: Type.Integer({ description: 'People whose first session it was.' }),
  customers: Type.Integer({ description: 'People whose first payment it was.' }),
  cac: nullable('Cost of a customer: spend divided by customers; null without one of them.'),
  returned: Type.Array(Type.Number(), {
    description: `Net revenue up to days ${eachDay} after their first session, of the people whose first session it was.`,
  }),
  roas: Type.Array(Type.OrNull(Type.Number()), {
    description: `Return on ad spend: the same divided by spend, at days ${eachDay}.`,
  }),
  payback_days: nullable(
    'The day after the first session by which the spend came back; null: not yet, or not within 180 days.',
  ),
  revenue_per_new_person: nullable(
    'Gross revenue on these days of the people whose first session it was, for each of them.',
  ),
  without_usd: withoutUsd,
  returned_unvalued: unvalued(`What \`returned\` leaves out up to day ${RETURN_DAYS.at(-1)}, in each currency.`),
  revenue_unvalued: unvalued('What the revenue of `revenue_per_new_person` leaves out, in each currency.'),
})

const acquisition = reading({
  id: 'getAcquisition',
  right: 'figures',
  command: 'figures acquisition',
  path: '/projects/:project_id/figures/acquisition',
  tag: TAG,
  summary: 'Get what advertising cost and brought back',
  description: 'By the first session of each person. docs/figures.md defines each figure.',
  query: Type.Object({
    ...daysQuery,
    by: Type.Optional(choice(BY, 'The dimension of the rows; by default one row for all.')),
    ...filtersBy(...VISITED_BY),
    ...testQuery,
  }),
  response: Type.Named('Acquisition', {
    ...daysFields,
    days_since: Type.Integer({
      description: 'Whole days since the last day: returns at a later day are not complete.',
    }),
    data: Type.Array(row, { description: 'Those with the most spent first.' }),
  }),
  shown: ({ data, ...response }) => ({
    ...response,
    data: (data as Record<string, unknown>[]).map(
      ({ returned: _returned, roas, returned_unvalued: _left, revenue_unvalued: _out, ...one }) => ({
        ...one,
        ...Object.fromEntries((roas as unknown[]).map((value, n) => [`roas ${RETURN_DAYS[n]}`, value])),
      }),
    ),
  }),
  checkInput: ({ query }) => readDays(query),
  async run({ db }, { params, query }) {
    const { by, test = false } = query
    const { today, from, to, fields } = await daysIn(db, params.project_id, query)
    const data = await readReturns(db, {
      projects: [params.project_id],
      from,
      to,
      ...(by && { by }),
      filters: filtersOf(query),
      test,
    })
    return { ...fields, days_since: daysSince(to, today), data }
  },
})

/** The whole days that are over since the day before `to`. */
const daysSince = (to: string, today: string) => Math.max(0, (Date.parse(today) - Date.parse(to)) / DAY_MS)

const lifetimeRow = Type.Named('Lifetime', {
  cohort: Type.OrNull(Type.String(), 'First day of the cohort; null: all of the period.'),
  key: Type.OrNull(Type.String(), 'Value of `by`.'),
  people: Type.Integer({ description: 'People in the cohort.' }),
  worth: Type.Array(Type.OrNull(Type.Number()), {
    description: 'Net revenue for each of them up to the end of each month since they came.',
  }),
  complete: Type.Integer({ description: 'How many of these months are over for everybody in the cohort.' }),
  without_usd: withoutUsd,
  unvalued: Type.Array(
    Type.Named('UnvaluedMonths', {
      currency: Type.String({ description: 'ISO 4217 code.' }),
      amounts: Type.Array(Type.Number(), {
        description: 'What is left out up to the end of each month, of all of them.',
      }),
    }),
    { description: 'What the sums behind `worth` leave out of each currency.' },
  ),
})

const lifetime = reading({
  id: 'getLifetime',
  right: 'figures',
  command: 'figures ltv',
  path: '/projects/:project_id/figures/lifetime',
  tag: TAG,
  summary: 'Get what people are worth, by cohort',
  description:
    'Cumulative net revenue for each person, by the whole months since the first session or the first payment. docs/figures.md explains it.',
  query: Type.Object({
    ...daysQuery,
    since: Type.Optional({
      ...choice(SINCE, 'What a person begins with: the first session, or the first payment.'),
      default: 'session',
    }),
    cohort: Type.Optional({ ...choice(COHORTS, 'The length of a cohort.'), default: 'month' }),
    by: Type.Optional(
      choice(LIFETIME_BY, 'One row for each value instead of each cohort. `product` needs `since=payment`.'),
    ),
    value: Type.Optional(
      Type.String({ description: 'Only people with this value of `by`, one row for each cohort.', maxLength: 256 }),
    ),
    ...filtersBy(...FILTERS),
    ...testQuery,
  }),
  response: Type.Named('LifetimeOut', {
    ...daysFields,
    data: Type.Array(lifetimeRow, { description: 'The oldest cohort first, or the value with the most people.' }),
  }),
  shown: ({ data, ...response }) => ({
    ...response,
    data: (data as Record<string, unknown>[]).map(({ worth, complete: _complete, unvalued: _left, ...one }) => ({
      ...one,
      ...Object.fromEntries((worth as unknown[]).map((value, n) => [`month ${n}`, value])),
    })),
  }),
  checkInput({ query }) {
    const { by, value, product, since = 'session' } = query
    readDays(query)
    if (value !== undefined && by === undefined)
      throw invalidParameter('value needs by, the dimension that it is a value of.')
    if ((by === 'product' || product !== undefined) && since === 'session')
      throw invalidParameter(
        `${by === 'product' ? 'by: ' : ''}product is that of the first payment, so it needs since=payment.`,
      )
  },
  async run({ db }, { params, query }) {
    const { by, value, since = 'session', cohort = 'month', test = false } = query
    const { today, from, to, fields } = await daysIn(db, params.project_id, query)
    const data = await readLifetime(db, {
      projects: [params.project_id],
      from,
      to,
      since,
      cohort,
      ...(by && { by }),
      ...(value !== undefined && { value }),
      filters: filtersOf(query),
      test,
      today,
    })
    return { ...fields, data }
  },
})

export const acquisitions = [acquisition, lifetime] as const
