// Completes subscriptions with what Stripe's lists leave out: more than ten items, tiers, other currencies, discounts, and
// until when they are paid.
import type { Stripe } from 'stripe'
import type { Context } from './context.ts'
import { Inconvertible, idOf } from './convert.ts'
import { type Period, paidPeriodOf } from './paid-period.ts'

type Subscription = Stripe.Subscription
type Discounts = (string | Stripe.Discount)[]

export interface Completed {
  /** With all items, and what their prices and discounts need. */
  subscription: Subscription
  /** Those of the subscription, or if it has none those of the customer. */
  discounts: Discounts
  /** The last paid period, if the present one may be unpaid; null: none was paid. */
  paid: Period | null | undefined
}

const COUPONS = { expand: ['discounts.source.coupon.applies_to', 'discounts.source.coupon.currency_options'] }

/** The prices that were read alone, by id and currency. */
export type Prices = Map<string, Stripe.Price | undefined>

/** @param given with its customer expanded */
export async function complete(context: Context, given: Subscription, prices: Prices): Promise<Completed> {
  // By its published type it has one. One that only names an Account of another API may have none.
  if (!given.customer) throw new Inconvertible('belongs to no customer')
  const data = []
  for (const item of await itemsOf(context, given)) data.push(await completeItem(context, item, given.currency, prices))
  const subscription = { ...given, items: { ...given.items, data } }
  const discounts = await discountsOf(context, given)
  return { subscription, discounts, paid: await paidPeriodOf(context.source, subscription) }
}

/** A subscription contains its first ten items. */
async function itemsOf({ source }: Context, { id, items }: Subscription): Promise<Stripe.SubscriptionItem[]> {
  if (!items.has_more) return items.data
  const all: Stripe.SubscriptionItem[] = []
  for await (const page of source.pages<Stripe.SubscriptionItem>('/v1/subscription_items', { subscription: id }))
    all.push(...page)
  return all
}

async function completeItem(
  { source }: Context,
  item: Stripe.SubscriptionItem,
  currency: string,
  prices: Prices,
): Promise<Stripe.SubscriptionItem> {
  const discounts: Discounts =
    item.discounts?.length > 0
      ? ((await source.one<Stripe.SubscriptionItem>('subscription_items', item.id, COUPONS))?.discounts ??
        item.discounts)
      : []
  const { id, billing_scheme } = item.price
  if (billing_scheme !== 'tiered' && item.price.currency === currency) return { ...item, discounts }
  const key = `${id} ${currency}`
  if (!prices.has(key)) prices.set(key, await readPrice(source, item.price, currency))
  return { ...item, discounts, price: prices.get(key) ?? item.price }
}

/** Stripe returns tiers, and the amounts of other currencies, only when a price is read alone. */
async function readPrice(
  source: Context['source'],
  { id, billing_scheme, currency: own }: Stripe.Price,
  currency: string,
): Promise<Stripe.Price | undefined> {
  const price = await source.one<Stripe.Price>('prices', id, { expand: ['tiers', 'currency_options'] })
  if (billing_scheme !== 'tiered' || own === currency || price?.currency_options?.[currency]?.tiers) return price
  const path = `currency_options.${currency}.tiers`
  return (await source.one<Stripe.Price>('prices', id, { expand: [path] })) ?? price
}

async function discountsOf({ source }: Context, { id, discounts, customer }: Subscription): Promise<Discounts> {
  if (discounts.length > 0)
    return (await source.one<Subscription>('subscriptions', id, COUPONS))?.discounts ?? discounts
  const discount = typeof customer === 'string' || customer.deleted ? undefined : customer.discount
  if (!discount) return []
  const expand = COUPONS.expand.map((path) => path.replace('discounts', 'discount'))
  const found = await source.one<Stripe.Customer>('customers', idOf(customer)!, { expand })
  return [found?.discount ?? discount]
}
