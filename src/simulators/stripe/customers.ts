// Customers: created, updated, deleted; a deleted one is still found by its id, without its data.
import type { Stripe } from 'stripe'
import type { Form } from '../../lib/http/form.ts'
import { type Call, type Dialect, existing, inPath, metadata, route, text } from './call.ts'
import { missing } from './errors.ts'
import { LIST_PARAMS, list, matching } from './lists.ts'
import { nulls } from './nulls.ts'

const FIELDS = [
  'address',
  'description',
  'email',
  'invoice_settings',
  'metadata',
  'name',
  'phone',
  'preferred_locales',
  'shipping',
]

export const customerRoutes = [
  route('POST', '/v1/customers', FIELDS, create),
  route('GET', '/v1/customers', [...LIST_PARAMS, 'email'], (dialect, call) => {
    const found = matching(dialect, call, 'customer', ['email'])
    return list(
      call,
      found.filter(({ deleted }) => !deleted),
    )
  }),
  route('GET', '/v1/customers/:id', [], (dialect, call) => inPath(dialect, call, 'customer')),
  route('POST', '/v1/customers/:id', FIELDS, update),
  route('DELETE', '/v1/customers/:id', [], remove),
]

function create(dialect: Dialect, call: Call): object {
  const { state, livemode } = dialect
  const blank: Stripe.Customer = {
    id: state.newId('cus'),
    object: 'customer',
    ...nulls('address currency default_source description discount email name phone shipping test_clock'),
    balance: 0,
    created: state.now(),
    delinquent: false,
    invoice_prefix: state.newId('x').slice(2, 10).toUpperCase(),
    invoice_settings: { custom_fields: null, default_payment_method: null, footer: null, rendering_options: null },
    livemode,
    metadata: {},
    next_invoice_sequence: 1,
    preferred_locales: [],
    tax_exempt: 'none',
  }
  return dialect.emit('customer.created', state.put(withChanges(dialect, blank, call)))
}

function update(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'customer')
  if (before.deleted) throw missing('customer', before.id, 'id', 404)
  const changed = dialect.state.put(withChanges(dialect, before, call))
  const { invoice_settings } = before
  const isCard = changed.invoice_settings.default_payment_method !== invoice_settings.default_payment_method
  return dialect.emit('customer.updated', changed, isCard ? { invoice_settings } : {})
}

function withChanges(dialect: Dialect, before: Stripe.Customer, call: Call): Stripe.Customer {
  const { params } = call
  const changed = { ...before, metadata: metadata(call, before.metadata) }
  for (const field of ['description', 'email', 'name', 'phone'] as const) {
    // An empty string empties the field.
    if (params[field] !== undefined) changed[field] = text(call, field) || null
  }
  if (params['address'] !== undefined) changed.address = readAddress(params['address'])
  if (params['shipping'] === '') changed.shipping = null
  if (params['preferred_locales'] !== undefined) changed.preferred_locales = readLocales(params['preferred_locales'])
  const method = (params['invoice_settings'] as Form | undefined)?.['default_payment_method']
  if (method !== undefined) {
    const id = method === '' ? null : existing(dialect, 'payment_method', String(method), 'default_payment_method').id
    changed.invoice_settings = { ...before.invoice_settings, default_payment_method: id }
  }
  return changed
}

function readAddress(given: Form[string]): Stripe.Address | null {
  if (typeof given !== 'object' || Array.isArray(given)) return null
  const part = (name: string) => (typeof given[name] === 'string' && given[name] !== '' ? given[name] : null)
  return {
    city: part('city'),
    country: part('country'),
    line1: part('line1'),
    line2: part('line2'),
    postal_code: part('postal_code'),
    state: part('state'),
  }
}

function readLocales(given: Form[string]): string[] {
  return Array.isArray(given) ? given.filter((locale) => typeof locale === 'string') : []
}

function remove(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'customer')
  if (before.deleted) throw missing('customer', before.id, 'id', 404)
  for (const method of dialect.state.related('payment_method', 'customer', before.id)) {
    dialect.state.put({ ...method, customer: null })
    dialect.state.retire(method.id)
  }
  dialect.emit('customer.deleted', before)
  return dialect.state.put({ id: before.id, object: 'customer', deleted: true } satisfies Stripe.DeletedCustomer)
}
