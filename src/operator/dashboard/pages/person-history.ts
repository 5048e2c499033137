// The history of a person: what happened to them, newest first, from all kinds of their records.
import { INCOMING } from '../../../core/records/payment-move.ts'
import { minorUnits } from '../../../lib/money.ts'
import type { Response } from '../call.ts'
import { country, minorMoney, money, sandboxBadge, status, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Names, nameOfFunnel } from '../numbers.ts'
import { section } from '../parts.ts'
import { organizationOf, pathOf, type View } from '../view.ts'
import { reasonOf } from './refunds.ts'

type Person = Response<'getPerson'>
/** Movements of money have their time from the provider. */
type Dated = { created_at: string } | { paid_at: string }

interface Moment {
  at: string
  what: string
  detail?: Piece
  /** The color of the dot, if the moment is not a good one. */
  tone?: 'poor' | 'warn' | undefined
}

// Earlier moments are collapsed: the newest ones are what a customer asks about.
const SHOWN = 10
// The operation returns the newest hundred records of each kind.
const MAX_RECORDS = 100

export function historyOf(view: View, found: Person, names: Names): Piece {
  const start = completeSince(found)
  const all = momentsOf(view, found, names)
    .filter(({ at }) => at >= start)
    .sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
  if (all.length === 0) return ''
  const [newest, earlier] = [all.slice(0, SHOWN), all.slice(SHOWN)]
  const more = html`<details class="earlier"><summary>${earlier.length} earlier</summary>${list(earlier)}</details>`
  return section('History', html`${list(newest)}${earlier.length > 0 && more}`, {
    note: start !== '' && html`Since ${time(start)}: there are too many older records.`,
  })
}

/** The instant since which all lists are complete: before it, the history would have gaps. */
function completeSince(found: Person): string {
  const { sessions, subscriptions, transactions, declined_payments, money_back, orders } = found
  const lists: Dated[][] = [sessions, subscriptions, transactions, declined_payments, money_back, orders]
  const oldest = lists.flatMap((all) => (all.length >= MAX_RECORDS ? instantOf(all.at(-1)!) : []))
  return oldest.sort().at(-1) ?? ''
}

const instantOf = (one: Dated): string => ('created_at' in one ? one.created_at : one.paid_at)

const list = (moments: Moment[]) =>
  html`<ol class="timeline">${moments.map(
    ({ at, what, detail, tone }) =>
      html`<li${tone && html` class="${tone}"`}>${time(at)} <strong>${what}</strong> <span>${detail}</span></li>`,
  )}</ol>`

function momentsOf(view: View, found: Person, names: Names): Moment[] {
  const { profile, sessions, subscriptions, transactions, declined_payments, money_back, orders } = found
  // The payment report may name subscriptions by ids of the payment provider.
  const productOf = (id: string | null): string => subscriptions.find((one) => one.id === id)?.product_name ?? ''
  return [
    ...(profile.anonymized_at ? [{ at: profile.anonymized_at, what: 'Erased' }] : []),
    ...sessions.map((one) => ({
      at: one.created_at,
      what: 'Session began',
      detail: [nameOfFunnel(names, one.funnel_id), one.country && country(one.country)].filter(Boolean).join(', '),
    })),
    ...subscriptions.flatMap((one) => subscriptionMoments(view, one)),
    ...transactions.map((one) => ({
      at: one.created_at,
      what: 'Paid',
      detail: html`${minorMoney(one.price, one.currency)} ${quiet(productOf(one.subscription_id))}${sandboxBadge(one)}`,
    })),
    ...declined_payments.map((one) => ({
      at: one.paid_at,
      what: 'Payment declined',
      tone: 'poor' as const,
      detail: html`${money(one.amount, one.currency_code)} ${quiet(reasonOf(one))} ${quiet(productOf(one.subscription_id))}${sandboxBadge(one)}`,
    })),
    ...money_back.map((one) => ({
      at: one.paid_at,
      what: words(typeOf(one)),
      tone: MONEY_BACK_TONES[typeOf(one)],
      detail: html`${money(one.amount, one.currency_code)} ${quiet(reasonOf(one))}${sandboxBadge(one)}`,
    })),
    ...orders.flatMap((one) => orderMoments(view, one)),
  ]
}

const MONEY_BACK_TONES: Record<string, Moment['tone']> = { refund: 'warn', refund_failed: 'poor', chargeback: 'poor' }

/** What went back, or failed to, at once or after it had succeeded. */
export const typeOf = ({ psp_transaction_type, status }: Person['money_back'][number]): string =>
  status === 'failed' ? `${psp_transaction_type}_failed` : psp_transaction_type

function subscriptionMoments({ nowMs }: View, subscription: Person['subscriptions'][number]): Moment[] {
  const { created_at, cancelled_at, period_ends_at, status, product_name } = subscription
  const detail = quiet(product_name)
  return [
    { at: created_at, what: 'Subscription created', detail },
    ...(cancelled_at ? [{ at: cancelled_at, what: 'Subscription cancelled', detail }] : []),
    ...(HAVE_ENDED.has(status) && period_ends_at && Date.parse(period_ends_at) < nowMs
      ? [{ at: period_ends_at, what: 'Subscription ended', detail }]
      : []),
  ]
}

// They end with the period that was paid for last.
const HAVE_ENDED = new Set(['cancelled', 'expired', 'unpaid'])

/** A charge that succeeded or was declined is among the payments already. */
function orderMoments(view: View, one: Person['orders'][number]): Moment[] {
  if (one.status !== 'processing' && one.status !== 'cancelled') return []
  const href = view.href(pathOf('charges', organizationOf(view).id, one.order_id))
  const detail = html`<a href="${href}">${money(one.amount, one.currency_code)}</a> ${status(one.status)}`
  return [{ at: one.created_at, what: 'Custom charge', detail }]
}

const quiet = (text: string) => html`<span class="quiet">${text}</span>`

/** The sum of a person's payments in each currency, less what went back, without those in a sandbox. */
export function paidOf({ transactions, money_back }: Person): Piece {
  if (transactions.length >= MAX_RECORDS) return `${MAX_RECORDS} payments or more`
  const paid = new Map<string, number>()
  const back = new Map<string, number>()
  const add = (sums: Map<string, number>, currency: string, minor: number) =>
    sums.set(currency, (sums.get(currency) ?? 0) + minor)
  for (const { price, currency, sandbox } of transactions) if (!sandbox) add(paid, currency, price)
  for (const { amount, currency_code, move, sandbox } of money_back) {
    const minor = Math.round(amount * 10 ** (minorUnits(currency_code) ?? 2))
    if (move !== null && !sandbox)
      add(back, currency_code, (INCOMING as readonly string[]).includes(move) ? -minor : minor)
  }
  const currencies = [...new Set([...paid.keys(), ...back.keys()])]
  if (currencies.length === 0) return '–'
  return currencies.map((currency, n) => {
    const [sum, returned] = [paid.get(currency) ?? 0, back.get(currency) ?? 0]
    const parts = html` <span class="quiet">(${minorMoney(sum, currency)} paid, ${minorMoney(returned, currency)} returned)</span>`
    return [n > 0 && ', ', minorMoney(sum - returned, currency), returned !== 0 && parts]
  })
}
