// The results of experiments, with what can be said about them.
import { readExperiments } from '../../data/figures/verdicts.ts'
import { invalidParameter } from '../../lib/errors.ts'
import { Type } from '../../lib/shape/schema.ts'
import { shorten } from '../../lib/text.ts'
import { daysFields, daysIn, daysQuery, filtersBy, filtersOf, readDays, TAG } from './figures-query.ts'
import { reading } from './operation.ts'

const integer = (description: string) => Type.Integer({ description })
const nullable = (description: string) => Type.OrNull(Type.Number(), description)
const difference = (what: string, test: string) =>
  Type.OrNull(
    Type.Object(
      {
        difference: Type.Number({ description: 'The value of the variant less that of the control.' }),
        low: Type.Number({ description: 'Lower bound of the 95 % interval.' }),
        high: Type.Number({ description: 'Upper bound of the 95 % interval.' }),
        p: Type.Number({ description: `Two-sided, by ${test}.` }),
      },
      { additionalProperties: false },
    ),
    `Difference of the ${what}; null where nothing can be said.`,
  )
const SHARES = 'the z-test of two proportions'

const variant = Type.Named('VariantResult', {
  variant: Type.String({ description: 'Variant of their first session in the experiment; empty: none.' }),
  people: integer('People.'),
  payers: integer('Of these, people who paid within 90 days.'),
  conversion: nullable('Payers divided by people.'),
  revenue: Type.Number({ description: 'Net revenue within 90 days.' }),
  revenue_per_person: nullable('The same for each person.'),
  without_usd: integer(
    'Payments, refunds and chargebacks left out of the revenue, because they have no value in the reporting currency.',
  ),
  trials: integer('People who began a trial.'),
  trials_paid: integer('Of these, people who paid for it afterwards.'),
  refunded: integer('Of the payers, people who were refunded.'),
  against_control: Type.OrNull(
    Type.Named('AgainstControl', {
      conversion: difference('conversion', SHARES),
      revenue_per_person: difference('revenue for each person', 'Welch’s t-test'),
      trial_conversion: difference('share of trials that were paid for', SHARES),
      refund_rate: difference('share of payers who were refunded', SHARES),
      power: nullable('Probability of finding such a difference of the conversion with so many people.'),
      people_needed: nullable('People that this variant still needs to find it with a probability of 80 %.'),
      verdict: Type.String({
        enum: ['better', 'worse', 'none'],
        description: 'Whether the conversion differs: `none` is no verdict yet.',
      }),
    }),
    'Compared with the control; null for the control itself.',
  ),
})

const result = Type.Named('ExperimentResult', {
  experiment_id: Type.String({ description: 'Experiment.' }),
  title: Type.OrNull(Type.String(), 'Title.'),
  enabled: Type.Boolean({ description: 'Whether it is running.' }),
  control: Type.OrNull(Type.String(), 'The variant with which the others are compared.'),
  people: integer('People in the experiment.'),
  split_p: nullable(
    'Probability of these sizes, or less equal ones, if each variant has the same chance (chi-square test).',
  ),
  wrong_split: Type.Boolean({ description: 'Whether that is below 0.001: then there is no verdict.' }),
  variants: Type.Array(variant, { description: 'By their names.' }),
})

const getExperiments = reading({
  id: 'getExperimentResults',
  right: 'figures',
  command: 'figures experiments',
  path: '/projects/:project_id/figures/experiments',
  tag: TAG,
  summary: 'Get the results of experiments',
  description:
    'Of the people whose first session in the experiment was on these days. docs/figures.md explains the tests.',
  query: Type.Object({
    ...daysQuery,
    control: Type.Optional(
      Type.String({ description: 'The control; by default `control`, or the first by name.', maxLength: 100 }),
    ),
    ...filtersBy('funnel', 'source', 'campaign', 'country'),
    test: Type.Optional(Type.Boolean({ default: false, description: 'Whether preview data is included.' })),
  }),
  response: Type.Named('ExperimentResults', {
    ...daysFields,
    data: Type.Array(result, { description: 'All experiments of the project, the newest first.' }),
  }),
  shown: ({ data, ...response }) => ({ ...response, data: (data as Result[]).flatMap(linesOf) }),
  checkInput: ({ query }) => readDays(query),
  async run({ db }, { params, query }) {
    const { control, test = false } = query
    const { from, to, fields } = await daysIn(db, params.project_id, query)
    const data = await readExperiments(db, params.project_id, {
      from,
      to,
      test,
      filters: filtersOf(query),
      ...(control !== undefined && { control }),
    })
    if (control !== undefined) requireVariant(control, data)
    return { ...fields, data }
  },
})

/** Throws a 400 for a control that no experiment has, if there is anything to compare: another one would be taken. */
function requireVariant(control: string, data: Result[]): void {
  const variants = [...new Set(data.flatMap((one) => one.variants.map(({ variant }) => variant)))].filter(Boolean)
  if (variants.length === 0 || variants.includes(control)) return
  const some = variants.slice(0, 10).join(', ')
  const sentence = `control must be a variant with people on these days, such as ${some}, got "${shorten(control, 64)}".`
  throw invalidParameter(sentence)
}

type Result = Awaited<ReturnType<typeof readExperiments>>[number]

/** A line for each variant. */
const linesOf = ({ experiment_id, control, variants }: Result): object[] =>
  variants.map((one) => ({
    experiment_id,
    variant: one.variant,
    people: one.people,
    payers: one.payers,
    conversion: one.conversion,
    revenue_per_person: one.revenue_per_person,
    p: one.against_control?.conversion?.p ?? null,
    verdict: one.variant === control ? 'control' : (one.against_control?.verdict ?? 'none'),
  }))

export const experimentResults = [getExperiments] as const
