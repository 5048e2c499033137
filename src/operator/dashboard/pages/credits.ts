// Credits of an organization: by unit, by day, automatic top-ups, and the entries behind the figures.
import { addDays, dateOf } from '../../../lib/days.ts'
import type { Item, Response } from '../call.ts'
import { creditAmount, labelsOf, status, time, words } from '../format.ts'
import { html } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { chosenFilters, customerLink, filters, tableSection } from '../parts.ts'
import { amountCells, amountColumns, cell, columns, numbers, type Table } from '../sheet.ts'
import { noProject, type Page, PLAIN_PERIOD } from '../shell.ts'
import type { View } from '../view.ts'

const ACCOUNTS = labelsOf('granted', 'spent', 'expired', 'revoked', 'adjusted')

export async function credits(view: View): Promise<Page> {
  const title = 'Credits'
  const question = 'How much of each unit was sold and used, and how much is owed to customers?'
  if (!view.organization) return { title, body: noProject(view) }
  const params = { organization_id: view.organization.id }
  const { from } = view.span
  const of = chosenFilters(view, 'unit')
  const [totals, days, rules, entries] = await Promise.all([
    view.call('getCreditTotals', { params }),
    view.call('getCreditDays', { params, query: { ...of, from, ...lastDay(view) } }),
    view.may('listOrganizationTopUps')
      ? listed(view, 'top-ups', 'listOrganizationTopUps', { params, query: of }, { cursor: 'cursor_rules' })
      : undefined,
    view.may('listOrganizationCreditEntries')
      ? listed(view, 'entries', 'listOrganizationCreditEntries', {
          params,
          query: { ...of, ...chosenFilters(view, 'account', 'day', 'external_id') },
        })
      : undefined,
  ])
  if (totals.data.length === 0) return { title, question, body: noUnits(view) }
  const units = Object.fromEntries(totals.data.map(({ unit }) => [unit, unit]))
  return {
    title,
    ...PLAIN_PERIOD,
    question,
    body: html`${tableSection(view, 'units', unitTable(view, totals.data), { note: 'Now. What is outstanding is a liability.' })}
      ${tableSection(view, 'days', dayTable(view, days.data), { note: `Days in ${days.time_zone}. Debts are taken off what is outstanding.`, empty: html`<p>No movements in this period.</p>`, short: true })}
      ${rules && tableSection(view, 'top-ups', topUpTable(view, rules.data), { empty: html`<p>No customer has an automatic top-up.</p>`, below: pageLinks(view, rules) })}
      ${
        entries &&
        tableSection(view, 'entries', entryTable(view, entries.data), {
          above: filters(view, [
            { name: 'unit', label: 'Unit', options: units },
            { name: 'account', label: 'Account', options: ACCOUNTS },
            { name: 'day', label: 'Day', type: 'day' },
            { name: 'external_id', label: 'Customer' },
          ]),
          empty: html`<p>No entries.</p>`,
          below: pageLinks(view, entries),
        })
      }`,
  }
}

/** The last day of the period; none if it is today, because the days of an organization may begin earlier than those of the project. */
const lastDay = ({ span: { to, today } }: View) => (to > today ? {} : { to: addDays(to, -1) })

const noUnits = ({ organization }: View) =>
  html`<div class="empty"><h2>No credits</h2><p>An organization can sell tokens, minutes and other <a href="/docs/guides/credits">credits</a>. Create a unit on the command line:
    <code>tundish credits unit create tokens --org ${organization!.id}</code></p></div>`

export const counts = <N extends string>(row: Record<N, number | null>, ...names: N[]) =>
  names.map((name) => cell(creditAmount(row[name]), row[name]))

const unitTable = (view: View, data: Response<'getCreditTotals'>['data']): Table => ({
  caption: 'By unit',
  columns: [
    { label: 'Unit' },
    ...numbers('Outstanding', 'Sold', 'Spent', 'Expired', 'Revoked', 'Adjusted', 'Debts', 'Customers'),
  ],
  rows: data.map((one) => [
    cell(html`<a href="${view.href('/credits', { unit: one.unit })}">${one.unit}</a>`, one.unit),
    ...counts(one, 'outstanding', 'sold', 'spent', 'expired', 'revoked', 'adjusted', 'debts', 'customers'),
  ]),
})

const dayTable = (view: View, data: Response<'getCreditDays'>['data']): Table => ({
  caption: 'By day',
  columns: [
    ...columns('Day', 'Unit'),
    ...numbers('Outstanding', 'Sold', 'Spent', 'Expired', 'Revoked', 'Adjusted', 'Entries'),
  ],
  rows: data.map((one) => [
    cell(
      html`<a href="${view.href('/credits', { unit: one.unit, day: one.day })}#entries">${dateOf(one.day, view.span.today)}</a>`,
      one.day,
    ),
    one.unit,
    ...counts(one, 'outstanding', 'sold', 'spent', 'expired', 'revoked', 'adjusted', 'entries'),
  ]),
})

/** Rules of automatic top-ups; also on the page of a person. */
export const topUpTable = (view: View, data: Item<'listOrganizationTopUps'>[]): Table => ({
  caption: 'Automatic top-ups',
  columns: [
    ...columns('Customer', 'Unit', 'Status'),
    ...numbers('Below', 'Grants'),
    ...amountColumns('Charge'),
    ...numbers('Today', 'This month'),
    { label: 'Why off' },
  ],
  rows: data.map((one) => [
    customerLink(view, one.external_id),
    one.unit,
    status(one.status),
    ...counts(one, 'below', 'grants'),
    ...amountCells(one),
    cell(`${one.used_of_day} of ${one.most_per_day}`, one.used_of_day),
    cell(`${one.used_of_month} of ${one.most_per_month}`, one.used_of_month),
    one.off_reason ? words(one.off_reason) : '',
  ]),
})

/** Entries of the ledger; also on the page of a person. */
export const entryTable = (view: View, data: Item<'listOrganizationCreditEntries'>[]): Table => ({
  caption: 'Entries',
  columns: [
    ...columns('When', 'Customer'),
    ...numbers('Amount'),
    ...columns('Unit', 'Cause'),
    ...numbers('Balance'),
    ...columns('Reason', 'Key'),
  ],
  rows: data.map((one) => [
    time(one.created_at),
    customerLink(view, one.external_id),
    ...counts(one, 'amount'),
    one.unit,
    words(one.cause),
    ...counts(one, 'balance'),
    one.reason ?? '',
    one.idempotency_key ?? '',
  ]),
})
