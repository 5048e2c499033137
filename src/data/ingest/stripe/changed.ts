// Which objects at Stripe may have changed after an event, or after another object that changed.
import type { Stripe } from 'stripe'
import { entryIdsOf } from '../../../payments/providers/stripe/fees.ts'
import { fieldsOf } from '../../../payments/providers/transport.ts'
import type { Context } from './context.ts'
import { idOf } from './convert.ts'
import { paymentsOf, type Step } from './steps.ts'

/** Names an object at Stripe by the collection of its step. */
export interface Changed {
  collection: string
  id: string
}

interface EventObject {
  object: string
  id: string
  customer?: string | { id: string } | null
  product?: string | { id: string }
  invoice?: string | { id: string } | null
  subscription?: string | { id: string } | null
  released_subscription?: string | null
  parent?: Pick<NonNullable<Stripe.Invoice['parent']>, 'subscription_details'> | null
}

const COLLECTIONS: Record<string, string> = {
  'checkout.session': 'checkout/sessions',
  customer: 'customers',
  product: 'products',
  subscription: 'subscriptions',
  invoice: 'invoices',
  charge: 'charges',
  refund: 'refunds',
  dispute: 'disputes',
  payout: 'payouts',
}

/** An event as in Stripe's API and notifications. */
export interface StripeEvent {
  type: string
  data: { object: unknown; previous_attributes?: unknown }
}

/** The objects to read again after an event; none for kinds that are not imported, and for events of another form. */
export function changedBy({ type, data }: StripeEvent): Changed[] {
  const { object, previous_attributes } = fieldsOf(data)
  const changed = changedWith(type, fieldsOf(object) as unknown as EventObject, fieldsOf(previous_attributes))
  return changed.filter(({ id }) => typeof id === 'string' && id !== '')
}

function changedWith(
  type: string,
  object: EventObject,
  before: { customer?: string | null; invoice_settings?: unknown },
): Changed[] {
  const collection = COLLECTIONS[object.object]
  const entries = entryIdsOf({ ...object }).map((id) => ({ collection: BALANCE, id }))
  const own = collection ? [{ collection, id: object.id }, ...entries] : []
  if (object.object === 'payment_method') {
    const id = idOf(object.customer) ?? before.customer
    return id ? [{ collection: CARDS, id }] : []
  }
  if (isCardOfOlderApi(object)) {
    const id = idOf(object.customer)
    return id ? [{ collection: CARDS, id }] : []
  }
  if (object.object === 'subscription' && ('default_payment_method' in before || 'default_source' in before)) {
    const id = idOf(object.customer)
    return id ? [...own, { collection: CARDS, id }] : own
  }
  if (object.object === 'customer') {
    const isCard = type === 'customer.deleted' || before.invoice_settings !== undefined || 'default_source' in before
    return isCard ? [...own, { collection: CARDS, id: object.id }] : own
  }
  if (object.object === 'invoice') {
    // Before its payments: until when it is a trial says what they are for. Events are in the account's version of the API, older ones
    // of which had no parent.
    const id = idOf(object.parent?.subscription_details?.subscription) ?? idOf(object.subscription)
    return id ? [{ collection: 'subscriptions', id }, ...own] : own
  }
  // Part of an invoice may be paid.
  if (object.object === 'invoice_payment') return [{ collection: 'invoices', id: idOf(object.invoice)! }]
  if (object.object === 'discount') {
    const [subscription, customer] = [idOf(object.subscription), idOf(object.customer)]
    if (subscription) return [{ collection: 'subscriptions', id: subscription }]
    return customer ? [{ collection: DISCOUNTS, id: customer }] : []
  }
  if (object.object === 'subscription_schedule') {
    // A subscription has a note while a schedule may change its price. One that was released names it in another field.
    const id = idOf(object.subscription) ?? idOf(object.released_subscription)
    return id ? [{ collection: 'subscriptions', id }] : []
  }
  if (object.object === 'price') return [{ collection: 'products', id: idOf(object.product)! }]
  if (object.object === 'payment_intent') return [{ collection: INTENTS, id: object.id }]
  return own
}

// Charges that are found by another object: the import knows saved cards by their payments.
export const CARDS = 'cards'
export const INTENTS = 'intents'
// The subscriptions of a customer.
export const DISCOUNTS = 'discounts'
export const BALANCE = 'balance_transactions'

const isCardOfOlderApi = ({ object }: EventObject) => object === 'card' || object === 'source'

/** The objects to read again after one that was read. */
export async function ledToBy(context: Context, { name }: Step, object: object): Promise<Changed[]> {
  if (name === 'checkout/sessions') return boughtIn(object as Stripe.Checkout.Session)
  // Invoices link payments to subscriptions, so their payments are read again, too.
  if (name === 'invoices') return (await paymentsOf(context, object as Stripe.Invoice)).flatMap(paidIn)
  return []
}

/** What was bought is read again, because the session names its records. */
function boughtIn(session: Stripe.Checkout.Session): Changed[] {
  const [subscription, intent] = [idOf(session.subscription), idOf(session.payment_intent)]
  if (subscription) return [{ collection: 'subscriptions', id: subscription }]
  return intent ? [{ collection: INTENTS, id: intent }] : []
}

function paidIn({ payment }: Stripe.InvoicePayment): Changed[] {
  const [charge, intent] = [idOf(payment?.charge), idOf(payment?.payment_intent)]
  if (charge) return [{ collection: 'charges', id: charge }]
  return intent ? [{ collection: INTENTS, id: intent }] : []
}
