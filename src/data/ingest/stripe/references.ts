// Reads objects that other objects refer to and that are not stored, because they are older than `since` or were deleted.
import type { Stripe } from 'stripe'
import { complete, type Prices } from './complete.ts'
import type { Context, Referred } from './context.ts'
import { idOf, type Line, recordId } from './convert.ts'
import { type AnyCustomer, customerLines, deletedCustomerLines } from './customers.ts'
import { each } from './each.ts'
import { missingProductLine, priceOf, productLine, productOf } from './products.ts'
import { subscriptionLine } from './subscriptions.ts'

/** An object that refers to a customer, which may be expanded, at a time in seconds. */
export interface Reference {
  customer: string | AnyCustomer
  seenAt: number
}

/** The lines of customers that are not stored. */
export async function missingCustomers(context: Context, references: Reference[]): Promise<Line[]> {
  const { source, target, known } = context
  const missing = await unknown(
    known,
    'profiles',
    references.map((one) => ({ ...one, id: idOf(one.customer)! })),
  )
  const lines = await each(context, missing, async ({ id, customer, seenAt }) => {
    const found = typeof customer === 'string' ? await source.one<AnyCustomer>('customers', id) : customer
    return found && !found.deleted ? customerLines(found, target) : deletedCustomerLines(id, seenAt)
  })
  return lines.flat()
}

/** The lines of products that are not stored. */
async function missingProducts(context: Context, references: { id: string; seenAt: number }[]): Promise<Line[]> {
  const missing = await unknown(context.known, 'products', references)
  return each(context, missing, async ({ id, seenAt }) => {
    const found = await context.source.one<Stripe.Product>('products', id)
    return found ? productWithPrices(context, found) : missingProductLine(id, seenAt)
  })
}

/** Those that are not stored; of several with one id the last. */
async function unknown<T extends { id: string }>(known: Context['known'], table: Referred, given: T[]): Promise<T[]> {
  const byId = new Map(given.map((one) => [one.id, one]))
  const stored = await known(table, [...byId.keys()].map(recordId))
  return [...byId.values()].filter(({ id }) => !stored.has(recordId(id)))
}

/**
 * The lines of subscriptions that are not stored, with what they refer to; `absent` are the ids of those that no longer exist at
 * Stripe or cannot be imported.
 */
export async function missingSubscriptions(
  context: Context,
  ids: string[],
): Promise<{ lines: Line[]; absent: Set<string> }> {
  const distinct = [...new Set(ids)]
  const stored = await context.known('subscriptions', distinct.map(recordId))
  const missing = distinct.filter((id) => !stored.has(recordId(id)))
  const found: Stripe.Subscription[] = []
  for (const id of missing) {
    const subscription = await context.source.one<Stripe.Subscription>('subscriptions', id, { expand: ['customer'] })
    if (subscription) found.push(subscription)
  }
  const lines = await subscriptionLines(context, found)
  const there = new Set(lines.filter(({ record }) => record === 'subscription').map(({ data }) => data.id))
  return { lines, absent: new Set(missing.filter((id) => !there.has(recordId(id)))) }
}

/** The lines of subscriptions whose customers are expanded, and of what they refer to and is not stored. */
export async function subscriptionLines(context: Context, found: Stripe.Subscription[]): Promise<Line[]> {
  const prices: Prices = new Map()
  const checkouts = await context.checkouts.find(found.map(({ id }) => id))
  const converted = await each(context, found, async (one) => {
    const completed = await complete(context, one, prices)
    return {
      line: subscriptionLine(completed, context.target, checkouts.get(one.id)),
      subscription: completed.subscription,
    }
  })
  const subscriptions = converted.map(({ subscription }) => subscription)
  const customers = subscriptions.map(({ customer, created }) => ({ customer, seenAt: created }))
  const products = subscriptions.map(({ items, created }) => ({
    id: productOf(items.data[0]!.price),
    seenAt: created,
  }))
  return [
    ...(await missingCustomers(context, customers)),
    ...(await missingProducts(context, products)),
    ...converted.map(({ line }) => line),
  ]
}

/** The line of a product with all its prices, the newest first; a price that cannot be imported is left out. */
export async function productWithPrices(context: Context, product: Stripe.Product): Promise<Line> {
  const prices = new Map<string, Stripe.Price>()
  // Stripe's reference says that the list has the active prices alone unless the others are asked for.
  for (const active of [true, false]) {
    const params = { product: product.id, active, expand: ['data.tiers'] }
    for await (const page of context.source.pages<Stripe.Price>('/v1/prices', params))
      for (const price of page) prices.set(price.id, price)
  }
  const all = [...prices.values()].sort((one, other) => other.created - one.created)
  return productLine(product, await each(context, all, priceOf))
}
