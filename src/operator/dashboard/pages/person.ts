// One person with all their records, and the form that erases them.
import type { Response } from '../call.ts'
import { country, cut, day, id, language, plural, sandboxBadge, status, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Names, nameOfFunnel, namesOf } from '../numbers.ts'
import { actionForm, facts, section, tableSection, textField } from '../parts.ts'
import { amountCells, amountColumns, cell, columns, minorCells, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { organizationOf, pathOf, type View } from '../view.ts'
import { orderTable } from './charges.ts'
import { creditsOf } from './person-credits.ts'
import { historyOf, paidOf, typeOf } from './person-history.ts'
import { twinsOf } from './person-twins.ts'
import { reasonOf } from './refunds.ts'
import { subscriptionLink } from './sessions.ts'
import { priceCells, priceColumns } from './subscriptions.ts'

type Person = Response<'getPerson'>
type Reply = Person['sessions'][number]['replies'][number]

export async function person(view: View): Promise<Page> {
  const { profile_id } = view.params as { profile_id: string }
  if (!view.project) return { title: 'Person', body: noProject(view) }
  const project_id = view.project.id
  const [names, found] = await Promise.all([
    namesOf(view),
    view.call('getPerson', { params: { project_id, profile_id } }),
  ])
  const credits = await creditsOf(view, found.customers)
  const { profile } = found
  const isErased = profile.anonymized_at !== null
  return {
    title: profile.merged_into ? 'Merged person' : isErased ? 'Erased person' : (profile.email ?? 'Person'),
    actions: !isErased && view.may('eraseProfile') && html`<a href="#erasure">Erase…</a>`,
    body: html`
      ${facts({
        Profile: id(profile.id),
        'E-mail': profile.email ? id(profile.email) : '–',
        Phone: profile.phone ? id(profile.phone) : '–',
        Country: profile.country ? country(profile.country) : '–',
        Language: profile.locale ? language(profile.locale) : '–',
        Funnel: nameOfFunnel(names, profile.funnel_id) ?? '–',
        Paid: paidOf(found),
        Created: time(profile.created_at),
        Updated: time(profile.updated_at),
        ...(profile.also_known_as.length > 0 && {
          'Also known as': profile.also_known_as.map((one: string) => html`${id(one)} `),
        }),
        ...(profile.merged_into && {
          'Merged into': id(profile.merged_into, view.href(pathOf('people', profile.merged_into))),
        }),
        ...(isErased &&
          !profile.merged_into && {
            Erased: html`${time(profile.anonymized_at)} <a href="${view.href(pathOf('erasures', profile_id))}">Receipt</a>`,
          }),
        ...(profile.preview && { Preview: 'Not counted in figures' }),
      })}
      ${twinsOf(view, found.twins)}
      ${historyOf(view, found, names)}
      ${credits}
      ${recordsOf(view, found, names)}
      ${!isErased && view.may('eraseProfile') && erasureOf(view, profile_id, found.twins)}`,
  }
}

/** Last on the page, because it is rare and cannot be undone. */
function erasureOf(view: View, profileId: string, twins: Person['twins']): Piece {
  const { erase_at_provider } = organizationOf(view)
  const form = actionForm(view, {
    action: view.href(pathOf('people', profileId, 'erase')),
    button: 'Erase this person',
    danger: true,
    explanation: html`Permanently deletes the e-mail, phone, IP addresses, browser details, cookies and all replies of this person. This cannot be undone. Transactions, subscriptions and orders are kept. ${AT_PROVIDER[erase_at_provider]} Type <code>${profileId}</code> to confirm.`,
    fields: html`${twins.length > 0 && html`<p class="field"><label><input type="checkbox" name="with_twins" value="1"> Also erase ${twins.length === 1 ? html`the other profile of this person, ${id(twins[0]!.id)}` : html`the ${twins.length} other profiles of this person`}</label></p>`}${textField('confirm', 'Profile ID', { required: true })}`,
  })
  return html`<div id="erasure">${section('Erasure', form, { note: 'For a person who asks for their data to be deleted.' })}</div>`
}

/** Purchases and payments, then sessions with replies, then events. */
function recordsOf(view: View, found: Person, names: Names): Piece {
  const isErased = found.profile.anonymized_at !== null
  return html`${list(view, 'subscriptions', subscriptionTable(view, found.subscriptions))}
      ${list(view, 'transactions', transactionTable(view, found.transactions))}
      ${list(view, 'declined', declinedTable(view, found))}
      ${list(view, 'money-back', moneyBackTable(view, found))}
      ${list(view, 'orders', orderTable(view, 'Custom charges', found.orders))}
      ${list(view, 'consumables', {
        caption: 'Consumables',
        columns: [...columns('Consumable', 'Status', 'Order', 'Granted'), ...amountColumns('Paid')],
        rows: found.orders
          .filter((one) => one.consumable_id)
          .map((one) => [
            cell(id(one.consumable_id), one.consumable_id),
            status(one.consumable_active ? 'active' : 'revoked'),
            cell(id(one.order_id, view.href(pathOf('charges', one.organization_id, one.order_id))), one.order_id),
            time(one.created_at),
            ...amountCells(one),
          ]),
      })}
      ${list(view, 'customers', {
        caption: 'Billing customers',
        columns: columns('Customer', 'E-mail', 'Saved card', 'Created'),
        rows: found.customers.map((one) => [
          cell(id(one.external_id), one.external_id),
          one.email ?? '',
          cardOf(one),
          time(one.created_at),
        ]),
      })}
      ${section('Sessions', sessionsOf(found.sessions, names, isErased))}
      ${list(view, 'events', {
        caption: 'Events',
        columns: columns('Event', 'Type', 'Object', 'Created'),
        rows: found.events.map((one) => [
          cell(id(one.id, view.href(`/webhooks/events/${one.id}`)), one.id),
          one.type,
          one.object_id,
          time(one.created_at),
        ]),
      })}`
}

const cardOf = ({ card_network, card_last4, card_expires }: Person['customers'][number]): string =>
  [card_network, card_last4 && `…${card_last4}`, card_expires && `until ${card_expires}`].filter(Boolean).join(' ')

const AT_PROVIDER: Record<string, string> = {
  off: 'Data at payment providers is not deleted.',
  on: 'Payment providers are asked to detach the cards and to clear the customer’s data.',
  delete: 'Payment providers are asked to delete the customer, which ends subscriptions there.',
}

/** A section with a list of the person's records; nothing if there are none. */
const list = (view: View, name: string, content: Table): Piece =>
  content.rows.length > 0 && tableSection(view, name, content, { short: true })

function sessionsOf(sessions: Person['sessions'], names: Names, isErased: boolean): Piece {
  if (sessions.length === 0) return html`<div class="empty"><p>No sessions.</p></div>`
  return sessions.map(
    (
      one,
      n,
    ) => html`<details class="card"${n === 0 ? html` open` : ''}><summary>${time(one.created_at)} ${nameOfFunnel(names, one.funnel_id) ?? 'without a funnel'} <span class="quiet">${plural(one.replies.length, 'reply', 'replies')}</span></summary>
      ${facts({
        Session: id(one.id),
        Version: one.funnel_version ?? '–',
        Experiment: names.experiments[one.experiment_id ?? ''] ?? one.experiment_id ?? '–',
        'Landing page': one.origin ?? '–',
        Location: [one.postal_code, one.city, one.country].filter(Boolean).join(' ') || '–',
        'IP address': one.ip ?? '–',
        Browser: one.user_agent ?? '–',
      })}
      ${
        one.replies.length > 0
          ? html`<dl class="replies">${one.replies.map((reply) => html`<div><dt title="${reply.element}">${reply.name ? words(reply.name) : reply.element}</dt><dd>${isErased ? html`<span class="quiet">erased</span>` : answerOf(reply.value)}</dd></div>`)}</dl>`
          : ''
      }</details>`,
  )
}

const answerOf = (value: Reply['value']): Piece =>
  value === null ? html`<span class="quiet">no answer</span>` : Array.isArray(value) ? value.join(', ') : String(value)

const subscriptionTable = (view: View, data: Person['subscriptions']): Table => ({
  caption: 'Subscriptions',
  columns: [
    ...columns('Subscription', 'Status', 'Product'),
    ...priceColumns,
    ...columns('Created', 'Paid until', 'Provider'),
  ],
  rows: data.map((one) => [
    cell(id(one.id, view.href(pathOf('subscriptions', one.id))), one.id),
    status(one.status),
    cut(one.product_name),
    ...priceCells(one),
    time(one.created_at),
    day(one.period_ends_at, view.reporting.timeZone),
    one.payment_provider ?? '',
  ]),
})

/** Declined payments: renewals with the card and the reason, and custom charges. */
const declinedTable = (view: View, { declined_payments, orders }: Person): Table => ({
  caption: 'Declined payments',
  columns: [
    { label: 'Order' },
    ...amountColumns('Amount'),
    ...columns('When', 'Reason', 'Decline type', 'Card', 'Subscription', 'Provider'),
  ],
  rows: declined_payments.map((one) => [
    orderCell(view, one.order_id, orders),
    ...amountCells(one),
    time(one.paid_at),
    reasonOf(one),
    one.psp_reason_decline_type ?? '',
    [one.network, one.pm_data_last4 && `…${one.pm_data_last4}`].filter(Boolean).join(' '),
    id(one.subscription_id),
    one.psp,
  ]),
})

/** An order, linked to its page if it is a custom charge: imported payments have an order, but no page. */
function orderCell(view: View, orderId: string, orders: Person['orders']) {
  const hasPage = orders.some(({ order_id }) => order_id === orderId)
  return cell(
    id(orderId, hasPage ? view.href(pathOf('charges', organizationOf(view).id, orderId)) : undefined),
    orderId,
  )
}

function moneyBackTable(view: View, { money_back, orders }: Person): Table {
  return {
    caption: 'Refunds and disputes',
    columns: [{ label: 'Type' }, ...amountColumns('Amount'), ...columns('When', 'Reason', 'Order', 'Provider')],
    rows: money_back.map((one) => [
      words(typeOf(one)),
      ...amountCells(one),
      time(one.paid_at),
      reasonOf(one),
      orderCell(view, one.order_id, orders),
      one.psp,
    ]),
  }
}

const transactionTable = (view: View, data: Person['transactions']): Table => ({
  caption: 'Transactions',
  columns: [{ label: 'Transaction' }, ...amountColumns('Amount'), ...columns('Created', 'Subscription')],
  rows: data.map((one) => [
    html`${id(one.id)}${sandboxBadge(one)}`,
    ...minorCells(one),
    time(one.created_at),
    subscriptionLink(view, one.subscription_id),
  ]),
})
