// The credits of a person: balances, grants, holds, automatic top-ups and entries, and the forms that grant and correct.

import { randomUUID } from 'node:crypto'
import { readDay } from '../../../lib/days.ts'
import type { Item, ListId, Response } from '../call.ts'
import { creditAmount, id, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { actionForm, hiddenField, section, selectField, tableSection, textField } from '../parts.ts'
import { cell, columns, numbers, type Table } from '../sheet.ts'
import { organizationOf, pathOf, type View } from '../view.ts'
import { counts, entryTable, topUpTable } from './credits.ts'

// A person has one billing customer, or a few after a merge.
const MAX_CUSTOMERS = 5

/** The sections about credits; nothing in an organization without units. */
export async function creditsOf(view: View, customers: Response<'getPerson'>['customers']): Promise<Piece> {
  if (!view.may('listCreditUnits')) return ''
  const params = { organization_id: organizationOf(view).id }
  const { data: units } = await view.call('listCreditUnits', { params })
  if (units.length === 0 || customers.length === 0) return ''
  const shown = customers.slice(0, MAX_CUSTOMERS)
  const all = await Promise.all(shown.map(({ external_id }) => readCustomer(view, params, external_id)))
  return html`${all.map((one, n) => sectionsOf(view, one, units, all.length > 1 ? `-${n + 1}` : ''))}`
}

interface Customer {
  externalId: string
  balances: Response<'getCreditBalances'>['balances']
  grants: Item<'listCreditGrants'>[]
  holds: Item<'listCreditHolds'>[]
  rules: Item<'listOrganizationTopUps'>[]
  entries: Item<'listOrganizationCreditEntries'>[]
}

async function readCustomer(view: View, params: Record<string, string>, externalId: string): Promise<Customer> {
  const query = { external_id: externalId }
  const listOf = async <I extends ListId>(operation: I, more = {}): Promise<Item<I>[]> =>
    (await view.call(operation, { params, query: { ...query, ...more } })).data
  const [{ balances }, grants, holds, rules, entries] = await Promise.all([
    view.call('getCreditBalances', { params, query }),
    listOf('listCreditGrants'),
    listOf('listCreditHolds', { status: 'open' }),
    listOf('listOrganizationTopUps'),
    listOf('listOrganizationCreditEntries'),
  ])
  return { externalId, balances, grants, holds, rules, entries }
}

function sectionsOf(view: View, customer: Customer, units: Item<'listCreditUnits'>[], suffix: string): Piece {
  const { externalId, balances, grants, holds, rules, entries } = customer
  const list = (name: string, content: Table) =>
    content.rows.length > 0 && tableSection(view, `${name}${suffix}`, content, { short: true })
  return html`
    ${tableSection(view, `balances${suffix}`, balanceTable(balances), {
      title: suffix === '' ? 'Credits' : `Credits of ${externalId}`,
      empty: html`<p>No credits yet.</p>`,
      below: html`<div class="row">${forms(view, externalId, units)}</div>`,
    })}
    ${list('grants', grantTable(view, grants))}
    ${list('holds', holdTable(holds))}
    ${list('top-ups', topUpTable(view, rules))}
    ${list('entries', entryTable(view, entries))}
    ${rules.length > 0 && view.may('removeCustomerTopUp') && section('End an automatic top-up', removal(view, externalId, rules))}`
}

const balanceTable = (data: Customer['balances']): Table => ({
  caption: 'Balances',
  columns: [{ label: 'Unit' }, ...numbers('Balance', 'Held', 'Available', 'Expires next'), { label: 'On' }],
  rows: data.map((one) => [
    one.unit,
    ...counts(one, 'balance', 'held', 'available'),
    cell(creditAmount(one.expires[0]?.amount), one.expires[0]?.amount),
    time(one.expires[0]?.at),
  ]),
})

const grantTable = (view: View, data: Customer['grants']): Table => ({
  caption: 'Grants of credits',
  columns: [
    ...columns('Granted', 'Unit'),
    ...numbers('Amount', 'Left', 'Expired', 'Revoked'),
    ...columns('Expires', 'Order'),
  ],
  rows: data.map((one) => [
    time(one.created_at),
    one.unit,
    ...counts(one, 'amount', 'remaining', 'expired', 'revoked'),
    time(one.expires_at),
    cell(
      id(
        one.order_id,
        one.order_id === null ? undefined : view.href(pathOf('charges', organizationOf(view).id, one.order_id)),
      ),
      one.order_id,
    ),
  ]),
})

const holdTable = (data: Customer['holds']): Table => ({
  caption: 'Open holds of credits',
  columns: [...columns('Began', 'Unit'), ...numbers('Amount'), ...columns('Ends', 'Status')],
  rows: data.map((one) => [
    time(one.created_at),
    one.unit,
    ...counts(one, 'amount'),
    time(one.expires_at),
    status(one.status),
  ]),
})

function forms(view: View, externalId: string, units: Item<'listCreditUnits'>[]): Piece {
  const unit = selectField('unit', 'Unit', Object.fromEntries(units.map((one) => [one.unit, one.name])))
  // The key is that of the form: sent twice, it is done once.
  const hidden = () =>
    html`${hiddenField('external_id', externalId)}${hiddenField('idempotency_key', `dashboard-${randomUUID()}`)}`
  const action = (name: string) => view.href(pathOf('people', view.params.profile_id!, 'credits', name))
  return html`${actionForm(view, {
    action: action('grant'),
    button: 'Grant credits',
    explanation: html`Adds credits to the account of ${externalId} without a charge. A debt is paid first. They cannot be taken back but by a correction.`,
    fields: html`${hidden()}${unit}${textField('amount', 'Amount', { required: true })}${textField('expires_at', 'Expires on', { type: 'day', hint: 'At the end of this day, in UTC. Leave it empty if it does not expire.' })}`,
  })}
  ${actionForm(view, {
    action: action('adjust'),
    button: 'Correct a balance',
    danger: true,
    explanation: html`Adds credits to the account of ${externalId}, or takes what is available if the amount is negative.`,
    fields: html`${hidden()}${unit}${textField('amount', 'Amount', { required: true, hint: 'For example 10 or -10.' })}${textField('reason', 'Reason', { required: true, hint: 'Stored with the entry.' })}`,
  })}`
}

const removal = (view: View, externalId: string, rules: Item<'listOrganizationTopUps'>[]): Piece =>
  actionForm(view, {
    action: view.href(pathOf('people', view.params.profile_id!, 'credits', 'top-up')),
    button: 'Remove the top-up',
    danger: true,
    explanation: html`The card of ${externalId} is no longer charged automatically. A charge that has begun ends as any other.`,
    fields: html`${hiddenField('external_id', externalId)}${selectField('unit', 'Unit', Object.fromEntries(rules.map((one) => [one.unit, one.unit])))}`,
  })

export const grantToPerson = (view: View, form: URLSearchParams) =>
  send(view, form, 'grantCustomerCredits', 'granted', {
    ...(form.get('expires_at') && { expires_at: `${readDay('expires_at', form.get('expires_at')!)}T23:59:59.999999Z` }),
  })

export const adjustOfPerson = (view: View, form: URLSearchParams) =>
  send(view, form, 'adjustCustomerCredits', 'adjusted', { reason: form.get('reason') ?? '' })

async function send(
  view: View,
  form: URLSearchParams,
  operation: 'grantCustomerCredits' | 'adjustCustomerCredits',
  done: string,
  more: object,
): Promise<string> {
  const fields = ['external_id', 'unit', 'amount', 'idempotency_key'].map((name) => [name, form.get(name) ?? ''])
  await view.call(operation, {
    params: { organization_id: organizationOf(view).id },
    body: { ...Object.fromEntries(fields), ...more },
  })
  return view.href(pathOf('people', view.params.profile_id!), { done })
}

export async function removeTopUpOfPerson(view: View, form: URLSearchParams): Promise<string> {
  await view.call('removeCustomerTopUp', {
    params: { organization_id: organizationOf(view).id },
    body: { external_id: form.get('external_id') ?? '', unit: form.get('unit') ?? '' },
  })
  return view.href(pathOf('people', view.params.profile_id!), { done: 'top-up-removed' })
}
