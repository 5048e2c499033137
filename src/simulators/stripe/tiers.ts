// Prices in tiers.
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
  return {
    flat_amount: integer(call, 'flat_amount') ?? null,
    flat_amount_decimal: decimalOf(call, 'flat_amount'),
    unit_amount: integer(call, 'unit_amount') ?? null,
    unit_amount_decimal: decimalOf(call, 'unit_amount'),
    up_to: text(call, 'up_to') === 'inf' ? null : (integer(call, 'up_to') ?? null),
  }
}

const decimalOf = (call: Call, name: string) => (text(call, `${name}_decimal`) ?? text(call, name) ?? null) as never
