// People: found by e-mail or any id; one person with everything that is known; erasure with a receipt.

import { ApiError } from '../../lib/errors.ts'
import { id, minorMoney, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { asking, facts, section, textField } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import type { Page } from '../shell.ts'
import { table } from '../table.ts'
import { type Answer, pathOf, type View } from '../view.ts'
import { orderTable } from './charges.ts'

export async function people(view: View): Promise<Page> {
  const q = view.query.get('q')?.trim() ?? ''
  if (q === '')
    return {
      title: 'People',
      body: html`<div class="empty"><h2>Whom are you looking for?</h2><p>Type an e-mail address, or the id of a profile, customer, subscription or order, into the search above. The address or id has to be whole.</p></div>`,
    }
  const { results }: Answer = await view.call('search', { query: { q } })
  const content: Table = {
    caption: `Found for ${q}`,
    columns: ['What', 'Id', 'E-mail', 'State', 'Project', 'Made'].map((label) => ({ label })),
    rows: results.map((one: Answer) => [
      one.kind.replace(/^./, (letter: string) => letter.toUpperCase()),
      cell(id(one.id, linkOf(view, one)), one.id),
      one.email ?? '',
      status(one.status),
      one.project_id,
      time(one.created_at),
    ]),
  }
  const empty = html`<h2>Nothing was found for “${q}”</h2><p>The whole e-mail address or the whole id is needed. An erased person is found by id only.</p>`
  return {
    title: 'People',
    body: section(`Found for “${q}”`, table(view, 'found', content, { hideCaption: true, empty })),
  }
}

function linkOf(view: View, { kind, id, project_id, organization_id, profile_id }: Answer): string | undefined {
  if (kind === 'order') return view.href(pathOf('charges', organization_id, id), { project: project_id })
  return profile_id ? view.href(pathOf('people', profile_id), { project: project_id }) : undefined
}

export async function person(view: View): Promise<Page> {
  const { profile_id } = view.params as { profile_id: string }
  const project_id = view.project?.id ?? ''
  const found: Answer = await view.call('getPerson', { params: { project_id, profile_id } })
  const { profile } = found
  const isErased = profile.anonymized_at !== null
  return {
    title: isErased ? 'Erased person' : (profile.email ?? 'Person'),
    body: html`
      ${facts({
        Profile: id(profile.id),
        'E-mail': profile.email ? id(profile.email) : '–',
        Phone: profile.phone ? id(profile.phone) : '–',
        Country: profile.country ?? '–',
        Language: profile.locale ?? '–',
        Funnel: profile.funnel_id ?? '–',
        Made: time(profile.created_at),
        Changed: time(profile.updated_at),
        ...(isErased && {
          Erased: html`${time(profile.anonymized_at)} <a href="${view.href(pathOf('erasures', profile_id))}">Receipt</a>`,
        }),
        ...(profile.preview && { Preview: 'Not counted in figures' }),
      })}
      ${
        isErased
          ? ''
          : asking(view, {
              action: view.href(pathOf('people', profile_id, 'erase')),
              button: 'Erase this person',
              danger: true,
              says: html`This removes e-mail, phone, addresses, browsers, cookies and every reply of this person for good, and cannot be undone. Transactions, subscriptions and orders stay. Type <code>${profile_id}</code> to confirm.`,
              fields: textField('confirm', 'Id of the profile', { required: true }),
            })
      }
      ${section('Sessions', sessionsOf(found.sessions))}
      ${list(view, 'subscriptions', subscriptionTable(found.subscriptions))}
      ${list(view, 'transactions', transactionTable(found.transactions))}
      ${list(view, 'orders', orderTable(view, 'Custom charges', found.orders))}
      ${list(view, 'customers', {
        caption: 'Customers of billing',
        columns: ['Customer', 'E-mail', 'Made'].map((label) => ({ label })),
        rows: found.customers.map((one: Answer) => [
          cell(id(one.external_id), one.external_id),
          one.email ?? '',
          time(one.created_at),
        ]),
      })}
      ${list(view, 'events', {
        caption: 'Events',
        columns: ['Event', 'Kind', 'About', 'Written'].map((label) => ({ label })),
        rows: found.events.map((one: Answer) => [
          cell(id(one.id, view.href(`/webhooks/events/${one.id}`)), one.id),
          one.type,
          one.object_id,
          time(one.created_at),
        ]),
      })}`,
  }
}

/** A list of the person's; one without anything is left out. */
const list = (view: View, name: string, content: Table): Piece =>
  content.rows.length > 0 ? section(content.caption, table(view, name, content, { hideCaption: true })) : ''

function sessionsOf(sessions: Answer[]): Piece {
  if (sessions.length === 0) return html`<div class="empty"><p>No session is known.</p></div>`
  return sessions.map(
    (
      one,
      n,
    ) => html`<details class="card"${n === 0 ? html` open` : ''}><summary>${time(one.created_at)} ${one.funnel_id ?? 'without a funnel'} <span class="quiet">${one.replies.length} replies</span></summary>
      ${facts({
        Session: id(one.id),
        Version: one.funnel_version ?? '–',
        Experiment: one.experiment_id ?? '–',
        From: one.origin ?? '–',
        Place: [one.postal_code, one.city, one.country].filter(Boolean).join(' ') || '–',
        Address: one.ip ?? '–',
        Browser: one.user_agent ?? '–',
      })}
      ${
        one.replies.length > 0
          ? html`<dl class="replies">${one.replies.map((reply: Answer) => html`<div><dt>${reply.element}</dt><dd>${answerOf(reply.value)}</dd></div>`)}</dl>`
          : ''
      }</details>`,
  )
}

const answerOf = (value: Answer): Piece =>
  value === null ? html`<span class="quiet">nothing</span>` : Array.isArray(value) ? value.join(', ') : String(value)

const subscriptionTable = (data: Answer[]): Table => ({
  caption: 'Subscriptions',
  columns: [
    ...['Subscription', 'State', 'Product', 'Provider', 'Made', 'Paid until'].map((label) => ({ label })),
    { label: 'Price', number: true },
  ],
  rows: data.map((one) => [
    cell(id(one.id), one.id),
    status(one.status),
    one.product_name,
    one.payment_provider ?? '',
    time(one.created_at),
    time(one.period_ends_at),
    minorMoney(one.price, one.currency),
  ]),
})

const transactionTable = (data: Answer[]): Table => ({
  caption: 'Transactions',
  columns: [...['Transaction', 'Subscription', 'Made'].map((label) => ({ label })), { label: 'Amount', number: true }],
  rows: data.map((one) => [
    html`${id(one.id)}${one.sandbox && html` <span class="badge flat">sandbox</span>`}`,
    one.subscription_id ?? '',
    time(one.created_at),
    minorMoney(one.price, one.currency),
  ]),
})

export async function erasePerson(view: View, form: URLSearchParams): Promise<string> {
  const { profile_id } = view.params as { profile_id: string }
  const project_id = view.project?.id ?? ''
  if (form.get('confirm')?.trim() !== profile_id)
    throw new ApiError(400, 'invalid_value', 'Type the id of the profile exactly to confirm. Nothing was erased.')
  await view.call('eraseProfile', { params: { project_id, profile_id } })
  return view.href(pathOf('erasures', profile_id))
}

export async function erasures(view: View): Promise<Page> {
  const project_id = view.project?.id
  if (project_id === undefined)
    return { title: 'Erasures', body: html`<div class="empty"><p>There is no project yet.</p></div>` }
  const cursor = view.query.get('cursor')
  const [list, state, ledgers]: Answer[] = await Promise.all([
    view.call('listErasures', { params: { project_id }, query: { limit: 50, ...(cursor && { cursor }) } }),
    view.call('getProjectState', { params: { project_id } }),
    view.call('compareLedgers'),
  ])
  const content: Table = {
    caption: 'Erased people',
    columns: ['Person', 'Erased', 'In the database', 'Receipt'].map((label) => ({ label })),
    rows: list.data.map((one: Answer) => [
      cell(id(one.profile_id, view.href(pathOf('people', one.profile_id))), one.profile_id),
      time(one.erased_at),
      one.is_known ? 'yes, without personal data' : 'no',
      html`<a href="${view.href(pathOf('erasures', one.profile_id))}">Receipt</a>`,
    ]),
  }
  const agree = ledgers.missing_in_database === 0 && ledgers.missing_in_file === 0
  return {
    title: 'Erasures',
    body: html`
      ${facts({
        'In the last seven days': state.erasures_of_week,
        'In all': state.erasures,
        'Ledgers of all projects': agree
          ? html`${status('ok')} Both know the same ${ledgers.in_database} erasures.`
          : html`${status('warning')} ${ledgers.missing_in_database} of the file are missing in the database, ${ledgers.missing_in_file} of the database in the file. <a href="${view.href('/doctor')}">The doctor</a> says what to do.`,
      })}
      ${section('Erased people', table(view, 'erasures', content, { hideCaption: true, empty: html`<h3>No one was erased yet</h3><p>A person is erased on their own page, by <a href="/docs/guides/erasure">the data API</a>, or at the command line.</p>` }))}`,
  }
}

export async function receipt(view: View): Promise<Page> {
  const { profile_id } = view.params as { profile_id: string }
  const one: Answer = await view.call('getErasure', { params: { project_id: view.project?.id ?? '', profile_id } })
  return {
    title: 'Receipt of an erasure',
    body: html`<article class="receipt"><p>The personal data of the person with the id below was removed for good. Backups that still hold it are erased again when they are restored.</p>
      ${facts({ Person: id(one.profile_id), Project: one.project_id, Erased: time(one.erased_at) })}
      <h2>Removed</h2><ul>${one.removed.map((what: string) => html`<li>${what}</li>`)}</ul>
      <h2>Kept</h2><ul>${one.kept.map((what: string) => html`<li>${what}</li>`)}</ul></article>
      <p class="quiet">Print this page to hand it to the person: the navigation is left out on paper.</p>`,
  }
}
