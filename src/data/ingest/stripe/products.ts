// Stripe's products and prices as products with prices.
import type { Stripe } from 'stripe'
import { Inconvertible, idOf, type Line, recordId, textOr, time } from './convert.ts'
import { costOf, roundedMinor } from './item-cost.ts'

/** `prices` are the lines of its prices. */
export function productLine(product: Stripe.Product, prices: object[]): Line {
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
      prices,
    },
  }
}

/** A product that is referred to and no longer exists at Stripe. */
export function missingProductLine(id: string, seenAt: number): Line {
  const data = { id: recordId(id), name: 'Deleted product', status: 'archived', platform: 'stripe' }
  return { record: 'product', data: { ...data, external_id: id, created_at: time(seenAt) } }
}

const TYPES: string[] = ['one_time', 'recurring']
const INTERVALS: string[] = ['day', 'week', 'month', 'year']

/** One of a product's prices, in its main currency. Throws `Inconvertible`. */
export function priceOf(price: Stripe.Price): object {
  const { recurring, currency, type, transform_quantity } = price
  if (!TYPES.includes(type)) throw new Inconvertible(`has the unknown type ${JSON.stringify(type)}`)
  if (recurring && !(INTERVALS.includes(recurring.interval) && recurring.interval_count > 0))
    throw new Inconvertible(`has the unknown interval ${recurring.interval_count} ${recurring.interval}`)
  const days = recurring?.trial_period_days
  const trial = { type: 'free', duration_interval: 'day', duration_count: days, price: 0, currency }
  return {
    id: recordId(price.id),
    external_id: price.id,
    type: price.type,
    amount: roundedMinor(costOf(price, transform_quantity?.divide_by ?? 1, currency), currency),
    currency,
    status: price.active ? 'active' : 'archived',
    created_at: time(price.created),
    interval: recurring?.interval ?? null,
    interval_count: recurring?.interval_count ?? null,
    trial_type: days ? 'free' : null,
    trial: days ? trial : null,
  }
}

/** The product of a price, by its id at Stripe. */
export const productOf = (price: Pick<Stripe.Price, 'product'>): string => idOf(price.product)!
