// The interval in which an item of a subscription is billed.
import type { Stripe } from 'stripe'
import { Inconvertible } from './convert.ts'

type Item = Pick<Stripe.SubscriptionItem, 'price'>

// In sixteenths of a day: a year has 12 months of 30.4375 days, as in figures.
const LENGTHS: Record<string, number> = { day: 16, week: 7 * 16, month: 487, year: 12 * 487 }

/** Throws `Inconvertible`. */
export function lengthOf({ price }: Item): number {
  const { interval, interval_count } = price.recurring ?? {}
  const length = LENGTHS[interval ?? '']
  if (length && Number.isSafeInteger(interval_count) && interval_count! > 0) return length * interval_count!
  throw new Inconvertible(`has the price ${price.id} with the unknown interval ${JSON.stringify(price.recurring)}`)
}
