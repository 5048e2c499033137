// The kinds of records an import knows, in an order in which each comes after those it refers to: the data API's here.
import { customer, merchantAccount, payment } from './billing-records.ts'
import { fieldsOf, folded, group, orElse, required } from './fields.ts'
import type { Kind } from './kind.ts'
import { currency, minor } from './money-types.ts'
import { interval, prices } from './prices.ts'
import { answer, boolean, id, instant, integer, label, object, oneOf, past, text, texts } from './types.ts'

const every = () => "''"
const counted = (...columns: string[]) =>
  Object.fromEntries(columns.map((column) => [column, (row: string) => `${row}.${column}`]))
const times = { created_at: required(past), updated_at: past }
const record: Pick<Kind, 'tenant' | 'key'> = { tenant: 'project_id', key: ['id'] }

const funnel: Kind = {
  ...record,
  name: 'funnel',
  table: 'funnels',
  fields: fieldsOf({
    id: required(id),
    title: required(folded(text)),
    alias: label(),
    type: orElse('default', text),
    status: orElse('draft', oneOf('draft', 'published', 'archived')),
    environment: orElse('production', text),
    version: orElse(1, integer(0)),
    variation_count: orElse(1, integer(0)),
    tags: texts(),
    ...times,
    last_published_at: instant,
    deleted_at: instant,
  }),
  // The list leaves out deleted funnels unless asked for all.
  counts: { '': (row) => `case when ${row}.deleted_at is null then '' end`, all: every },
}

const experiment: Kind = {
  ...record,
  name: 'experiment',
  table: 'experiments',
  fields: fieldsOf({ id: required(id), title: text, alias: text, enabled: boolean, ...times }),
}

const product: Kind = {
  ...record,
  name: 'product',
  table: 'products',
  fields: fieldsOf({
    id: required(id),
    name: required(text),
    status: required(oneOf('active', 'archived')),
    platform: text,
    external_id: text,
    description: text,
    statement_descriptor: text,
    entitlement: text,
    metadata: orElse('{}', object),
    prices,
    ...times,
  }),
  counts: { '': every },
}

const profile: Kind = {
  ...record,
  name: 'profile',
  table: 'profiles',
  fields: fieldsOf({
    id: required(id),
    ...times,
    email: folded(label(320)),
    phone: text,
    password_hash: text,
    country: text,
    locale: text,
    funnel_id: id,
    preview: boolean,
    integrations: orElse('{}', object),
    anonymized_at: instant,
  }),
  references: { funnel_id: 'funnel' },
  misfits: [
    {
      // Half an erasure would be none: their sessions would stay.
      reason: 'profile.anonymized_at is set, but here nobody erased the profile: do that first',
      where: ({ project_id }) => `s.anonymized_at is not null and exists (
        select from profiles t where t.project_id = ${project_id} and t.id = s.id and t.anonymized_at is null)`,
    },
  ],
  kept: ['anonymized_at'],
  counts: { '': every, ...counted('funnel_id') },
}

const session: Kind = {
  ...record,
  name: 'session',
  table: 'sessions',
  fields: fieldsOf({
    id: required(id),
    ...times,
    profile_id: required(id),
    funnel_id: id,
    funnel_version: integer(0),
    experiment_id: id,
    locale: text,
    origin: text,
    user_agent: text,
    query_params: orElse('{}', object),
    ip: text,
    country: text,
    region_code: text,
    city: text,
    postal_code: text,
    timezone: text,
    locale_code: text,
    tracking_cookies: orElse('{}', object),
  }),
  references: { profile_id: 'profile', funnel_id: 'funnel', experiment_id: 'experiment' },
  counts: { '': every, ...counted('funnel_id') },
}

const reply: Kind = {
  name: 'reply',
  table: 'replies',
  tenant: 'project_id',
  key: ['session_id', 'screen_id', 'element_id'],
  fields: fieldsOf({
    session_id: required(id),
    element: required(group({ id: required(id), type: required(text), custom_id: text })),
    screen: required(group({ id: required(id), index: required(integer(0)), custom_id: text })),
    value: answer,
  }),
  references: { session_id: 'session' },
}

const subscription: Kind = {
  ...record,
  name: 'subscription',
  table: 'subscriptions',
  fields: fieldsOf({
    id: required(id),
    psp_id: text,
    status: required(oneOf('created', 'trialing', 'active', 'paused', 'cancelled', 'expired', 'unpaid')),
    renews: required(boolean),
    sandbox: boolean,
    ...times,
    billing_interval: required(interval),
    billing_interval_count: required(integer(1)),
    price: required(minor),
    currency: required(currency),
    price_usd: minor,
    funnel_version: integer(0),
    payment_provider: label(),
    period_starts_at: instant,
    period_ends_at: instant,
    profile_id: required(id),
    product_id: required(id),
    funnel_id: id,
    session_id: id,
    experiment_id: id,
    funnel_locale: text,
    trial_offer: object,
    trial_transaction_id: id,
    paused_at: instant,
    cancelled_at: instant,
    cancellation_reason: text,
    renewed_at: instant,
    upgrades_to: id,
    custom_entitlement: text,
  }),
  // Not `trial_transaction_id`: its transaction refers to the subscription, and a feed brings one before the other.
  references: {
    profile_id: 'profile',
    product_id: 'product',
    funnel_id: 'funnel',
    session_id: 'session',
    experiment_id: 'experiment',
  },
  counts: { '': every, ...counted('status', 'funnel_id', 'product_id', 'payment_provider') },
}

const transaction: Kind = {
  ...record,
  name: 'transaction',
  table: 'transactions',
  fields: fieldsOf({
    id: required(id),
    ...times,
    session_id: id,
    profile_id: required(id),
    funnel_id: id,
    funnel_version: integer(0),
    currency: required(currency),
    price: required(minor),
    price_usd: minor,
    sandbox: boolean,
    funnel_locale: text,
    experiment_id: id,
    subscription_id: id,
  }),
  references: {
    session_id: 'session',
    profile_id: 'profile',
    funnel_id: 'funnel',
    experiment_id: 'experiment',
    subscription_id: 'subscription',
  },
  counts: { '': every },
}

/** In the order in which they are written. */
export const KINDS: readonly Kind[] = [
  funnel,
  experiment,
  product,
  profile,
  session,
  reply,
  subscription,
  transaction,
  merchantAccount,
  customer,
  payment,
]
