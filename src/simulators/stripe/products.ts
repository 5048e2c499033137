// Products and prices: created, updated, listed.
import type { Stripe } from 'stripe'
import type { Form } from '../../lib/http/form.ts'
import { checkAmount } from './amounts.ts'
import {
  type Call,
  type Dialect,
  existing,
  flag,
  inPath,
  integer,
  metadata,
  oneOf,
  required,
  route,
  text,
} from './call.ts'
import { LIST_PARAMS, list } from './lists.ts'
import { readTiers, shown, withoutTiers } from './tiers.ts'

const PRODUCT_FIELDS = ['active', 'description', 'metadata', 'name', 'statement_descriptor']
const TIER_FIELDS = ['billing_scheme', 'tiers', 'tiers_mode']
const PRICE_FIELDS = [
  'currency',
  'lookup_key',
  'metadata',
  'nickname',
  'product',
  'recurring',
  'unit_amount',
  ...TIER_FIELDS,
]
const INTERVALS = ['day', 'week', 'month', 'year'] as const

export const productRoutes = [
  route('POST', '/v1/products', [...PRODUCT_FIELDS, 'id'], createProduct),
  route('GET', '/v1/products', [...LIST_PARAMS, 'active'], (dialect, call) =>
    list(call, activeOnes(call, dialect.state.all('product'))),
  ),
  route('GET', '/v1/products/:id', [], (dialect, call) => inPath(dialect, call, 'product')),
  route('POST', '/v1/products/:id', PRODUCT_FIELDS, updateProduct),
  route('POST', '/v1/prices', PRICE_FIELDS, createPrice),
  route('GET', '/v1/prices', [...LIST_PARAMS, 'active', 'product'], listPrices),
  route('GET', '/v1/prices/:id', [], (dialect, call) => shown(call, inPath(dialect, call, 'price'), 'tiers')),
  route('POST', '/v1/prices/:id', ['active', 'metadata', 'nickname'], updatePrice),
]

/** Without `active` both are listed, as at Stripe. */
function activeOnes<T extends { active: boolean }>(call: Call, objects: T[]): T[] {
  return call.params['active'] === undefined ? objects : objects.filter(({ active }) => active === flag(call, 'active'))
}

function createProduct(dialect: Dialect, call: Call): object {
  const { state, livemode } = dialect
  const made: Stripe.Product = {
    id: text(call, 'id') ?? state.newId('prod'),
    object: 'product',
    active: true,
    created: state.now(),
    default_price: null,
    description: text(call, 'description') ?? null,
    images: [],
    livemode,
    marketing_features: [],
    metadata: metadata(call),
    name: required(call, 'name'),
    package_dimensions: null,
    shippable: null,
    statement_descriptor: text(call, 'statement_descriptor') ?? null,
    tax_code: null,
    tax_details: null,
    type: 'service',
    unit_label: null,
    updated: state.now(),
    url: null,
  }
  dialect.emit('product.created', state.put(made))
  return made
}

function updateProduct(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'product')
  const changed = dialect.state.put({
    ...before,
    active: call.params['active'] === undefined ? before.active : flag(call, 'active'),
    description: text(call, 'description') ?? before.description,
    metadata: metadata(call, before.metadata),
    name: text(call, 'name') ?? before.name,
    updated: dialect.state.now(),
  } satisfies Stripe.Product)
  dialect.emit('product.updated', changed)
  return changed
}

function createPrice(dialect: Dialect, call: Call): object {
  const { state, livemode } = dialect
  const product = existing(dialect, 'product', required(call, 'product'), 'product')
  const currency = required(call, 'currency').toLowerCase()
  const unit_amount = integer(call, 'unit_amount') ?? 0
  if (unit_amount > 0) checkAmount(unit_amount, currency)
  const recurring = readRecurring(call)
  const made: Stripe.Price = {
    id: state.newId('price'),
    object: 'price',
    active: true,
    billing_scheme: 'per_unit',
    created: state.now(),
    currency,
    custom_unit_amount: null,
    livemode,
    lookup_key: text(call, 'lookup_key') ?? null,
    metadata: metadata(call),
    nickname: text(call, 'nickname') ?? null,
    product: product.id,
    recurring,
    tax_behavior: 'unspecified',
    tiers_mode: null,
    transform_quantity: null,
    type: recurring ? 'recurring' : 'one_time',
    unit_amount,
    unit_amount_decimal: String(unit_amount) as never,
    ...readTiers(call),
  }
  dialect.emit('price.created', withoutTiers(state.put(made)))
  return shown(call, made, 'tiers')
}

function readRecurring(call: Call): Stripe.Price.Recurring | null {
  const given = call.params['recurring']
  if (given === undefined || typeof given === 'string' || Array.isArray(given)) return null
  const inner: Call = { ...call, params: given as Form }
  return {
    interval: oneOf(inner, 'interval', INTERVALS) ?? 'month',
    interval_count: integer(inner, 'interval_count') ?? 1,
    meter: null,
    trial_period_days: integer(inner, 'trial_period_days') ?? null,
    usage_type: 'licensed',
  }
}

function listPrices({ state }: Dialect, call: Call): object {
  const product = text(call, 'product')
  const prices = activeOnes(call, product ? state.related('price', 'product', product) : state.all('price'))
  return list(
    call,
    prices.map((price) => shown(call, price, 'data.tiers')),
  )
}

function updatePrice(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'price')
  const changed = dialect.state.put({
    ...before,
    active: call.params['active'] === undefined ? before.active : flag(call, 'active'),
    metadata: metadata(call, before.metadata),
    nickname: text(call, 'nickname') ?? before.nickname,
  } satisfies Stripe.Price)
  dialect.emit('price.updated', withoutTiers(changed))
  return shown(call, changed, 'tiers')
}
