// How pages of charges, refunds and disputes become lines of an import.
import type { Stripe } from 'stripe'
import { disputeMovements } from '../../../payments/providers/stripe/disputes.ts'
import { RELEASED } from '../../../payments/providers/stripe/fees.ts'
import { savedCards } from './cards.ts'
import type { Context } from './context.ts'
import { Inconvertible, idOf, type Line, minorUnits, monthOf, recordId } from './convert.ts'
import { each } from './each.ts'
import { foreign, keepLost } from './own-charges.ts'
import {
  type Charge,
  chargeLines,
  customerOf,
  disputeLines,
  guestLines,
  isDecided,
  refundLines,
  statusOfRefund,
} from './payments.ts'
import { missingCustomers, missingSubscriptions, type Reference } from './references.ts'
import { NotPermitted } from './source.ts'
import { add } from './tally.ts'
import { trialLines } from './trials.ts'

export async function convertCharges(context: Context, all: Charge[]): Promise<Line[]> {
  const decided = (await each(context, all, (charge) => (isDecided(charge) ? [charge] : []))).flat()
  await keepLost(context, decided)
  const charges = await each(context, await foreign(context, decided, (charge) => charge), (charge) => {
    const succeeded = charge.status === 'succeeded'
    const amount = succeeded ? charge.amount_captured : charge.amount
    count(context, succeeded ? 'payments' : 'failed payments', amount, charge)
    return charge
  })
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
    ...(await guests(context, charges)),
  ]
  const intentOf = (charge: Charge) => idOf(charge.payment_intent) ?? ''
  const checkouts = await context.checkouts.find(charges.map(intentOf))
  const cards = await savedCards(context, charges, linked)
  const trials = await trialLines(context, charges, linked, subscriptions.lines)
  const lines = await each(context, charges, (charge) => {
    const subscriptionId = linked(charge)
    const isThere = subscriptionId !== undefined && !subscriptions.absent.has(subscriptionId)
    return chargeLines(charge, context.target, {
      invoiced: isThere ? { subscriptionId } : undefined,
      card: cards.get(charge.id),
      ofCheckout: checkouts.get(intentOf(charge)),
    })
  })
  return [...references, ...lines.flat(), ...trials, ...(await undoneLines(context, charges))]
}

/**
 * A debit of a bank account may fail after it had succeeded: the payment becomes a failed one, and its transaction, which others have read,
 * is worth nothing.
 */
async function undoneLines({ known }: Context, charges: Charge[]): Promise<Line[]> {
  const failed = charges.filter(({ status }) => status === 'failed').map(({ id }) => recordId(id))
  const stored = failed.length > 0 ? await known('transactions', failed) : []
  return [...stored].map((id) => ({ record: 'transaction', data: { id, price: 0, price_usd: 0 } }))
}

export async function convertRefunds(context: Context, all: Stripe.Refund[]): Promise<Line[]> {
  const read = await each(context, await withCharges(context, all), async (refund) => {
    const { refunded, failed } = statusOfRefund(refund)
    if (await isRelease(context, refund)) return []
    const failedAt = await failedAtOf(context, refund)
    if (refunded) count(context, 'refunds', refund.amount, refund)
    if (failed) count(context, 'failed refunds', refund.amount, { ...refund, created: failedAt })
    return [{ ...refund, failedAt }]
  })
  const counted = read.flat()
  const references = await chargeReferences(context, counted)
  const lines = await each(context, counted, (refund) => refundLines(refund, context.target))
  return [...references, ...lines.flat()]
}

/**
 * When the money of a refund came back that failed after it had succeeded: the time of its entry in the balance, if the key may read it.
 * A refund itself has only the time at which it was made.
 */
async function failedAtOf(context: Context, refund: Stripe.Refund): Promise<number> {
  const entry = await balanceEntry(context, refund.failure_balance_transaction)
  return entry?.created ?? refund.created
}

/** An entry of the balance; undefined if there is none, or the key may not read it. */
async function balanceEntry({ source }: Context, given: Stripe.Refund['balance_transaction'] | undefined) {
  const id = idOf(given)
  if (id === undefined) return undefined
  try {
    return await source.one<Stripe.BalanceTransaction>('balance_transactions', id)
  } catch (error) {
    if (error instanceof NotPermitted) return undefined
    throw error
  }
}

/**
 * Whether a refund only released what was authorized and never captured: Stripe makes one when an authorization expires or is cancelled,
 * and for the rest of one that is captured in part. No money of the payment was paid back.
 */
async function isRelease(
  context: Context,
  { charge, amount, balance_transaction, status }: Omit<Stripe.Refund, 'charge'> & { charge: Charge },
): Promise<boolean> {
  if (charge.status !== 'succeeded') return false
  if (!charge.captured) return true
  const isPartial = charge.amount_captured < charge.amount
  if (!isPartial) return false
  if (idOf(balance_transaction) === undefined) return status === 'succeeded'
  const entry = await balanceEntry(context, balance_transaction)
  if (entry) return entry.reporting_category === RELEASED
  if (amount !== charge.amount - charge.amount_captured) return false
  throw new Inconvertible(
    'may be a refund, or the rest of an authorization that was captured in part: the secret key needs the permission to read balance transactions',
  )
}

export async function convertDisputes(context: Context, all: Stripe.Dispute[]): Promise<Line[]> {
  const counted = await each(context, await withCharges(context, all), (dispute) => {
    const { currency } = dispute
    for (const { took, amount, created } of disputeMovements({ ...dispute }))
      count(context, took ? 'chargebacks' : 'reversed chargebacks', amount, { created, currency })
    return dispute
  })
  const references = await chargeReferences(context, counted)
  const lines = await each(context, counted, (dispute) => disputeLines(dispute, context.target))
  return [...references, ...lines.flat()]
}

/** An object that belongs to a charge, which Stripe may leave out. */
interface OfCharge {
  id: string
  charge: string | Charge | null
  payment_intent: string | Stripe.PaymentIntent | null
}

/** The objects with their charges, without those of charges that Tundish made. One without a charge is rejected. */
async function withCharges<T extends OfCharge>(context: Context, objects: T[]): Promise<(T & { charge: Charge })[]> {
  const found = await each(context, objects, async (object) => ({ ...object, charge: await chargeOf(context, object) }))
  return foreign(context, found, ({ charge }) => charge)
}

async function chargeOf({ source }: Context, { charge, payment_intent }: OfCharge): Promise<Charge> {
  if (charge !== null && typeof charge === 'object') return charge
  const expand = ['customer']
  const [id, intent] = [idOf(charge), idOf(payment_intent)]
  const found = id === undefined ? undefined : await source.one<Charge>('charges', id, { expand })
  if (found) return found
  const params = { expand: expand.map((path) => `latest_charge.${path}`) }
  const paid = intent && (await source.one<Stripe.PaymentIntent>('payment_intents', intent, params))
  if (paid && paid.latest_charge !== null && typeof paid.latest_charge === 'object') return paid.latest_charge
  throw new Inconvertible('belongs to no charge, so it is not the money of a payment here')
}

async function chargeReferences(context: Context, objects: { charge: Charge }[]): Promise<Line[]> {
  const charges = objects.map(({ charge }) => charge)
  return [...(await missingCustomers(context, charges.flatMap(customerReference))), ...(await guests(context, charges))]
}

async function guests(context: Context, charges: Charge[]): Promise<Line[]> {
  const own = charges.filter((charge) => customerOf(charge) === undefined)
  return (await each(context, own, guestLines)).flat()
}

function customerReference({ customer, created }: Charge): Reference[] {
  return customer === null ? [] : [{ customer: customer as Reference['customer'], seenAt: created }]
}

/** Adds an amount at Stripe to the tally; one that cannot be converted is rejected later, with its lines. */
function count(
  { tally }: Context,
  kind: string,
  amount: number,
  { created, currency }: { created: number; currency: string },
): void {
  const key = { kind, month: monthOf(created), currency: currency.toUpperCase() }
  try {
    add(tally, 'stripe', key, 1, minorUnits(amount, currency))
  } catch (error) {
    if (!(error instanceof Inconvertible)) throw error
    add(tally, 'stripe', key, 1)
  }
}
