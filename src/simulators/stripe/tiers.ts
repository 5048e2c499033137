// Prices in tiers: shown with their tiers only where a call expands them, as at Stripe.
import type { Stripe } from 'stripe'
import type { Form } from '../../lib/http/form.ts'
import { type Call, integer, oneOf, text } from './call.ts'
import { invalid } from './errors.ts'

type Price = Stripe.Price
type Tier = Stripe.Price.Tier

const MODES = ['graduated', 'volume'] as const

/** The tiers of a new price: none, or a list in place of an amount. */
export function readTiers(call: Call): Partial<Price> {
  if (oneOf(call, 'billing_scheme', ['per_unit', 'tiered']) !== 'tiered') return {}
  const given = call.params['tiers']
  const tiers_mode = oneOf(call, 'tiers_mode', MODES)
  if (!Array.isArray(given) || given.length === 0 || tiers_mode === null)
    throw invalid('Tiers and tiers_mode are required for a tiered price.', { param: 'tiers' })
  const tiers = given.map((tier) => readTier({ ...call, params: tier as Form }))
  return { billing_scheme: 'tiered', tiers_mode, tiers, unit_amount: null, unit_amount_decimal: null }
}

function readTier(call: Call): Tier {
  const [flat_amount, unit_amount] = [integer(call, 'flat_amount') ?? null, integer(call, 'unit_amount') ?? null]
  const decimal = (amount: number | null) => (amount === null ? null : String(amount)) as never
  return {
    flat_amount,
    flat_amount_decimal: decimal(flat_amount),
    unit_amount,
    unit_amount_decimal: decimal(unit_amount),
    up_to: text(call, 'up_to') === 'inf' ? null : (integer(call, 'up_to') ?? null),
  }
}

export function withoutTiers({ tiers: _tiers, ...price }: Price): Price {
  return price
}

/** `path` is the value of `expand[]` that shows them. */
export function shown(call: Call, price: Price, path: 'tiers' | 'data.tiers'): Price {
  const asked = call.params['expand']
  const isAsked = Array.isArray(asked) && asked.includes(path)
  return isAsked ? { ...price, tiers: price.tiers ?? (null as never) } : withoutTiers(price)
}
