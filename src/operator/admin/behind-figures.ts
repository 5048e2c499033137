// What is behind figures: the sessions and payments of a project, and the declined payments of an organization.
import { ACCOUNT, IS_TEST } from '../../core/records/payment-account.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { ANSWERS_OF_REPLY } from '../../data/figures/answers.ts'
import { isFirstDecline, paidAttempt } from '../../data/figures/declines.ts'
import { PROVIDER } from '../../data/figures/sales.ts'
import { invalidParameter } from '../../lib/errors.ts'
import { DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import { isUuid } from '../../lib/ids.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import {
  dayFilters,
  dayFiltersOf,
  firstVisitFilters,
  isPreview,
  ofPerson,
  testFilter,
  valueFilter,
  visitFilters,
} from './day-filters.ts'
import { equals, type ListDeclaration, list, ofOrganization, ofProject } from './list.ts'

const PAID_ATTEMPT = '^(any|paid|none|[1-9][0-9]{0,5})$'

function readPaidAttempt(text: string): string {
  if (new RegExp(PAID_ATTEMPT).test(text)) return text
  throw invalidParameter('paid_attempt must be any, paid, none, or the number of an attempt, such as 2.')
}

const visited = (what: string, name: string) => text(what, { sql: `s.visit_${name}`, nullable: true })

const session = shape('SessionSummary', 's', {
  id: text('Identifier.'),
  created_at: instant('When it began.'),
  profile_id: text('The person.'),
  email: text('E-mail address of the person.', { sql: ofPerson('s', 'email'), nullable: true }),
  funnel_id: text('Funnel.', { nullable: true }),
  country: text('Country.', { nullable: true }),
  locale: text('Language.', { nullable: true }),
  source: visited('Source of the visit.', 'source'),
  campaign: visited('Campaign of the visit.', 'campaign'),
  device: visited('Kind of device.', 'device'),
  experiment_id: text('Experiment.', { nullable: true }),
  variant: visited('Variant of the experiment.', 'variant'),
})

const payment = shape('PaymentSummary', 't', {
  id: text('Identifier.'),
  created_at: instant('When it was paid.'),
  profile_id: text('The person.'),
  email: text('E-mail address of the person.', { sql: ofPerson('t', 'email'), nullable: true }),
  price: integer('Amount in minor units.'),
  currency: text('Currency.'),
  product_id: text('Product of the subscription.', { sql: 'u.product_id', nullable: true }),
  payment_provider: text('Payment provider of the subscription or, without one, of the payment.', {
    sql: PROVIDER,
    nullable: true,
  }),
  subscription_id: text('Subscription.', { nullable: true }),
  funnel_id: text('Funnel.', { nullable: true }),
  country: text('Country of the person.', { sql: ofPerson('t', 'country'), nullable: true }),
  sandbox: boolean('Whether it was in a sandbox.'),
})

const declined = shape('DeclinedPayment', 'r', {
  trx_id: text('Row of the payment report.'),
  order_id: text('Order.'),
  external_id: text('The customer.'),
  profile_id: text('The person.', { sql: 'c.profile_id', nullable: true }),
  project_id: text('Project.', { sql: 'c.project_id' }),
  amount: decimal('Amount in major units.'),
  currency_code: text('Currency.'),
  paid_at: instant('When it was declined, according to the provider.', { sql: paidAt('r') }),
  psp: text('Payment provider.'),
  psp_reason_code: text('The provider’s code for the reason.', { nullable: true }),
  psp_reason_message: text('The provider’s reason.', { nullable: true }),
  psp_reason_decline_type: text('`soft` or `hard`.', { nullable: true }),
})

// Ids have no spaces.
const part = (placeholder: string, n: number) => `split_part(${placeholder}, ' ', ${n})`

/** By an answer of `figures answers`: the ids of the screen and the question, the kind and the value, separated by spaces. */
const answerFilter: NonNullable<ListDeclaration['filters']>[string] = {
  schema: Type.String({
    description:
      'Only those with this answer: the ids of the screen and of the question, the kind and the value, as in `screen question value 25-34` or `screen question written`.',
    maxLength: 400,
  }),
  where: (value) => `exists (
    select from profiles p join replies r on r.project_id = s.project_id and r.session_id = s.id
      and r.screen_id = ${part(value, 1)} and r.element_id = ${part(value, 2)}
    cross join lateral (${ANSWERS_OF_REPLY}) answer
    where p.project_id = s.project_id and p.id = s.profile_id and answer.kind = ${part(value, 3)}
      and answer.value = coalesce(substring(${value} from '^[^ ]* [^ ]* [^ ]* (.*)$'), ''))`,
}

const firstFilter = (description: string, isFirst: string): NonNullable<ListDeclaration['filters']>[string] => ({
  schema: Type.Boolean({ description }),
  where: (value) => `(not ${value}::boolean or ${isFirst})`,
})

export const behindFigures = [
  list({
    id: 'listProjectSessions',
    right: 'people',
    command: 'session list',
    path: '/projects/:project_id/sessions',
    tag: 'Profiles',
    summary: 'List sessions',
    shape: session,
    from: 'sessions s',
    at: 's.created_at',
    key: 's.id',
    ...ofProject('s'),
    filters: {
      ...dayFilters('s.created_at'),
      funnel: valueFilter('s.funnel_id', 'Only those of this funnel.'),
      country: valueFilter('s.country', 'Only those from this country.'),
      locale: valueFilter('s.locale', 'Only those in this language.'),
      experiment: valueFilter('s.experiment_id', 'Only those in this experiment.'),
      answer: answerFilter,
      first: firstFilter(
        'Only the first session of each person: `figures show people` counts them.',
        `not exists (select from sessions e where e.project_id = s.project_id and e.profile_id = s.profile_id
          and (e.created_at, e.id) < (s.created_at, s.id))`,
      ),
      test: testFilter(isPreview('s')),
      ...visitFilters('s'),
    },
  }),
  list({
    id: 'listProjectPayments',
    right: 'people',
    command: 'payment list',
    path: '/projects/:project_id/payments',
    tag: 'Profiles',
    summary: 'List payments',
    description: 'The transactions of the project: what revenue is made of, with the person who paid.',
    shape: payment,
    from: 'transactions t left join subscriptions u on u.project_id = t.project_id and u.id = t.subscription_id',
    at: 't.created_at',
    key: 't.id',
    ...ofProject('t'),
    filters: {
      ...dayFilters('t.created_at'),
      product: valueFilter('u.product_id', 'Only those for this product.'),
      funnel: valueFilter('t.funnel_id', 'Only those from this funnel.'),
      country: valueFilter(ofPerson('t', 'country'), 'Only those of people from this country.'),
      provider: valueFilter(PROVIDER, 'Only those at this payment provider.'),
      subscription: equals('t.subscription_id', 'Only those of this subscription.'),
      currency: {
        schema: Type.String({ description: 'Only those in this currency.' }),
        where: (value) => `t.currency = upper(${value})`,
      },
      first: firstFilter(
        'Only the first payment of each person, without free ones: `figures show customers` counts them, and first custom charges.',
        `t.price > 0 and not exists (select from transactions e where e.project_id = t.project_id
          and e.profile_id = t.profile_id and e.price > 0 and (e.created_at, e.id) < (t.created_at, t.id))`,
      ),
      test: testFilter(`(t.sandbox or ${isPreview('t')})`),
      ...firstVisitFilters('t.project_id', 't.profile_id'),
    },
  }),
  list({
    id: 'listDeclinedPayments',
    right: 'people',
    command: 'payment declined',
    path: '/organizations/:organization_id/declined-payments',
    tag: 'Orders',
    summary: 'List declined payments of the payment report',
    description: 'Renewals and custom charges that were declined, including imported ones, with the reason.',
    shape: declined,
    reach: { organization: 'c.organization_id', project: 'c.project_id' },
    from: `report_transactions r join customers c using (organization_id, external_id) ${ACCOUNT}`,
    at: paidAt('r'),
    key: 'r.trx_id',
    isKey: isUuid,
    ...ofOrganization('r', `r.psp_transaction_type = 'sale' and r.status = 'failed'`),
    filters: {
      project_id: equals('c.project_id', 'Only those of this project.'),
      ...dayFiltersOf('c.project_id', paidAt('r')),
      reason: valueFilter(
        'left(coalesce(r.psp_reason_code, r.psp_reason_type), 256)',
        'Only those with this reason code, or this type of reason if there is no code.',
      ),
      decline: valueFilter('r.psp_reason_decline_type', 'Only `soft` or `hard` declines.'),
      provider: equals('r.psp', 'Only those at this payment provider.'),
      paid_attempt: {
        schema: Type.String({
          description:
            'Only first declines, as `figures show first_declines` counts them: `any`; those paid at this attempt within 30 days, such as `2`; `paid` at any attempt; or `none`, those not paid.',
          [DECLARED_ONLY]: { pattern: PAID_ATTEMPT },
        }),
        param: readPaidAttempt,
        where: (value) =>
          `${isFirstDecline} and (${value} in ('any', ${paidAttempt}) or ${value} = 'paid' and ${paidAttempt} <> 'none')`,
      },
      test: testFilter(IS_TEST, 'sandbox payments'),
    },
  }),
] as const
