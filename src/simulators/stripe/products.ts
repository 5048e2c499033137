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
  within,
} from './call.ts'
import { invalid } from './errors.ts'
import { hide } from './hidden.ts'
import { LIST_PARAMS, list, matching } from './lists.ts'
import { nulls } from './nulls.ts'
import { readTiers } from './tiers.ts'

const PRODUCT_FIELDS = ['active', 'description', 'metadata', 'name', 'statement_descriptor']
const TIER_FIELDS = ['billing_scheme', 'tiers', 'tiers_mode']
const PRICE_FIELDS = [
  'currency',
  'currency_options',
  'lookup_key',
  'metadata',
  'nickname',
  'product',
  'recurring',
  'transform_quantity',
  'unit_amount',
  'unit_amount_decimal',
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
  route('GET', '/v1/prices', [...LIST_PARAMS, 'active', 'product'], (dialect, call) =>
    list(call, activeOnes(call, matching(dialect, call, 'price', ['product']), true)),
  ),
  route('GET', '/v1/prices/:id', [], (dialect, call) => inPath(dialect, call, 'price')),
  route('POST', '/v1/prices/:id', ['active', 'metadata', 'nickname'], updatePrice),
]

/** Without `active` both are listed of products, and of prices the active ones, as Stripe's reference says. */
function activeOnes<T extends { active: boolean }>(call: Call, objects: T[], unasked?: boolean): T[] {
  const asked = call.params['active'] === undefined ? unasked : flag(call, 'active')
  return asked === undefined ? objects : objects.filter(({ active }) => active === asked)
}

function createProduct(dialect: Dialect, call: Call): object {
  const { state, livemode } = dialect
  const made: Stripe.Product = {
    id: text(call, 'id') ?? state.newId('prod'),
    object: 'product',
    active: true,
    created: state.now(),
    ...nulls('default_price package_dimensions shippable tax_code tax_details unit_label url'),
    description: text(call, 'description') ?? null,
    images: [],
    livemode,
    marketing_features: [],
    metadata: metadata(call),
    name: required(call, 'name'),
    statement_descriptor: text(call, 'statement_descriptor') ?? null,
    type: 'service',
    updated: state.now(),
  }
  return dialect.emit('product.created', state.put(made))
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
  return dialect.emit('product.updated', changed)
}

function createPrice(dialect: Dialect, call: Call): object {
  const { state, livemode } = dialect
  const product = existing(dialect, 'product', required(call, 'product'), 'product')
  const currency = required(call, 'currency').toLowerCase()
  const amount = readAmount(call, currency)
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
    transform_quantity: readTransform(call),
    type: recurring ? 'recurring' : 'one_time',
    ...amount,
    ...readTiers(call),
    ...readOptions(call),
  }
  dialect.emit('price.created', hide(call, state.put(made)))
  return made
}

/** As an integer, or as a decimal, which is an integer only if it has no fraction. */
function readAmount(call: Call, currency: string): Pick<Stripe.Price, 'unit_amount' | 'unit_amount_decimal'> {
  const decimal = text(call, 'unit_amount_decimal')
  const unit_amount = decimal === undefined ? (integer(call, 'unit_amount') ?? 0) : Number(decimal)
  if (Number.isNaN(unit_amount)) throw invalid(`Invalid decimal: ${decimal}`, { param: 'unit_amount_decimal' })
  if (unit_amount > 0 && decimal === undefined) checkAmount(unit_amount, currency)
  return {
    unit_amount: Number.isInteger(unit_amount) ? unit_amount : null,
    unit_amount_decimal: (decimal ?? String(unit_amount)) as never,
  }
}

function readTransform(call: Call): Stripe.Price.TransformQuantity | null {
  const inner = within(call, 'transform_quantity')
  if (!inner) return null
  return { divide_by: integer(inner, 'divide_by') ?? 1, round: oneOf(inner, 'round', ['up', 'down']) ?? 'up' }
}

/** The amounts in other currencies; Stripe adds that of the price's own. */
function readOptions(call: Call): Pick<Stripe.Price, 'currency_options'> {
  const given = within(call, 'currency_options')?.params
  if (!given) return {}
  const all = { ...given, [required(call, 'currency').toLowerCase()]: call.params }
  const options = Object.entries(all).map(([currency, option]) => {
    const inner: Call = { ...call, params: option as Form }
    const tiers = readTiers({ ...inner, params: { ...call.params, ...inner.params } }).tiers
    const amount = tiers ? { unit_amount: null, unit_amount_decimal: null } : readAmount(inner, currency)
    return [currency, { custom_unit_amount: null, tax_behavior: 'unspecified', ...(tiers && { tiers }), ...amount }]
  })
  return { currency_options: Object.fromEntries(options) }
}

function readRecurring(call: Call): Stripe.Price.Recurring | null {
  const inner = within(call, 'recurring')
  if (!inner) return null
  return {
    interval: oneOf(inner, 'interval', INTERVALS) ?? 'month',
    interval_count: integer(inner, 'interval_count') ?? 1,
    meter: null,
    trial_period_days: integer(inner, 'trial_period_days') ?? null,
    usage_type: oneOf(inner, 'usage_type', ['licensed', 'metered']) ?? 'licensed',
  }
}

function updatePrice(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'price')
  const changed = dialect.state.put({
    ...before,
    active: call.params['active'] === undefined ? before.active : flag(call, 'active'),
    metadata: metadata(call, before.metadata),
    nickname: text(call, 'nickname') ?? before.nickname,
  } satisfies Stripe.Price)
  dialect.emit('price.updated', hide(call, changed))
  return changed
}
