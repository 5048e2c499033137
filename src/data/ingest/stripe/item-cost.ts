// What so many units of one of Stripe's prices cost, in one of its currencies.
import type { Stripe } from 'stripe'
import { type Fraction, fraction, fractionOf, plus, roundHalfEven, times, ZERO } from '../../../lib/fraction.ts'
import { shiftOf } from '../../../payments/providers/stripe/money.ts'
import { Inconvertible } from './convert.ts'

type Price = Stripe.Price
type Amounts = Pick<Price, 'unit_amount' | 'unit_amount_decimal' | 'custom_unit_amount' | 'tiers'>

/**
 * The cost in Stripe's minor units, not rounded. A price in tiers needs them expanded, and a currency other than the price's
 * own needs `currency_options`. Throws `Inconvertible`.
 */
export function costOf(price: Price, quantity: number, currency: string): Fraction {
  const amounts = amountsIn(price, currency)
  const units = unitsOf(price, quantity)
  if (price.billing_scheme === 'tiered') return tiersCost(price, amounts.tiers, units)
  if (price.billing_scheme !== 'per_unit') throw unknown(price, 'billing scheme', price.billing_scheme)
  const each = decimalOf(price, amounts.unit_amount_decimal, amounts.unit_amount)
  if (each) return times(each, fraction(units))
  // The customer chooses the amount of each payment.
  if (amounts.custom_unit_amount) return ZERO
  throw new Inconvertible(`has the price ${price.id} without an amount in ${currency.toUpperCase()}`)
}

/** Rounds an amount in Stripe's minor units to minor units of ISO 4217. */
export function roundedMinor(amount: Fraction, currency: string): number {
  const code = currency.toUpperCase()
  const shift = shiftOf(code)
  if (shift === undefined) throw new Inconvertible(`has an amount in ${code}, a currency that cannot be converted`)
  const scale = 10n ** BigInt(Math.abs(shift))
  const minor = roundHalfEven(times(amount, shift > 0 ? fraction(1n, scale) : fraction(scale)))
  if (minor > MAX || minor < -MAX) throw new Inconvertible(`has an amount that is too large: ${minor} ${code}`)
  return Number(minor)
}

// The largest price of a record.
const MAX = BigInt(Number.MAX_SAFE_INTEGER)

function amountsIn(price: Price, currency: string): Amounts {
  if (price.currency === currency) return price
  const option = price.currency_options?.[currency]
  if (option) return option as Amounts
  throw new Inconvertible(`has the price ${price.id} without an amount in ${currency.toUpperCase()}`)
}

/** The billed number of units. */
function unitsOf(price: Price, quantity: number): bigint {
  if (!Number.isSafeInteger(quantity) || quantity < 0)
    throw new Inconvertible(`has the quantity ${quantity} of the price ${price.id}`)
  const { divide_by, round } = price.transform_quantity ?? { divide_by: 1, round: 'up' }
  if (!Number.isSafeInteger(divide_by) || divide_by < 1) throw unknown(price, 'divisor of quantities', divide_by)
  if (round !== 'up' && round !== 'down') throw unknown(price, 'rounding of quantities', round)
  const [units, by] = [BigInt(quantity), BigInt(divide_by)]
  return round === 'up' ? (units + by - 1n) / by : units / by
}

/** In the mode `graduated` each tier costs what its own units cost; in `volume` the tier of the whole number counts alone. */
function tiersCost(price: Price, tiers: Price['tiers'], quantity: bigint): Fraction {
  const { tiers_mode } = price
  if (!tiers || tiers.length === 0)
    throw new Inconvertible(`has the price ${price.id}, whose tiers Stripe does not tell`)
  if (tiers_mode !== 'graduated' && tiers_mode !== 'volume') throw unknown(price, 'mode of tiers', tiers_mode)
  let below = 0n
  let sum = ZERO
  for (const tier of tiers) {
    const end = tier.up_to === null ? null : BigInt(tier.up_to)
    const isLast = end === null || quantity <= end
    const units = tiers_mode === 'volume' ? quantity : (isLast ? quantity : end) - below
    const cost = tierCost(price, tier, units)
    if (tiers_mode === 'graduated') sum = plus(sum, cost)
    if (isLast) return tiers_mode === 'volume' ? cost : sum
    below = end
  }
  throw new Inconvertible(`has the price ${price.id}, whose tiers end below ${quantity} units`)
}

function tierCost(price: Price, tier: Stripe.Price.Tier, units: bigint): Fraction {
  const flat = decimalOf(price, tier.flat_amount_decimal, tier.flat_amount) ?? ZERO
  const each = decimalOf(price, tier.unit_amount_decimal, tier.unit_amount) ?? ZERO
  return plus(flat, times(each, fraction(units)))
}

/** The exact amount, which Stripe gives as a decimal and, if it is one, as an integer. */
function decimalOf(price: Price, decimal: unknown, integer: number | null): Fraction | undefined {
  const given = decimal ?? integer
  if (given === null || given === undefined) return undefined
  const amount = fractionOf(String(given))
  if (!amount) throw unknown(price, 'amount', given)
  return amount
}

const unknown = ({ id }: Price, what: string, value: unknown) =>
  new Inconvertible(`has the price ${id} with the unknown ${what} ${JSON.stringify(value)}`)
