// The saved card of each payment: the used one, or another card of its customer that can be charged without them.
import type { Stripe } from 'stripe'
import type { Context } from './context.ts'
import { idOf } from './convert.ts'
import type { AnyCustomer } from './customers.ts'
import { type Charge, usedCard } from './payments.ts'

/**
 * The card of each of these charges that has one, by the charge's id. If the used one is gone: the customer's default payment method,
 * then that of the subscription that the charge paid for, then the customer's default of Stripe's older API. `subscriptionOf` returns
 * the subscription of a charge.
 */
export async function savedCards(
  { source }: Pick<Context, 'source'>,
  charges: Charge[],
  subscriptionOf: (charge: Charge) => string | undefined,
): Promise<Map<string, string>> {
  const method = remembered((id) => source.one<Stripe.PaymentMethod>('payment_methods', id))
  const subscription = remembered((id) => source.one<Stripe.Subscription>('subscriptions', id))
  const isUsable = async (id: string, customer: string) => {
    const found = await method(id)
    return found?.type === 'card' && idOf(found.customer) === customer
  }
  const cards = new Map<string, string>()
  for (const charge of charges) {
    const customer = charge.customer as AnyCustomer | null
    if (charge.status !== 'succeeded' || !customer || customer.deleted) continue
    const used = usedCard(charge)
    if (used !== undefined) {
      cards.set(charge.id, used)
      continue
    }
    for await (const candidate of candidatesOf(charge, customer, () => defaultOf(charge, subscriptionOf, subscription)))
      if (await isUsable(candidate, customer.id)) {
        cards.set(charge.id, candidate)
        break
      }
  }
  return cards
}

/** Cards that may be usable, the best first. */
async function* candidatesOf(
  charge: Charge,
  customer: Stripe.Customer,
  defaultOfSubscription: () => Promise<string | undefined>,
): AsyncGenerator<string> {
  // Without a PaymentIntent: a charge of Stripe's older API, with a card of the customer.
  const { payment_intent, payment_method } = charge
  if (payment_intent === null && typeof payment_method === 'string' && /^(card|pm)_/.test(payment_method))
    yield payment_method
  const ofCustomer = idOf(customer.invoice_settings?.default_payment_method)
  if (ofCustomer !== undefined) yield ofCustomer
  const ofSubscription = await defaultOfSubscription()
  if (ofSubscription !== undefined) yield ofSubscription
  const older = idOf(customer.default_source as string | { id: string } | null)
  if (older?.startsWith('card_')) yield older
}

/** Read only where the customer pays by card, because it takes a call. */
async function defaultOf(
  charge: Charge,
  subscriptionOf: (charge: Charge) => string | undefined,
  read: (id: string) => Promise<Stripe.Subscription | undefined>,
): Promise<string | undefined> {
  const id = subscriptionOf(charge)
  if (id === undefined || charge.payment_method_details?.type !== 'card') return undefined
  const subscription = await read(id)
  return (
    idOf(subscription?.default_payment_method) ?? idOf(subscription?.default_source as string | { id: string } | null)
  )
}

/** Reads each object once. */
function remembered<T>(read: (id: string) => Promise<T>): (id: string) => Promise<T> {
  const known = new Map<string, Promise<T>>()
  return (id) => {
    const found = known.get(id) ?? read(id)
    known.set(id, found)
    return found
  }
}
