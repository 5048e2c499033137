// Reads objects that other objects refer to and that are not stored, because they are older than `since` or were deleted.
import type { Stripe } from 'stripe'
import type { Context } from './context.ts'
import { idOf, type Line, recordId } from './convert.ts'
import { type AnyCustomer, customerLines, deletedCustomerLines } from './customers.ts'
import { type Charge, defaultMethod, usedCard } from './payments.ts'
import { missingProductLine, productLine, productOf } from './products.ts'
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

/** The default payment methods that are cards, of the customers of charges whose own card cannot be charged again. */
export async function defaultCards({ source }: Context, charges: Charge[]): Promise<Set<string>> {
  const cards = new Set<string>()
  const without = charges.filter((charge) => charge.status === 'succeeded' && usedCard(charge) === undefined)
  const methods = without.flatMap((charge) => defaultMethod(charge) ?? [])
  for (const id of new Set(methods)) {
    const method = await source.one<Stripe.PaymentMethod>('payment_methods', id)
    if (method?.type === 'card' && method.customer !== null) cards.add(id)
  }
  return cards
}

/** The lines of products that are not stored. */
async function missingProducts(
  { source, known }: Context,
  references: { product: string; seenAt: number }[],
): Promise<Line[]> {
  const byId = new Map(references.map((one) => [one.product, one]))
  const stored = await known('products', [...byId.keys()].map(recordId))
  const lines: Line[] = []
  for (const [id, { seenAt }] of byId) {
    if (stored.has(recordId(id))) continue
    const found = await source.one<Stripe.Product>('products', id)
    lines.push(found ? productLine(found, await pricesOf(source, id)) : missingProductLine(id, seenAt))
  }
  return lines
}

/**
 * The lines of subscriptions that are not stored, with what they refer to; `gone` are the ids that no longer exist at Stripe.
 */
export async function missingSubscriptions(
  context: Context,
  ids: string[],
): Promise<{ lines: Line[]; gone: Set<string> }> {
  const distinct = [...new Set(ids)]
  const stored = await context.known('subscriptions', distinct.map(recordId))
  const found: Stripe.Subscription[] = []
  const gone = new Set<string>()
  for (const id of distinct) {
    if (stored.has(recordId(id))) continue
    const subscription = await context.source.one<Stripe.Subscription>('subscriptions', id)
    if (subscription) found.push(subscription)
    else gone.add(id)
  }
  await readTiers(context, found)
  const references = await subscriptionReferences(context, found)
  return { lines: [...references, ...found.map(subscriptionLine)], gone }
}

/** The lines of objects that subscriptions refer to and that are not stored. */
export async function subscriptionReferences(context: Context, found: Stripe.Subscription[]): Promise<Line[]> {
  const customers = found.map(({ customer, created }) => ({ customer, seenAt: created }))
  const products = found.flatMap(({ items, created }) =>
    items.data.slice(0, 1).map(({ price }) => ({ product: productOf(price), seenAt: created })),
  )
  return [...(await missingCustomers(context, customers)), ...(await missingProducts(context, products))]
}

/** Puts the tiers into the prices of subscriptions: Stripe returns them only when a price is read by itself. */
export async function readTiers({ source }: Context, subscriptions: Stripe.Subscription[]): Promise<void> {
  const read = new Map<string, Stripe.Price | undefined>()
  for (const item of subscriptions.flatMap(({ items }) => items?.data ?? [])) {
    if (item.price?.billing_scheme !== 'tiered') continue
    const { id } = item.price
    if (!read.has(id)) read.set(id, await source.one<Stripe.Price>('prices', id, { expand: ['tiers'] }))
    item.price = read.get(id) ?? item.price
  }
}

/** All prices of a product, including inactive ones. */
export async function pricesOf(source: Context['source'], product: string): Promise<Stripe.Price[]> {
  const prices: Stripe.Price[] = []
  for await (const page of source.pages<Stripe.Price>('/v1/prices', { product, expand: ['data.tiers'] }))
    prices.push(...page)
  return prices
}
