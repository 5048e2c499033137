// One person with all records, and their erasure.
import type { Answer } from '../call.ts'
import { country, cut, day, id, language, minorMoney, money, plural, status, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Names, namesOf } from '../numbers.ts'
import { asking, facts, section, textField } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { table } from '../table.ts'
import { organizationOf, pathOf, type View } from '../view.ts'
import { orderTable } from './charges.ts'
import { reasonOf } from './refunds.ts'

export async function person(view: View): Promise<Page> {
  const { profile_id } = view.params as { profile_id: string }
  if (!view.project) return { title: 'Person', body: noProject(view) }
  const project_id = view.project.id
  const [names, found]: [Names, Answer] = await Promise.all([
    namesOf(view),
    view.call('getPerson', { params: { project_id, profile_id } }),
  ])
  const { profile } = found
  const isErased = profile.anonymized_at !== null
  return {
    title: isErased ? 'Erased person' : (profile.email ?? 'Person'),
    actions: !isErased && view.mayWrite && html`<a href="#erasure">Erase…</a>`,
    body: html`
      ${facts({
        Profile: id(profile.id),
        'E-mail': profile.email ? id(profile.email) : '–',
        Phone: profile.phone ? id(profile.phone) : '–',
        Country: profile.country ? country(profile.country) : '–',
        Language: profile.locale ? language(profile.locale) : '–',
        Funnel: funnelName(names, profile.funnel_id) ?? '–',
        Created: time(profile.created_at),
        Updated: time(profile.updated_at),
        ...(isErased && {
          Erased: html`${time(profile.anonymized_at)} <a href="${view.href(pathOf('erasures', profile_id))}">Receipt</a>`,
        }),
        ...(profile.preview && { Preview: 'Not counted in figures' }),
      })}
      ${recordsOf(view, found, names)}
      ${!isErased && view.mayWrite && erasureOf(view, profile_id)}`,
  }
}

/** Last on the page, because it is rare and cannot be undone. */
function erasureOf(view: View, profileId: string): Piece {
  const { erase_at_provider } = organizationOf(view)
  const form = asking(view, {
    action: view.href(pathOf('people', profileId, 'erase')),
    button: 'Erase this person',
    danger: true,
    says: html`This permanently removes e-mail, phone, IP addresses, browsers, cookies and every reply of this person. It cannot be undone. Transactions, subscriptions and orders stay. ${AT_PROVIDER[erase_at_provider]} Type <code>${profileId}</code> to confirm.`,
    fields: textField('confirm', 'Id of the profile', { required: true }),
  })
  return html`<div id="erasure">${section('Erasure', form, { note: 'For a person who asks that their data is deleted.' })}</div>`
}

/** What they bought and paid, then their sessions with replies, then events. */
function recordsOf(view: View, found: Answer, names: Names): Piece {
  const isErased = found.profile.anonymized_at !== null
  return html`${list(view, 'subscriptions', subscriptionTable(found.subscriptions))}
      ${list(view, 'transactions', transactionTable(found.transactions))}
      ${list(view, 'declined', declinedTable(view, found))}
      ${list(view, 'money-back', moneyBackTable(view, found))}
      ${list(view, 'orders', orderTable(view, 'Custom charges', found.orders))}
      ${list(view, 'consumables', {
        caption: 'Consumables',
        columns: [
          ...['Consumable', 'State', 'Order', 'Granted'].map((label) => ({ label })),
          { label: 'Paid', number: true },
        ],
        rows: found.orders
          .filter((one: Answer) => one.consumable_id)
          .map((one: Answer) => [
            cell(id(one.consumable_id), one.consumable_id),
            status(one.consumable_active ? 'active' : 'revoked'),
            cell(id(one.order_id, view.href(pathOf('charges', one.organization_id, one.order_id))), one.order_id),
            time(one.created_at),
            cell(money(one.amount, one.currency_code), one.amount),
          ]),
      })}
      ${list(view, 'customers', {
        caption: 'Billing customers',
        columns: ['Customer', 'E-mail', 'Saved card', 'Created'].map((label) => ({ label })),
        rows: found.customers.map((one: Answer) => [
          cell(id(one.external_id), one.external_id),
          one.email ?? '',
          cardOf(one),
          time(one.created_at),
        ]),
      })}
      ${section('Sessions', sessionsOf(found.sessions, names, isErased))}
      ${list(view, 'events', {
        caption: 'Events',
        columns: ['Event', 'Kind', 'About', 'Written'].map((label) => ({ label })),
        rows: found.events.map((one: Answer) => [
          cell(id(one.id, view.href(`/webhooks/events/${one.id}`)), one.id),
          one.type,
          one.object_id,
          time(one.created_at),
        ]),
      })}`
}

const cardOf = ({ card_network, card_last4, card_expires }: Answer): string =>
  [card_network, card_last4 && `…${card_last4}`, card_expires && `until ${card_expires}`].filter(Boolean).join(' ')

const AT_PROVIDER: Record<string, string> = {
  off: 'Data at payment providers stays there.',
  on: 'Payment providers are asked to detach the cards and to clear the customer’s data.',
  delete: 'Payment providers are asked to delete the customer, which ends subscriptions there.',
}

/** A list of the person's records; an empty one is left out. */
const list = (view: View, name: string, content: Table): Piece =>
  content.rows.length > 0 &&
  section(content.caption, html`<div class="short">${table(view, name, content, { hideCaption: true })}</div>`)

const funnelName = ({ funnels }: Names, id: string | null) => (id === null ? undefined : (funnels[id] ?? id))

function sessionsOf(sessions: Answer[], names: Names, isErased: boolean): Piece {
  if (sessions.length === 0) return html`<div class="empty"><p>No sessions.</p></div>`
  return sessions.map(
    (
      one,
      n,
    ) => html`<details class="card"${n === 0 ? html` open` : ''}><summary>${time(one.created_at)} ${funnelName(names, one.funnel_id) ?? 'without a funnel'} <span class="quiet">${plural(one.replies.length, 'reply', 'replies')}</span></summary>
      ${facts({
        Session: id(one.id),
        Version: one.funnel_version ?? '–',
        Experiment: names.experiments[one.experiment_id] ?? one.experiment_id ?? '–',
        From: one.origin ?? '–',
        Place: [one.postal_code, one.city, one.country].filter(Boolean).join(' ') || '–',
        Address: one.ip ?? '–',
        Browser: one.user_agent ?? '–',
      })}
      ${
        one.replies.length > 0
          ? html`<dl class="replies">${one.replies.map((reply: Answer) => html`<div><dt>${reply.element}</dt><dd>${isErased ? html`<span class="quiet">erased</span>` : answerOf(reply.value)}</dd></div>`)}</dl>`
          : ''
      }</details>`,
  )
}

const answerOf = (value: Answer): Piece =>
  value === null ? html`<span class="quiet">no answer</span>` : Array.isArray(value) ? value.join(', ') : String(value)

const subscriptionTable = (data: Answer[]): Table => ({
  caption: 'Subscriptions',
  columns: [
    ...['Subscription', 'State', 'Product'].map((label) => ({ label })),
    { label: 'Price', number: true },
    ...['Created', 'Paid until', 'Provider'].map((label) => ({ label })),
  ],
  rows: data.map((one) => [
    cell(id(one.id), one.id),
    status(one.status),
    cut(one.product_name),
    minorMoney(one.price, one.currency),
    time(one.created_at),
    day(one.period_ends_at),
    one.payment_provider ?? '',
  ]),
})

/** Why a card did not renew, and which custom charges were declined. */
const declinedTable = (view: View, { declined_payments, orders }: Answer): Table => ({
  caption: 'Declined payments',
  columns: [
    { label: 'Order' },
    { label: 'Amount', number: true },
    ...['When', 'Reason', 'Type', 'Card', 'Subscription', 'Provider'].map((label) => ({ label })),
  ],
  rows: declined_payments.map((one: Answer) => [
    orderCell(view, one.order_id, orders),
    cell(money(one.amount, one.currency_code), one.amount),
    time(one.trx_created_at),
    reasonOf(one),
    one.psp_reason_decline_type ?? '',
    [one.network, one.pm_data_last4 && `…${one.pm_data_last4}`].filter(Boolean).join(' '),
    id(one.subscription_id),
    one.psp,
  ]),
})

/** Imported payments have an order too; only that of a custom charge has a page of its own. */
function orderCell(view: View, orderId: string, orders: Answer[]) {
  const hasPage = orders.some(({ order_id }) => order_id === orderId)
  return cell(
    id(orderId, hasPage ? view.href(pathOf('charges', organizationOf(view).id, orderId)) : undefined),
    orderId,
  )
}

function moneyBackTable(view: View, { money_back, orders }: Answer): Table {
  return {
    caption: 'Refunds and disputes',
    columns: [
      { label: 'Type' },
      { label: 'Amount', number: true },
      ...['When', 'Reason', 'Order', 'Provider'].map((label) => ({ label })),
    ],
    rows: money_back.map((one: Answer) => [
      words(one.psp_transaction_type),
      cell(money(one.amount, one.currency_code), one.amount),
      time(one.trx_created_at),
      reasonOf(one),
      orderCell(view, one.order_id, orders),
      one.psp,
    ]),
  }
}

const transactionTable = (data: Answer[]): Table => ({
  caption: 'Transactions',
  columns: [
    { label: 'Transaction' },
    { label: 'Amount', number: true },
    ...['Created', 'Subscription'].map((label) => ({ label })),
  ],
  rows: data.map((one) => [
    html`${id(one.id)}${one.sandbox && html` <span class="badge flat">sandbox</span>`}`,
    minorMoney(one.price, one.currency),
    time(one.created_at),
    id(one.subscription_id),
  ]),
})
