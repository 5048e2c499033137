// Stripe's products and prices as products with prices.
import type { Stripe } from 'stripe'
import { idOf, type Line, minorNumber, recordId, textOr, time } from './convert.ts'

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
    amount: minorNumber(unitAmount(price), currency),
    currency,
    status: price.active ? 'active' : 'archived',
    created_at: time(price.created),
    interval: recurring?.interval ?? null,
    interval_count: recurring?.interval_count ?? null,
    trial_type: days ? 'free' : null,
    trial: days ? trial : null,
  }
}

/** In Stripe's minor units. Prices in tiers have none, and those of less than a unit are rounded. */
export function unitAmount({ unit_amount, unit_amount_decimal }: Stripe.Price): number {
  return unit_amount ?? Math.round(Number(unit_amount_decimal ?? 0))
}

/** The product of a price, by its id at Stripe. */
export const productOf = (price: Pick<Stripe.Price, 'product'>): string => idOf(price.product)!
