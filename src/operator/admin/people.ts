// A person: everything that is stored about them.

import { ACCOUNT } from '../../core/records/payment-account.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { jsonOf } from '../../lib/json/json.ts'
import { type Schema, Type, type TypeOf } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, json, type Shape, shape, text } from '../../lib/shape/shape.ts'
import { savedCardOf } from '../../payments/billing/charge/saved-card.ts'
import { notFound } from './exist.ts'
import { aliasFields } from './merges.ts'
import { reading } from './operation.ts'
import { declined, moneyBack } from './person-payments.ts'
import { termsOf } from './subscriptions.ts'
import { twinsOf, twinsSchema } from './twins.ts'

const TAG = 'Profiles'
const PATH = '/projects/:project_id/profiles'

const anything: Schema<Record<string, unknown>> = { type: 'object', additionalProperties: true }

const profile = shape('PersonProfile', 'p', {
  id: text('Identifier.'),
  created_at: instant('When it was created.'),
  updated_at: instant('When it was last changed.'),
  email: text('E-mail address.', { nullable: true }),
  phone: text('Phone number.', { nullable: true }),
  country: text('Country.', { nullable: true }),
  locale: text('Language.', { nullable: true }),
  funnel_id: text('Funnel of the first visit.', { nullable: true }),
  preview: boolean('Whether it comes from a preview of the funnel.'),
  integrations: json('Ids in other systems.', { schema: anything }),
  anonymized_at: instant('When the person was erased, or merged into another profile.', { nullable: true }),
  ...aliasFields,
})

const replies = `(select coalesce(json_agg(json_build_object('screen', r.screen_id, 'element', r.element_id, 'name', r.element_custom_id,
  'type', r.element_type, 'value', r.value) order by r.screen_index, r.screen_id, r.element_id), '[]')
  from replies r where r.project_id = s.project_id and r.session_id = s.id)`

interface Reply {
  screen: string
  element: string
  name: string | null
  type: string
  value: string | string[] | null
}

const session = shape('PersonSession', 's', {
  id: text('Identifier.'),
  created_at: instant('When it began.'),
  funnel_id: text('Funnel.', { nullable: true }),
  funnel_version: integer('Version of the funnel.', { nullable: true }),
  experiment_id: text('Experiment.', { nullable: true }),
  origin: text('URL at which it began.', { nullable: true }),
  user_agent: text('Browser.', { nullable: true }),
  ip: text('IP address of the visitor.', { nullable: true }),
  country: text('Country.', { nullable: true }),
  city: text('City.', { nullable: true }),
  postal_code: text('Postal code.', { nullable: true }),
  locale: text('Language.', { nullable: true }),
  replies: json('Replies in the order of their screens.', {
    sql: replies,
    schema: { type: 'array', items: anything } as Schema<Reply[]>,
  }),
})

const subscription = shape('PersonSubscription', 'u', {
  id: text('Identifier.'),
  created_at: instant('When it was created.'),
  status: text('State.'),
  renews: boolean('Whether it renews.'),
  ...termsOf('u'),
  period_ends_at: instant('End of the paid period.', { nullable: true }),
  cancelled_at: instant('When it was cancelled.', { nullable: true }),
})

const transaction = shape('PersonTransaction', 't', {
  id: text('Identifier.'),
  created_at: instant('When it was created.'),
  price: integer('Amount in minor units.'),
  currency: text('Currency.'),
  subscription_id: text('Subscription.', { nullable: true }),
  sandbox: boolean('Whether it is test data.'),
})

const order = shape('PersonOrder', 'o', {
  organization_id: text('Organization.'),
  order_id: text('Identifier.'),
  external_id: text('The customer.'),
  created_at: instant('When it was claimed.'),
  status: text('State.'),
  failed_message_for_user: text('Error message for the customer; empty unless the charge failed.'),
  psp: text('Payment provider.'),
  psp_merchant_id: text('Account at the provider.', { nullable: true }),
  amount: decimal('Amount in major units.'),
  amount_refunded: decimal('Sum of the refunds that succeeded.', { sql: 'round(o.amount_refunded, scale(o.amount))' }),
  currency_code: text('Currency.'),
  consumable_id: text('The consumable it granted.', { sql: 'c.consumable_id', nullable: true }),
  consumable_active: boolean('Whether the consumable is active.', { sql: 'c.is_active', nullable: true }),
})

const event = shape('PersonEvent', 'v', {
  id: text('Identifier.'),
  type: text('Kind.'),
  object_id: text('The object it is about.'),
  created_at: instant('When it was written.'),
})

const customer = shape('PersonCustomer', 'c', {
  organization_id: text('Organization.'),
  external_id: text('The caller’s id of the customer.'),
  email: text('E-mail address.', { nullable: true }),
  created_at: instant('When it was created.'),
  card_network: text('Network of the saved card that a charge would use; null if there is none.', {
    sql: 'card.network',
    nullable: true,
  }),
  card_last4: text('Last four digits of the card, as last reported by the provider.', {
    sql: 'card.last4',
    nullable: true,
  }),
  card_expires: text('When the card expires, as last reported by the provider.', {
    sql: 'card.expiration_date',
    nullable: true,
    example: '12/2034',
  }),
})

// The card that a charge would use, with what the provider last reported of it in `saved_cards`.
const CARD = `
  left join lateral (
    select r.organization_id, r.psp, r.psp_merchant_id, r.payment_method_token, r.network, r.pm_data_last4, r.pm_data_expiration_date
    ${savedCardOf('c', 'c')}) r on true
  left join saved_cards k on k.organization_id = r.organization_id and k.token = r.payment_method_token and k.psp = r.psp
    and k.psp_merchant_id = r.psp_merchant_id
  cross join lateral (
    select coalesce(k.network, r.network) as network, coalesce(k.last4, r.pm_data_last4) as last4,
      coalesce(k.expiration_date, r.pm_data_expiration_date) as expiration_date) card`

/** The lists of records in the response: the newest `MAX_RECORDS_OF_A_KIND` of each kind. */
const PARTS = {
  sessions: {
    shape: session,
    from: 'sessions s where s.project_id = $1 and s.profile_id = $2',
    order: 's.created_at desc, s.id desc',
  },
  subscriptions: {
    shape: subscription,
    from: 'subscriptions u where u.project_id = $1 and u.profile_id = $2',
    order: 'u.created_at desc, u.id desc',
  },
  transactions: {
    shape: transaction,
    from: 'transactions t where t.project_id = $1 and t.profile_id = $2',
    order: 't.created_at desc, t.id desc',
  },
  customers: {
    shape: customer,
    from: `customers c ${CARD} where c.project_id = $1 and c.profile_id = $2`,
    order: 'c.created_at desc, c.external_id desc',
  },
  orders: {
    shape: order,
    from: `customers m join orders o on o.organization_id = m.organization_id and o.external_id = m.external_id
      left join consumables c on c.organization_id = o.organization_id and c.order_id = o.order_id
      where m.project_id = $1 and m.profile_id = $2`,
    order: 'o.created_at desc, o.order_id desc',
  },
  declined_payments: {
    shape: declined,
    from: `customers c join report_transactions r on r.organization_id = c.organization_id and r.external_id = c.external_id
        and r.psp_transaction_type = 'sale' and r.status = 'failed'
      ${ACCOUNT} where c.project_id = $1 and c.profile_id = $2`,
    order: `${paidAt('r')} desc, r.trx_id desc`,
  },
  money_back: {
    shape: moneyBack,
    from: `customers c join report_transactions r on r.organization_id = c.organization_id and r.external_id = c.external_id
        and r.psp_transaction_type <> 'sale'
      ${ACCOUNT} where c.project_id = $1 and c.profile_id = $2`,
    order: `${paidAt('r')} desc, r.trx_id desc`,
  },
  events: {
    shape: event,
    from: 'events v where v.project_id = $1 and v.profile_id = $2',
    order: 'v.created_at desc, v.id desc',
  },
} satisfies Record<string, Part>

interface Part {
  shape: Shape
  from: string
  order: string
}

type PartSchemas = { [P in keyof typeof PARTS]: Schema<TypeOf<(typeof PARTS)[P]['shape']['schema']>[]> }
const partSchemas = Object.fromEntries(
  Object.entries(PARTS).map(([name, { shape }]) => [name, Type.Array(shape.schema, { description: 'Newest first.' })]),
) as object as PartSchemas

const MAX_RECORDS_OF_A_KIND = 100

const get = reading({
  id: 'getPerson',
  right: 'people',
  command: 'profile show',
  path: `${PATH}/:profile_id`,
  tag: TAG,
  summary: 'Get everything that is stored about a person',
  description: `The profile with its likely twins, sessions and replies, subscriptions, transactions, customers, orders, declined payments, refunds and disputes, and events: the newest ${MAX_RECORDS_OF_A_KIND} of each.`,
  response: Type.Named('Person', {
    profile: profile.schema,
    twins: twinsSchema,
    ...partSchemas,
  }),
  async run({ db }, { params }) {
    const { project_id, profile_id } = params
    const [row] = await db.read(
      { text: `select ${profile.columns} from profiles p where p.project_id = $1 and p.id = $2` },
      [project_id, profile_id],
    )
    if (!row) throw notFound('profile', profile_id)
    const twins = await twinsOf({ db }, project_id, profile_id)
    const parts = await Promise.all(
      Object.entries<Part>(PARTS).map(async ([name, { shape, from, order }]) => {
        const text = `select ${shape.columns} from ${from} order by ${order} limit ${MAX_RECORDS_OF_A_KIND}`
        return [name, shape.list(await db.read({ text }, [project_id, profile_id]))] as const
      }),
    )
    return jsonOf({ profile: profile.one(row), twins, ...Object.fromEntries(parts) })
  },
})

export const people = [get] as const
