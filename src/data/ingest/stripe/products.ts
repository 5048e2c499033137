// Stripe's products and prices as products with prices.
import type { Stripe } from 'stripe'
import { Inconvertible, idOf, type Line, minorNumber, recordId, textOr, time } from './convert.ts'

export function productLine(product: Stripe.Product, prices: readonly Stripe.Price[]): Line {
  return {
    record: 'product',
    data: {
      id: recordId(product.id),
      name: product.name,
      status: product.active ? 'active' : 'archived',
      platform: 'stripe',
      external_id: product.id,
      description: textOr(product.description),
      statement_descriptor: textOr(product.statement_descriptor),
      metadata: product.metadata,
      created_at: time(product.created),
      prices: prices.map(priceOf),
    },
  }
}

/** A product that is referred to and no longer exists at Stripe. */
export function missingProductLine(id: string, seenAt: number): Line {
  const data = { id: recordId(id), name: 'Deleted product', status: 'archived', platform: 'stripe' }
  return { record: 'product', data: { ...data, external_id: id, created_at: time(seenAt) } }
}

function priceOf(price: Stripe.Price): Record<string, unknown> {
  const { recurring, currency } = price
  const days = recurring?.trial_period_days
  const trial = { type: 'free', duration_interval: 'day', duration_count: days, price: 0, currency }
  return {
    id: recordId(price.id),
    external_id: price.id,
    type: price.type,
    amount: minorNumber(costOf(price, 1), currency),
    currency,
    status: price.active ? 'active' : 'archived',
    created_at: time(price.created),
    interval: recurring?.interval ?? null,
    interval_count: recurring?.interval_count ?? null,
    trial_type: days ? 'free' : null,
    trial: days ? trial : null,
  }
}

/**
 * What so many units cost, in Stripe's minor units; less than one is rounded. A price in tiers, which must be expanded,
 * costs what its tiers add up to, or with the mode `volume` what the tier of the whole number says.
 */
export function costOf(price: Stripe.Price, quantity: number): number {
  const { billing_scheme, tiers, tiers_mode, unit_amount, unit_amount_decimal } = price
  if (billing_scheme !== 'tiered') return (unit_amount ?? Math.round(Number(unit_amount_decimal ?? 0))) * quantity
  if (!tiers || tiers.length === 0)
    throw new Inconvertible(`has the price ${price.id}, whose tiers Stripe does not tell`)
  let below = 0
  let sum = 0
  for (const tier of tiers) {
    const isLast = tier.up_to === null || quantity <= tier.up_to
    const units = tiers_mode === 'volume' ? quantity : Math.min(quantity, tier.up_to ?? quantity) - below
    const cost = tierCost(tier, units)
    if (isLast) return Math.round(tiers_mode === 'volume' ? cost : sum + cost)
    sum += cost
    below = tier.up_to!
  }
  throw new Inconvertible(`has the price ${price.id}, whose tiers end below ${quantity} units`)
}

function tierCost(tier: Stripe.Price.Tier, units: number): number {
  const { flat_amount, flat_amount_decimal, unit_amount, unit_amount_decimal } = tier
  return Number(flat_amount ?? flat_amount_decimal ?? 0) + Number(unit_amount ?? unit_amount_decimal ?? 0) * units
}

/** The product of a price, by its id at Stripe. */
export const productOf = (price: Pick<Stripe.Price, 'product'>): string => idOf(price.product)!
