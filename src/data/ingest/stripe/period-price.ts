// What the next full period of a subscription at Stripe costs: all its items, less the discounts that still apply.
import type { Stripe } from 'stripe'
import { type Fraction, fraction, fractionOf, plus, times, ZERO } from '../../../lib/fraction.ts'
import type { Completed } from './complete.ts'
import { Inconvertible } from './convert.ts'
import { costOf, roundedMinor } from './item-cost.ts'
import { lengthOf } from './item-length.ts'
import { productOf } from './products.ts'

type Item = Stripe.SubscriptionItem

export interface PeriodPrice {
  /** In minor units of ISO 4217. */
  price: number
  /** What the price does not include; null if it includes everything. */
  note: string | null
  /** The item with the shortest interval, whose period is that of the subscription. */
  item: Item & { price: { recurring: Stripe.Price.Recurring } }
}

interface Part {
  product: string
  cost: Fraction
}

/** Throws `Inconvertible` if a part of the price is not known. */
export function periodPrice({ subscription, discounts }: Completed): PeriodPrice {
  const { currency } = subscription
  const items = subscription.items.data
  const [first, ...others] = items
  if (!first) throw new Inconvertible('has no item')
  const shortest = others.reduce((found, item) => (lengthOf(item) < lengthOf(found) ? item : found), first)
  const start = shortest.current_period_end
  const parts = items.map((item) => ({
    product: productOf(item.price),
    cost: costOfItem(item, currency, start, shortest),
  }))
  const sum = discounted(parts, discounts, { currency, start }).reduce((all, { cost }) => plus(all, cost), ZERO)
  return {
    price: roundedMinor(sum, currency),
    note: noteOf(subscription),
    item: shortest as PeriodPrice['item'],
  }
}

/** Schedules and trial offers are not read, which would be a call for each subscription that has one. */
function noteOf({ items, schedule, ended_at }: Stripe.Subscription): string | null {
  const notes = [
    ...(items.data.some(isMetered) ? ['Metered usage is not included.'] : []),
    ...(schedule && !ended_at ? ['A subscription schedule at Stripe may change the price.'] : []),
    ...(items.data.some(({ current_trial }) => current_trial) && !ended_at
      ? ['The end of a trial offer at Stripe may change the price.']
      : []),
  ]
  return notes.join(' ') || null
}

function isMetered({ price }: Item): boolean {
  const type = price.recurring?.usage_type
  if (type === 'metered' || type === 'licensed') return type === 'metered'
  throw new Inconvertible(`has the price ${price.id} with the unknown usage type ${JSON.stringify(type)}`)
}

/** In the interval of the shortest item, so that a year counts as the twelfth part in a month. */
function costOfItem(item: Item, currency: string, start: number, shortest: Item): Fraction {
  if (isMetered(item)) return ZERO
  const cost = costOf(item.price, item.quantity ?? 1, currency)
  const own = discounted([{ product: productOf(item.price), cost }], item.discounts, { currency, start })
  return times(own[0]!.cost, fraction(BigInt(lengthOf(shortest)), BigInt(lengthOf(item))))
}

/** Applies the discounts one after the other. Those that end before the next period, or count once, do not apply. */
function discounted(
  parts: Part[],
  discounts: readonly (string | Stripe.Discount)[],
  { currency, start }: { currency: string; start: number },
): Part[] {
  return discounts.reduce((before, discount) => {
    if (typeof discount === 'string') throw untold(discount)
    const coupon = discount.source?.coupon
    if (!coupon || typeof coupon === 'string') throw untold(discount.id)
    return lasts(coupon, discount.end, start) ? applied(before, coupon, currency) : before
  }, parts)
}

const untold = (id: string) => new Inconvertible(`has the discount ${id}, whose coupon Stripe does not tell`)

function lasts({ id, duration }: Stripe.Coupon, end: number | null, start: number): boolean {
  if (duration === 'forever') return true
  if (duration === 'once') return false
  if (duration === 'repeating') return end === null || end > start
  throw new Inconvertible(`has the coupon ${id} with the unknown duration ${JSON.stringify(duration)}`)
}

function applied(parts: Part[], coupon: Stripe.Coupon, currency: string): Part[] {
  const products = coupon.applies_to?.products ?? []
  const isMeant = ({ product }: Part) => products.length === 0 || products.includes(product)
  const factor = factorOf(coupon, parts.filter(isMeant), currency)
  return parts.map((part) => (isMeant(part) ? { ...part, cost: times(part.cost, factor) } : part))
}

/** What remains of each unit; an amount is taken off all meant parts in proportion. */
function factorOf(coupon: Stripe.Coupon, meant: Part[], currency: string): Fraction {
  const off = coupon.percent_off === null ? undefined : fractionOf(String(coupon.percent_off))
  if (off) return notBelowZero(plus(fraction(1n), times(off, fraction(-1n, 100n))))
  const amount = coupon.currency === currency ? coupon.amount_off : coupon.currency_options?.[currency]?.amount_off
  if (amount === null || amount === undefined || !Number.isSafeInteger(amount))
    throw new Inconvertible(`has the coupon ${coupon.id} without an amount in ${currency.toUpperCase()}`)
  const sum = meant.reduce((all, { cost }) => plus(all, cost), ZERO)
  if (sum.over <= 0n) return fraction(1n)
  return notBelowZero(plus(fraction(1n), times(fraction(-BigInt(amount)), fraction(sum.under, sum.over))))
}

const notBelowZero = (value: Fraction) => (value.over < 0n ? ZERO : value)
