// A subscription: the API's shapes in lists and alone (events show it alone, too), and the import's fields.
import { boolean, instant, integer, json, object, shape, text } from '../../lib/shape/shape.ts'
import { nestedFunnel } from './funnel.ts'
import { required } from './import/fields.ts'
import { currency, minor } from './import/money-types.ts'
import * as from from './import/types.ts'
import { interval } from './price.ts'
import { all, countedBy, field, importedOnly, record, shownFields, shownOnly } from './record.ts'

export const STATUSES = ['created', 'trialing', 'active', 'paused', 'cancelled', 'expired', 'unpaid'] as const

const item = {
  id: field(text('Identifier.', { example: 'sub_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }), required(from.id)),
  psp_id: field(text('Identifier at the payment provider.', { nullable: true }), from.label),
  status: field(text('State.', { enum: STATUSES }), required(from.oneOf(...STATUSES))),
  renews: field(boolean('Whether it continues after this period.'), required(from.boolean)),
  sandbox: field(boolean('Whether it is test data.'), from.boolean),
  created_at: field(instant('When it was created.'), required(from.past)),
  updated_at: field(instant('When it, or `email` or `preview` of its profile, was last changed.'), from.past),
  billing_interval: field(
    text('Unit of the billing interval.', { enum: ['day', 'week', 'month', 'year'] }),
    required(interval),
  ),
  billing_interval_count: field(
    integer('Number of units between two payments.', { example: 1 }),
    required(from.integer(1)),
  ),
  price: field(
    integer('Price of a period, in the minor unit of the currency: 1999 with USD is $19.99.', { example: 1999 }),
    required(minor),
  ),
  currency: field(text('ISO 4217 code.', { example: 'USD' }), required(currency)),
  price_usd: field(integer('Price in US cents.', { nullable: true, example: 1999 }), minor),
  funnel_version: field(
    integer('Version of the funnel that it was sold through.', { nullable: true, example: 3 }),
    from.integer(0),
  ),
  payment_provider: field(
    text('Payment provider that collects the payments.', { nullable: true, example: 'stripe' }),
    from.label,
  ),
  period_starts_at: field(instant('Start of the current period.', { nullable: true }), from.instant),
  period_ends_at: field(instant('End of the current period.', { nullable: true }), from.instant),
  profile: shownOnly(
    object(
      'Profile that it belongs to.',
      {
        id: text('Identifier of the profile.', { sql: 'p.id', example: 'pro_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }),
        created_at: instant('When the profile was created.', { sql: 'p.created_at' }),
        email: text('E-mail address; null when unknown or erased.', { sql: 'p.email', nullable: true }),
        preview: boolean('Whether the profile comes from a preview of the funnel.', { sql: 'p.preview' }),
      },
      { name: 'ProfileSummary' },
    ),
  ),
  product: shownOnly(
    object(
      'What was sold.',
      {
        id: text('Identifier of the product.', { sql: 'd.id', example: 'prod_monthly' }),
        name: text('Name of the product.', { sql: 'd.name', example: 'Monthly plan' }),
        status: text('State of the product.', { sql: 'd.status', enum: ['active', 'archived'] }),
      },
      { name: 'ProductSummary' },
    ),
  ),
}

const detail = {
  ...item,
  funnel: shownOnly(nestedFunnel('Funnel that it was sold through.')),
  funnel_locale: field(text('Language of the funnel when it was sold.', { nullable: true, example: 'en' }), from.label),
  experiment: shownOnly(
    object(
      'Experiment that the session took part in.',
      {
        id: text('Identifier of the experiment.', { sql: 'e.id' }),
        title: text('Title of the experiment.', { sql: 'e.title', nullable: true }),
        alias: text('Short name of the experiment.', { sql: 'e.alias', nullable: true }),
        enabled: boolean('Whether the experiment is running.', { sql: 'e.enabled' }),
      },
      { nullable: true, name: 'ExperimentSummary' },
    ),
  ),
  session: shownOnly(
    object(
      'Session in which it was bought.',
      {
        id: text('Identifier of the session.', { sql: 'v.id' }),
        created_at: instant('When the session began.', { sql: 'v.created_at' }),
        locale: text('Language of the session.', { sql: 'v.locale', nullable: true }),
        user_agent: text('Browser of the session; null when unknown or erased.', {
          sql: 'v.user_agent',
          nullable: true,
        }),
      },
      { nullable: true, name: 'SessionSummary' },
    ),
  ),
  trial_offer: field(
    json('Terms of the trial that it began with.', {
      nullable: true,
      schema: { type: 'object', additionalProperties: true },
    }),
    from.object,
  ),
  // No reference: its transaction refers to the subscription, and a feed brings one before the other.
  trial_transaction_id: field(text('Transaction that paid for the trial.', { nullable: true }), from.id),
  paused_at: field(instant('When it was paused.', { nullable: true }), from.instant),
  cancelled_at: field(instant('When it was cancelled.', { nullable: true }), from.instant),
  cancellation_reason: field(text('Why it was cancelled.', { nullable: true }), from.label),
  renewed_at: field(instant('When it was last renewed.', { nullable: true }), from.instant),
  upgrades_to: field(text('Product that will replace it.', { nullable: true }), from.id),
  custom_entitlement: field(text('Entitlement that replaces the product’s own.', { nullable: true }), from.label),
  price_note: field(
    text(
      'What `price` does not include, such as metered usage or a later change of the price; null if it includes everything.',
      {
        nullable: true,
        example: null,
      },
    ),
    from.freeText,
  ),
}

export const subscriptionRecord = record({
  name: 'subscription',
  table: 'subscriptions',
  fields: {
    ...detail,
    profile_id: importedOnly(required(from.id), { refersTo: 'profile' }),
    product_id: importedOnly(required(from.id), { refersTo: 'product' }),
    funnel_id: importedOnly(from.id, { refersTo: 'funnel' }),
    session_id: importedOnly(from.id, { refersTo: 'session' }),
    experiment_id: importedOnly(from.id, { refersTo: 'experiment' }),
  },
  counts: { '': all, ...countedBy('status', 'funnel_id', 'product_id', 'payment_provider') },
})

/** As the list shows it. */
export const subscription = shape('Subscription', 's', shownFields(item))

/** As it is shown alone and in events. */
export const subscriptionDetail = shape('SubscriptionDetail', 's', shownFields(detail))

/** The joins that the list's columns need, besides `subscriptions s`. */
export const JOINS = `
  join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  join products d on d.project_id = s.project_id and d.id = s.product_id`

/** The joins that the detail's columns need, besides `subscriptions s`. */
export const DETAIL_JOINS = `${JOINS}
  left join funnels f on f.project_id = s.project_id and f.id = s.funnel_id
  left join experiments e on e.project_id = s.project_id and e.id = s.experiment_id
  left join sessions v on v.project_id = s.project_id and v.id = s.session_id`
