// Subscriptions of a project, with the filters of the data API.

import { STATUSES } from '../../core/records/subscription.ts'
import { zoneOf } from '../../core/tenants/reporting.ts'
import { checkMoved, hasMoved, isOfCohort, MOVES, readMoved } from '../../data/figures/behind.ts'
import { DUE } from '../../data/figures/renewals.ts'
import { addDays, readDay, readMonth } from '../../lib/days.ts'
import { invalidParameter } from '../../lib/errors.ts'
import { DECLARED_ONLY, MONTH_PATTERN } from '../../lib/http/rule-phrases.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { foldQueriedEmail } from '../../lib/text.ts'
import { day, dayFilters, firstVisitFilters, isPreview, ofPerson, testFilter, valueFilter } from './day-filters.ts'
import { equals, equalsOrNone, list, ofProject } from './list.ts'

/** The fields of a subscription about its product and price, from the table `alias`. */
export const termsOf = (alias: string) => ({
  product_id: text('Product.'),
  product_name: text('Name of the product.', {
    sql: `(select d.name from products d where d.project_id = ${alias}.project_id and d.id = ${alias}.product_id)`,
  }),
  price: integer('Price in minor units.'),
  currency: text('Currency.'),
  billing_interval: text('Unit of the billing interval.'),
  billing_interval_count: integer('Number of these units.'),
  payment_provider: text('Payment provider.', { nullable: true }),
})

const subscription = shape('SubscriptionSummary', 's', {
  id: text('Identifier.'),
  status: text('State.', { enum: STATUSES }),
  renews: boolean('Whether it renews.'),
  created_at: instant('When it was created.'),
  ...termsOf('s'),
  funnel_id: text('Funnel.', { nullable: true }),
  period_ends_at: instant('End of the paid period.', { nullable: true }),
  profile_id: text('The person.'),
  email: text('E-mail address of the person.', { sql: ofPerson('s', 'email'), nullable: true }),
})

/** Throws a 400 for a text of another form, and for days that do not exist. */
function movedOf(text: string) {
  const { from, to, move } = readMoved(text)
  if (!MOVES.includes(move) || text.split(' ').length !== 3)
    throw invalidParameter(
      `moved must be two days and one of ${MOVES.join(', ')}, such as 2026-10-01 2026-10-31 churn.`,
    )
  return { from: readDay('moved', from), to: readDay('moved', to), move }
}

export const subscriptions = [
  list({
    id: 'listProjectSubscriptions',
    right: 'people',
    command: 'subscription list',
    path: '/projects/:project_id/subscriptions',
    tag: 'Profiles',
    summary: 'List subscriptions',
    shape: subscription,
    from: 'subscriptions s',
    at: 's.created_at',
    key: 's.id',
    ...ofProject('s'),
    async check(app, input) {
      const { moved } = input.query as { moved?: string }
      if (moved === undefined) return
      const { from, to, move } = movedOf(moved)
      await checkMoved(app.db, input.params.project_id!, move, { from, to: addDays(to, 1) })
    },
    filters: {
      status: equals('s.status', 'Only those in this state.', { enum: STATUSES }),
      product_id: equals('s.product_id', 'Only those of this product.'),
      funnel_id: equalsOrNone('s.funnel_id', 'Only those from this funnel.'),
      payment_provider: equals('s.payment_provider', 'Only those at this payment provider.'),
      profile_id: equals('s.profile_id', 'Only those of this person.'),
      id: equals('s.id', 'Only the one with this id.'),
      ...dayFilters('s.created_at'),
      country: valueFilter(ofPerson('s', 'country'), 'Only those of people from this country.'),
      ...firstVisitFilters('s.project_id', 's.profile_id'),
      first_payment: {
        schema: Type.String({
          description:
            'Only those first paid for in this month, such as `2026-10`, in the time zone of the project; without a stored payment, those created in it whose state says that they were paid for.',
          examples: ['2026-10'],
          [DECLARED_ONLY]: { pattern: MONTH_PATTERN },
        }),
        where: isOfCohort,
        param: (value: string) => readMonth('first_payment', value).slice(0, 7),
      },
      moved: {
        schema: Type.String({
          description:
            'Only those behind a figure of these days: the first and the last day and the movement of the MRR, or `changed` (any movement), `created`, `trial` (created as one), `converted` (of these trials), `started` (to be paid for), `ended` or `paying` (at the end of the last day), as in `2026-10-01 2026-10-31 churn`.',
          [DECLARED_ONLY]: { pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{4}-[0-9]{2}-[0-9]{2} (${MOVES.join('|')})$` },
        }),
        where: (value, given) => hasMoved(String(given), value),
        param: (value: string) => {
          movedOf(value)
          return value
        },
      },
      due: {
        schema: day(
          'Only those of which a payment is due on this day, in the time zone of the project, as the forecast has them.',
        ),
        where: (value) => `s.status in ${DUE} and s.renews
          and s.period_ends_at >= day_begins(${value}::date, ${zoneOf('$1')}) and s.period_ends_at < day_begins(${value}::date + 1, ${zoneOf('$1')})`,
        param: (value: string) => readDay('due', value),
      },
      reason: valueFilter('left(s.cancellation_reason, 256)', 'Only those that were cancelled for this reason.'),
      test: testFilter(`(s.sandbox or ${isPreview('s')})`),
      created_after: {
        schema: Type.String({ format: 'date-time', description: 'Only those created after this instant.' }),
        where: (value) => `s.created_at > ${value}`,
      },
      email: {
        schema: Type.String({ description: 'Only those of people with this e-mail address, case-insensitive.' }),
        where: (value) =>
          `s.profile_id in (select p.id from profiles p where p.project_id = s.project_id and p.email_folded = ${value})`,
        param: foldQueriedEmail,
      },
    },
  }),
] as const
