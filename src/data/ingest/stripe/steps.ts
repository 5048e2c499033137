// The lists of a Stripe account in the order of their references, and how a page of each becomes lines of an import.
import type { Stripe } from 'stripe'
import type { Params } from '../../../payments/providers/stripe/api.ts'
import type { Context } from './context.ts'
import { idOf, type Line, monthOf, recordId } from './convert.ts'
import { type AnyCustomer, customerLines, unusableId } from './customers.ts'
import { each } from './each.ts'
import { convertFees } from './fees.ts'
import { namesIn } from './names.ts'
import { subscriptionIn } from './paid-period.ts'
import { convertCharges, convertDisputes, convertRefunds } from './payment-steps.ts'
import { convertPayouts } from './payouts.ts'
import { productWithPrices, subscriptionLines } from './references.ts'
import { NotPermitted } from './source.ts'
import { add, changed, type Rejecting, reject } from './tally.ts'

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
  // Before what was bought: only a checkout session has the metadata that a shop gave it. Keys may lack the permission.
  step('checkout/sessions', { isOptional: true }, convertCheckouts),
  step('subscriptions', { params: { status: 'all' }, expand: ['customer'] }, convertSubscriptions),
  // Before charges: only an invoice links a charge to its subscription.
  step('invoices', { expand: ['payments'] }, convertInvoices),
  step('charges', { expand: ['customer', 'payment_intent.payment_method'] }, convertCharges),
  step('refunds', { expand: ['charge.customer'] }, convertRefunds),
  step('disputes', { expand: ['charge.customer'] }, convertDisputes),
  // After what refers to them, because that may name the profile of a customer.
  step('customers', {}, convertCustomers),
  // Keys made before fees were read may lack the permission.
  step('balance_transactions', { expand: ['source'], isOptional: true }, convertFees),
  step('payouts', { isOptional: true }, convertPayouts),
]

/** Notes that the secret key may not read an optional step; throws every other error again. */
export function leaveOut({ name, isOptional }: Step, rejecting: Rejecting, error: unknown): void {
  if (!isOptional || !(error instanceof NotPermitted)) throw error
  reject(rejecting, name, `were left out. ${error.message}`)
}

async function convertProducts(
  context: Context,
  products: (Stripe.Product | Stripe.DeletedProduct)[],
): Promise<Line[]> {
  const living = products.filter((product): product is Stripe.Product => !product.deleted)
  add(context.tally, 'stripe', { kind: 'products' }, living.length)
  const gone = products.filter(({ deleted }) => deleted).map(({ id }) => recordId(id))
  const stored = await context.known('products', gone)
  return [
    ...(await each(context, living, (product) => productWithPrices(context, product))),
    ...Array.from(stored, (id) => ({ record: 'product', data: { id, status: 'archived' } })),
  ]
}

async function convertCustomers(context: Context, customers: AnyCustomer[]): Promise<Line[]> {
  const living = customers.filter((customer): customer is Stripe.Customer => !customer.deleted)
  add(context.tally, 'stripe', { kind: 'customers' }, living.length)
  return (
    await each(context, living, (customer) => {
      const why = unusableId(customer, context.target)
      if (why) changed(context, customer.id, why)
      return customerLines(customer, context.target)
    })
  ).flat()
}

async function convertSubscriptions(context: Context, subscriptions: Stripe.Subscription[]): Promise<Line[]> {
  const dated = await each(context, subscriptions, (one) => {
    const key = { kind: 'subscriptions', month: monthOf(one.created), currency: one.currency.toUpperCase() }
    add(context.tally, 'stripe', key, 1)
    return one
  })
  return subscriptionLines(context, dated)
}

/** Notes what the metadata of sessions names, for what was bought in them; they are no records. */
async function convertCheckouts(context: Context, sessions: Stripe.Checkout.Session[]): Promise<Line[]> {
  const named = sessions.flatMap((session) => {
    const names = namesIn(context.target.metadata, session)
    const bought = idOf(session.subscription) ?? idOf(session.payment_intent)
    return bought === undefined || Object.keys(names).length === 0 ? [] : [[bought, names] as const]
  })
  await context.checkouts.add(new Map(named))
  return []
}

/** Notes which payments belong to which subscriptions; invoices are no records. */
async function convertInvoices(context: Context, invoices: Stripe.Invoice[]): Promise<Line[]> {
  const found = await each(context, invoices, async (invoice) => {
    const subscription_id = subscriptionOf(invoice)
    if (subscription_id === undefined) return []
    return (await paymentsOf(context, invoice)).flatMap(({ payment }) => {
      const id = idOf(payment?.payment_intent) ?? idOf(payment?.charge)
      return id === undefined ? [] : [[id, subscription_id] as const]
    })
  })
  await context.links.add(new Map(found.flat()))
  return []
}

/** An invoice that a quote or a person made may name the subscription in its lines alone. */
const subscriptionOf = ({ parent, lines }: Stripe.Invoice) =>
  idOf(parent?.subscription_details?.subscription) ?? lines?.data.map(subscriptionIn).find((id) => id !== undefined)

/** An invoice contains its first ten payments. */
export async function paymentsOf(
  { source }: Pick<Context, 'source'>,
  { id, payments }: Stripe.Invoice,
): Promise<Stripe.InvoicePayment[]> {
  if (!payments?.has_more) return payments?.data ?? []
  const all: Stripe.InvoicePayment[] = []
  for await (const page of source.pages<Stripe.InvoicePayment>('/v1/invoice_payments', { invoice: id }))
    all.push(...page)
  return all
}
