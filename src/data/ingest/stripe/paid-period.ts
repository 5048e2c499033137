// Until when a subscription at Stripe is paid, read from its invoices: Stripe begins the next period also without a payment.
import type { Stripe } from 'stripe'
import { pathOf } from '../../../payments/providers/stripe/api.ts'
import { idOf } from './convert.ts'
import { lengthOf } from './item-length.ts'
import type { StripeSource } from './source.ts'

/** In seconds. */
export interface Period {
  start: number
  end: number
}

type Line = Stripe.InvoiceLineItem

// The latest one is nearly always for a period.
const FEW = 3

/** The last paid period, if the present one may be unpaid; an empty one if only other things were paid, null if nothing was. */
export async function paidPeriodOf(
  source: StripeSource,
  subscription: Stripe.Subscription,
): Promise<Period | null | undefined> {
  const { id, items } = subscription
  if (!mayBeUnpaid(subscription)) return undefined
  const params = { subscription: id, status: 'paid', limit: FEW }
  let empty: Period | null = null
  let rest: Period | undefined
  for await (const page of source.pages<Stripe.Invoice>('/v1/invoices', params))
    for (const invoice of page) {
      empty ??= { start: invoice.created, end: invoice.created }
      const lines = await linesOf(source, invoice)
      if (lines.length === 0) return rest ?? withoutLines(invoice, items.data[0])
      const forPeriods = lines.filter((line) => isForPeriod(line, subscription))
      // An item that was removed may have had a longer interval.
      const present = forPeriods.filter((line) => itemOf(line, items.data) !== undefined)
      const paid = present.length > 0 ? present : forPeriods
      if (paid.length === 0) continue
      const last = paid.reduce((found, one) => (isLater(one.period, found.period) ? one : found))
      if (!isProration(last)) return rest ? begunBefore(rest, last.period) : last.period
      rest ??= last.period
    }
  return rest ?? empty
}

/** What is left of a period, as it is paid for after a change to a more expensive price, began with the period. */
const begunBefore = (rest: Period, { start, end }: Period): Period =>
  start < rest.start && rest.start < end ? { start, end: rest.end } : rest

/** Of periods with the same end the whole one is taken. */
const isLater = (one: Period, other: Period) =>
  one.end > other.end || (one.end === other.end && one.start < other.start)

const isProration = ({ parent }: Line): boolean =>
  Boolean(parent?.invoice_item_details?.proration || parent?.subscription_item_details?.proration)

function mayBeUnpaid({ status, pause_collection }: Stripe.Subscription): boolean {
  if (status === 'active') return Boolean(pause_collection)
  return status === 'past_due' || status === 'unpaid' || status === 'paused'
}

/** An invoice contains its first ten lines, of which the changes within the last period come first. */
async function linesOf(source: StripeSource, { id, lines }: Stripe.Invoice): Promise<Line[]> {
  if (!lines?.has_more) return lines?.data ?? []
  const all: Line[] = []
  for await (const page of source.pages<Line>(pathOf('invoices', id, 'lines'), {})) all.push(...page)
  return all
}

/**
 * Whether the line is for a period of the subscription: not for a thing that was sold with it, for time that was given back, as after
 * a change to a cheaper price, for an item whose interval is longer than that of the subscription, or for another subscription.
 */
function isForPeriod(line: Line, { id, items: { data: items } }: Stripe.Subscription): boolean {
  const { amount, period, parent } = line
  const single = parent?.invoice_item_details
  if (!period || amount < 0 || (single && !single.proration)) return false
  if ((subscriptionIn(line) ?? id) !== id) return false
  const item = itemOf(line, items)
  return !item || items.every((other) => lengthOf(item) <= lengthOf(other))
}

/** The item that a line is for: the line of a change may name its price alone. */
function itemOf({ parent, pricing }: Line, items: Stripe.SubscriptionItem[]): Stripe.SubscriptionItem | undefined {
  const price = idOf(pricing?.price_details?.price)
  return (
    items.find(({ id }) => id === parent?.subscription_item_details?.subscription_item) ??
    items.find((item) => item.price.id === price)
  )
}

/** The subscription that a line of an invoice names. Stripe's newer objects have it in the parent alone. */
export const subscriptionIn = ({ subscription, parent }: Line): string | undefined =>
  idOf(subscription) ??
  idOf(parent?.subscription_item_details?.subscription) ??
  idOf(parent?.invoice_item_details?.subscription)

function withoutLines({ created }: Stripe.Invoice, item: Stripe.SubscriptionItem | undefined): Period {
  const { current_period_start: start = created, current_period_end: end = start } = item ?? {}
  return created >= start ? { start, end } : { start: created, end: start }
}
