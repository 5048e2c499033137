// The lists of a Stripe account in the order of their references, and how a page of each becomes lines of an import.
import type { Stripe } from 'stripe'
import { isUuid } from '../../../lib/ids.ts'
import type { Params } from '../../../payments/providers/stripe/api.ts'
import { returnedAmount } from '../../../payments/providers/stripe/disputes.ts'
import type { Context } from './context.ts'
import { Inconvertible, idOf, type Line, minorUnits } from './convert.ts'
import { type AnyCustomer, customerLines } from './customers.ts'
import { convertFees } from './fees.ts'
import { type Charge, chargeLines, customerOf, disputeLines, guestLines, isDecided, refundLines } from './payments.ts'
import { productLine } from './products.ts'
import {
  defaultCards,
  missingCustomers,
  missingSubscriptions,
  pricesOf,
  type Reference,
  readTiers,
  subscriptionReferences,
} from './references.ts'
import { NotPermitted } from './source.ts'
import { subscriptionLine } from './subscriptions.ts'
import { add, reject } from './tally.ts'

export interface Step {
  name: string
  path: string
  /** The collection of a single object, for refreshing it. */
  collection: string
  params: Params
  /** The expansions of a single object. */
  expand: string[]
  /** Skipped if the secret key has no permission to read it: the import does not depend on it. */
  isOptional: boolean
  /** The lines of these objects and of the objects they refer to, if those are not stored; adds them to the tally. */
  convert(context: Context, objects: never[]): Promise<Line[]>
}

const step = <T>(
  name: string,
  { expand = [], params = {}, isOptional = false }: { expand?: string[]; params?: Params; isOptional?: boolean },
  convert: (context: Context, objects: T[]) => Promise<Line[]>,
): Step => ({
  name,
  path: `/v1/${name}`,
  collection: name,
  params: { ...params, ...(expand.length > 0 && { expand: expand.map((path) => `data.${path}`) }) },
  expand,
  isOptional,
  convert: convert as Step['convert'],
})

export const STEPS: readonly Step[] = [
  step('products', {}, convertProducts),
  step('customers', {}, convertCustomers),
  step('subscriptions', { params: { status: 'all' } }, convertSubscriptions),
  // Before charges: only an invoice links a charge to its subscription.
  step('invoices', { expand: ['payments'] }, convertInvoices),
  step('charges', { expand: ['customer', 'payment_intent.payment_method'] }, convertCharges),
  step('refunds', { expand: ['charge.customer'] }, convertRefunds),
  step('disputes', { expand: ['charge.customer'] }, convertDisputes),
  // Keys made before fees were read may lack the permission.
  step('balance_transactions', { expand: ['source'], isOptional: true }, convertFees),
]

/** Notes that the secret key may not read an optional step; throws every other error again. */
export function leaveOut({ name, isOptional }: Step, { tally }: Pick<Context, 'tally'>, error: unknown): void {
  if (!isOptional || !(error instanceof NotPermitted)) throw error
  reject(tally, name, `were left out. ${error.message}`)
}

/** The lines of each object; one that cannot be converted is rejected alone. */
function eachLines<T extends { id: string }>({ tally }: Context, objects: T[], convert: (object: T) => Line[]): Line[] {
  return objects.flatMap((object) => {
    try {
      return convert(object)
    } catch (error) {
      if (!(error instanceof Inconvertible)) throw error
      reject(tally, object.id, error.message)
      return []
    }
  })
}

async function convertProducts(context: Context, products: Stripe.Product[]): Promise<Line[]> {
  add(context.tally, 'stripe', { kind: 'products' }, products.length)
  const prices = new Map<string, Stripe.Price[]>()
  for (const { id } of products) prices.set(id, await pricesOf(context.source, id))
  return eachLines(context, products, (product) => [productLine(product, prices.get(product.id)!)])
}

async function convertCustomers(context: Context, customers: AnyCustomer[]): Promise<Line[]> {
  const living = customers.filter((customer): customer is Stripe.Customer => !customer.deleted)
  add(context.tally, 'stripe', { kind: 'customers' }, living.length)
  return eachLines(context, living, (customer) => customerLines(customer, context.target))
}

async function convertSubscriptions(context: Context, subscriptions: Stripe.Subscription[]): Promise<Line[]> {
  for (const { created, currency } of subscriptions)
    add(
      context.tally,
      'stripe',
      { kind: 'subscriptions', month: monthOf(created), currency: currency.toUpperCase() },
      1,
    )
  await readTiers(context, subscriptions)
  const references = await subscriptionReferences(context, subscriptions)
  return [...references, ...eachLines(context, subscriptions, (one) => [subscriptionLine(one)])]
}

/** Notes which payments belong to which subscriptions; invoices are no records of their own. */
async function convertInvoices({ links }: Context, invoices: Stripe.Invoice[]): Promise<Line[]> {
  const found = invoices.flatMap((invoice) => {
    const subscription_id = idOf(invoice.parent?.subscription_details?.subscription)
    if (subscription_id === undefined) return []
    return (invoice.payments?.data ?? []).flatMap(({ payment }) => {
      const id = idOf(payment?.payment_intent) ?? idOf(payment?.charge)
      return id === undefined ? [] : [{ payment: id, subscription_id }]
    })
  })
  if (found.length > 0) await links.add(found)
  return []
}

async function convertCharges(context: Context, all: Charge[]): Promise<Line[]> {
  const charges = await foreign(context, all.filter(isDecided), (charge) => charge)
  const payments = charges.flatMap((charge) => [idOf(charge.payment_intent) ?? [], charge.id].flat())
  const links = await context.links.find(payments)
  const linked = (charge: Charge) => links.get(idOf(charge.payment_intent) ?? '') ?? links.get(charge.id)
  const subscriptions = await missingSubscriptions(
    context,
    charges.flatMap((charge) => linked(charge) ?? []),
  )
  const references = [
    ...(await missingCustomers(context, charges.flatMap(customerReference))),
    ...subscriptions.lines,
    ...charges.filter((charge) => customerOf(charge) === undefined).flatMap(guestLines),
  ]
  const cards = await defaultCards(context, charges)
  for (const charge of charges) {
    const succeeded = charge.status === 'succeeded'
    const kind = succeeded ? 'payments' : 'failed payments'
    count(context, kind, succeeded ? charge.amount_captured : charge.amount, charge)
  }
  const lines = eachLines(context, charges, (charge) => {
    const subscriptionId = linked(charge)
    const isThere = subscriptionId !== undefined && !subscriptions.gone.has(subscriptionId)
    return chargeLines(charge, context.target, { invoiced: isThere ? { subscriptionId } : undefined, cards })
  })
  return [...references, ...lines]
}

async function convertRefunds(context: Context, all: Stripe.Refund[]): Promise<Line[]> {
  const refunds = await foreign(context, all, ({ charge }) => charge as Stripe.Charge)
  for (const { amount, status, failure_balance_transaction, ...refund } of refunds) {
    const failed = status === 'failed' || status === 'canceled'
    if (status === 'succeeded' || (failed && failure_balance_transaction)) count(context, 'refunds', amount, refund)
    if (failed) count(context, 'failed refunds', amount, refund)
  }
  const references = await chargeReferences(context, refunds)
  return [...references, ...eachLines(context, refunds, (refund) => refundLines(refund, context.target))]
}

async function convertDisputes(context: Context, all: Stripe.Dispute[]): Promise<Line[]> {
  const disputes = await foreign(context, all, ({ charge }) => charge as Stripe.Charge)
  for (const { balance_transactions, ...dispute } of disputes) {
    for (const moved of balance_transactions) {
      const took = moved.amount < 0
      const amount = took ? dispute.amount : returnedAmount({ ...dispute, balance_transactions })
      const kind = took ? 'chargebacks' : 'reversed chargebacks'
      if (moved.amount !== 0) count(context, kind, amount, { created: moved.created, currency: dispute.currency })
    }
  }
  const references = await chargeReferences(context, disputes)
  return [...references, ...eachLines(context, disputes, (dispute) => disputeLines(dispute, context.target))]
}

/** Without the objects of charges made by Tundish itself, whose own records are authoritative. */
async function foreign<T>(context: Context, objects: T[], chargeOf: (object: T) => Stripe.Charge): Promise<T[]> {
  const orderOf = (object: T) => chargeOf(object)?.metadata?.['tundish_order'] ?? ''
  const orders = objects.map(orderOf).filter(isUuid)
  if (orders.length === 0) return objects
  const rows = await context.db.query(
    'select order_id from orders where organization_id = $1 and order_id = any($2::uuid[])',
    [context.target.organizationId, orders],
  )
  const ours = new Set(rows.map(({ order_id }) => order_id))
  const others = objects.filter((object) => !ours.has(orderOf(object).toLowerCase()))
  context.tally.own += objects.length - others.length
  return others
}

async function chargeReferences(context: Context, objects: { charge: unknown }[]): Promise<Line[]> {
  const charges = objects.map(({ charge }) => charge as Stripe.Charge)
  const guests = charges.filter((charge) => customerOf(charge) === undefined)
  return [...(await missingCustomers(context, charges.flatMap(customerReference))), ...guests.flatMap(guestLines)]
}

function customerReference({ customer, created }: Stripe.Charge): Reference[] {
  return customer === null ? [] : [{ customer: customer as Reference['customer'], seenAt: created }]
}

/** Adds an amount at Stripe to the tally; one that cannot be converted is rejected later, with its lines. */
function count(
  { tally }: Context,
  kind: string,
  amount: number,
  { created, currency }: { created: number; currency: string },
): void {
  try {
    const minor = minorUnits(amount, currency)
    add(tally, 'stripe', { kind, month: monthOf(created), currency: currency.toUpperCase() }, 1, minor)
  } catch (error) {
    if (!(error instanceof Inconvertible)) throw error
    add(tally, 'stripe', { kind, month: monthOf(created), currency: currency.toUpperCase() }, 1)
  }
}

const monthOf = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 7)
