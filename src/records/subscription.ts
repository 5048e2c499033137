// A subscription as the data API answers it, in lists and alone, and as events tell of it.
import { boolean, type Fields, instant, integer, json, object, shape, text } from '../lib/shape/shape.ts'

export const STATUSES = ['created', 'trialing', 'active', 'paused', 'cancelled', 'expired', 'unpaid'] as const

const item: Fields = {
  id: text('Identifier.', { example: 'sub_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }),
  psp_id: text('Identifier at the payment provider.', { nullable: true }),
  status: text('State.', { enum: STATUSES }),
  renews: boolean('Whether it goes on after this period.'),
  sandbox: boolean('Whether it was made with test money.'),
  created_at: instant('When it was made.'),
  updated_at: instant('When it, or the e-mail or preview mark of its profile, was last changed.'),
  billing_interval: text('Unit of the billing interval.', { enum: ['day', 'week', 'month', 'year'] }),
  billing_interval_count: integer('How many units lie between two payments.', { example: 1 }),
  price: integer('Price of a period in the minor unit of the currency: 1999 with USD is $19.99.', { example: 1999 }),
  currency: text('ISO 4217 code.', { example: 'USD' }),
  price_usd: integer('Price in US cents.', { nullable: true, example: 1999 }),
  funnel_version: integer('Version of the funnel it was sold through.', { nullable: true, example: 3 }),
  payment_provider: text('Payment provider that collects it.', { nullable: true, example: 'stripe' }),
  period_starts_at: instant('Start of the present period.', { nullable: true }),
  period_ends_at: instant('End of the present period.', { nullable: true }),
  profile: object('Whose it is.', {
    id: text('Identifier of the profile.', { sql: 'p.id', example: 'pro_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }),
    created_at: instant('When the profile was made.', { sql: 'p.created_at' }),
    email: text('E-mail address; null when unknown or erased.', { sql: 'p.email', nullable: true }),
    preview: boolean('Whether the profile comes from a preview of the funnel.', { sql: 'p.preview' }),
  }),
  product: object('What was sold.', {
    id: text('Identifier of the product.', { sql: 'd.id', example: 'prod_monthly' }),
    name: text('Name of the product.', { sql: 'd.name', example: 'Monthly plan' }),
    status: text('State of the product.', { sql: 'd.status', enum: ['active', 'archived'] }),
  }),
}

/** As the list answers it. */
export const subscription = shape('Subscription', 's', item)

/** As it is answered alone, and told in events. */
export const subscriptionDetail = shape('SubscriptionDetail', 's', {
  ...item,
  funnel: object(
    'Funnel it was sold through.',
    {
      id: text('Identifier of the funnel.', { sql: 'f.id' }),
      title: text('Title of the funnel.', { sql: 'f.title' }),
      alias: text('Short name of the funnel.', { sql: 'f.alias', nullable: true }),
      type: text('Kind of funnel.', { sql: 'f.type', example: 'default' }),
    },
    { nullable: true },
  ),
  funnel_locale: text('Language of the funnel when it was sold.', { nullable: true, example: 'en' }),
  experiment: object(
    'Experiment the session took part in.',
    {
      id: text('Identifier of the experiment.', { sql: 'e.id' }),
      title: text('Title of the experiment.', { sql: 'e.title', nullable: true }),
      alias: text('Short name of the experiment.', { sql: 'e.alias', nullable: true }),
      enabled: boolean('Whether the experiment is running.', { sql: 'e.enabled' }),
    },
    { nullable: true },
  ),
  session: object(
    'Session it was bought in.',
    {
      id: text('Identifier of the session.', { sql: 'v.id' }),
      created_at: instant('When the session began.', { sql: 'v.created_at' }),
      locale: text('Language of the session.', { sql: 'v.locale', nullable: true }),
      user_agent: text('Browser of the session; null when unknown or erased.', { sql: 'v.user_agent', nullable: true }),
    },
    { nullable: true },
  ),
  trial_offer: json('Terms of the trial it began with.', {
    nullable: true,
    schema: { type: 'object', additionalProperties: true },
  }),
  trial_transaction_id: text('Transaction that paid for the trial.', { nullable: true }),
  paused_at: instant('When it was paused.', { nullable: true }),
  cancelled_at: instant('When it was cancelled.', { nullable: true }),
  cancellation_reason: text('Why it was cancelled.', { nullable: true }),
  renewed_at: instant('When it was last renewed.', { nullable: true }),
  upgrades_to: text('Product it is going to be replaced by.', { nullable: true }),
  custom_entitlement: text('Entitlement in place of the product’s own.', { nullable: true }),
})

/** What the list's columns need beside `subscriptions s`. */
export const JOINS = `
  join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  join products d on d.project_id = s.project_id and d.id = s.product_id`

/** What the detail's columns need beside `subscriptions s`. */
export const DETAIL_JOINS = `${JOINS}
  left join funnels f on f.project_id = s.project_id and f.id = s.funnel_id
  left join experiments e on e.project_id = s.project_id and e.id = s.experiment_id
  left join sessions v on v.project_id = s.project_id and v.id = s.session_id`
