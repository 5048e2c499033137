// Reads objects that other objects refer to and that are not stored, because they are older than `since` or were deleted.
import type { Stripe } from 'stripe'
import { complete, type Prices } from './complete.ts'
import type { Context } from './context.ts'
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
export async function missingCustomers({ source, target, known }: Context, references: Reference[]): Promise<Line[]> {
  const byId = new Map(references.map((one) => [idOf(one.customer)!, one]))
  const stored = await known('profiles', [...byId.keys()].map(recordId))
  const lines: Line[] = []
  for (const [id, { customer, seenAt }] of byId) {
    if (stored.has(recordId(id))) continue
    const found = typeof customer === 'string' ? await source.one<AnyCustomer>('customers', id) : customer
    lines.push(...(found && !found.deleted ? customerLines(found, target) : deletedCustomerLines(id, seenAt)))
  }
  return lines
}

/** The lines of products that are not stored. */
async function missingProducts(context: Context, references: { product: string; seenAt: number }[]): Promise<Line[]> {
  const { source, known } = context
  const byId = new Map(references.map((one) => [one.product, one]))
  const stored = await known('products', [...byId.keys()].map(recordId))
  const lines: Line[] = []
  for (const [id, { seenAt }] of byId) {
    if (stored.has(recordId(id))) continue
    const found = await source.one<Stripe.Product>('products', id)
    lines.push(found ? await productWithPrices(context, found) : missingProductLine(id, seenAt))
  }
  return lines
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
  const references = converted.map(({ subscription: { customer, created, items } }) => ({
    ...{ customer, seenAt: created },
    product: productOf(items.data[0]!.price),
  }))
  return [
    ...(await missingCustomers(context, references)),
    ...(await missingProducts(context, references)),
    ...converted.map(({ line }) => line),
  ]
}

/** The line of a product with all its prices, including inactive ones; a price that cannot be imported is left out. */
export async function productWithPrices(context: Context, product: Stripe.Product): Promise<Line> {
  const prices: Stripe.Price[] = []
  const params = { product: product.id, expand: ['data.tiers'] }
  for await (const page of context.source.pages<Stripe.Price>('/v1/prices', params)) prices.push(...page)
  return productLine(product, await each(context, prices, priceOf))
}
