// Coupons, and the discounts that they give.
import type { Stripe } from 'stripe'
import { monthsAfter } from '../../lib/days.ts'
import type { Form } from '../../lib/http/form.ts'
import { type Call, type Dialect, existing, inPath, integer, metadata, oneOf, required, route, text } from './call.ts'
import { invalid } from './errors.ts'
import { nulls } from './nulls.ts'

const FIELDS = [
  'amount_off',
  'applies_to',
  'currency',
  'currency_options',
  'duration',
  'duration_in_months',
  'id',
  'metadata',
  'name',
  'percent_off',
]

export const couponRoutes = [
  route('POST', '/v1/coupons', FIELDS, create),
  route('GET', '/v1/coupons/:id', [], (dialect, call) => inPath(dialect, call, 'coupon')),
]

function create(dialect: Dialect, call: Call): object {
  const percent = text(call, 'percent_off')
  const amount_off = integer(call, 'amount_off') ?? null
  if ((percent === undefined) === (amount_off === null))
    throw invalid('You must pass either percent_off or amount_off.', { param: 'percent_off' })
  const currency = amount_off === null ? null : required(call, 'currency').toLowerCase()
  const products = (call.params['applies_to'] as { products?: string[] } | undefined)?.products
  return dialect.state.put({
    id: text(call, 'id') ?? dialect.state.newId('coupon'),
    object: 'coupon',
    amount_off,
    ...(products && { applies_to: { products } }),
    created: dialect.state.now(),
    currency,
    ...optionsOf(call, amount_off, currency),
    duration: oneOf(call, 'duration', ['forever', 'once', 'repeating']) ?? 'once',
    duration_in_months: integer(call, 'duration_in_months') ?? null,
    livemode: dialect.livemode,
    max_redemptions: null,
    metadata: metadata(call),
    name: text(call, 'name') ?? null,
    percent_off: percent === undefined ? null : Number(percent),
    redeem_by: null,
    times_redeemed: 0,
    valid: true,
  } satisfies Stripe.Coupon)
}

function optionsOf(call: Call, own: number | null, currency: string | null): Pick<Stripe.Coupon, 'currency_options'> {
  const given = call.params['currency_options']
  if (typeof given !== 'object' || Array.isArray(given) || own === null) return {}
  const others = Object.entries(given).map(([code, option]) => {
    const inner: Call = { ...call, params: option as Form }
    return [code, { amount_off: integer(inner, 'amount_off') ?? 0 }]
  })
  return { currency_options: { ...Object.fromEntries(others), [currency!]: { amount_off: own } } }
}

/** Makes the discounts that a call names by their coupons; returns their ids. */
export function addDiscounts(dialect: Dialect, call: Call, owner: Partial<Stripe.Discount>): string[] {
  const given = call.params['discounts']
  if (!Array.isArray(given)) return []
  return given.map((one) => {
    const coupon = existing(dialect, 'coupon', required({ ...call, params: one as Form }, 'coupon'), 'discounts')
    const start = dialect.state.now()
    const end =
      coupon.duration === 'repeating' ? monthsAfter(start * 1000, coupon.duration_in_months ?? 1) / 1000 : null
    const made: Stripe.Discount = {
      id: dialect.state.newId('di'),
      object: 'discount',
      ...nulls('checkout_session customer customer_account invoice invoice_item promotion_code subscription'),
      ...nulls('subscription_item'),
      end,
      source: { coupon: coupon.id, type: 'coupon' },
      start,
      ...owner,
    }
    return dialect.state.put(made).id
  })
}
