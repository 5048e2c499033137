// Charges: acceptance rate, decline reasons, and the list.
import type { Item, Response } from '../call.ts'
import { urlValue } from '../dimensions.ts'
import { unfiltered } from '../filter.ts'
import { bar, id, moment, money, nameOfReason, number, percent, status } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Listed, listed, pageLinks } from '../lists.ts'
import { type Figure, figures, inEarlier, mostFirst, type Series, seriesTable, total, valueCell } from '../numbers.ts'
import { chosenFilters, customerLink, filters, rowsBehind, section, tableSection, tile, tiles } from '../parts.ts'
import { amountCells, amountColumns, type Column, cell, columns, named, numbers, sums, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import { allChoices, pathOf, type View } from '../view.ts'
import { declinedPayments } from './declined.ts'

const ATTEMPTS = 'attempts,accepted,declined,acceptance_rate'
const MADE: Series = { label: 'Attempts', metric: 'attempts', unit: 'number' }
const STATUSES = { processing: 'In progress', succeeded: 'Succeeded', failed: 'Failed', cancelled: 'Cancelled' }

const CHARGE_FILTERS = ['status', 'external_id']

export async function charges(view: View): Promise<Page> {
  if (!view.organization) return { title: 'Charges', body: noProject(view) }
  const ofProject = view.project && { project_id: view.project.id }
  const filter = chosenFilters(view, ...CHARGE_FILTERS)
  const orders = (name: string, query: Record<string, string>, options = {}) =>
    ordersOf(view, name, { ...ofProject, ...query }, options)
  const [sum, lines, reasons, types, providers, accounts, open, list, refused] = await Promise.all([
    total(view, ATTEMPTS),
    figures(view, 'attempts,acceptance_rate', { by: view.span.by, compare: true }),
    figures(view, 'declined', { by: 'reason' }),
    figures(view, 'declined', { by: 'decline' }),
    figures(view, ATTEMPTS, { by: 'provider' }),
    figures(view, ATTEMPTS, { by: 'account' }),
    orders('in-progress', { status: 'processing' }, { cursor: 'cursor_in_progress' }),
    orders('charges', filter),
    declinedPayments(view),
  ])
  return {
    title: 'Charges',
    hasPeriod: true,
    question: 'Are payments accepted, and why are they declined?',
    body: html`${open && open.data.length > 0 && tableSection(view, 'in-progress', orderTable(view, 'Charges in progress', open.data), { title: 'In progress', note: html`${unfiltered(view)}Their outcome is not known yet. Tundish asks the payment provider until it is. No one is charged twice.`, below: pageLinks(view, open) })}
      ${tiles(
        tile('Attempts', sum, 'attempts', 'number'),
        tile('Acceptance rate', sum, 'acceptance_rate', 'percent'),
        tile('Accepted', sum, 'accepted', 'number'),
        tile('Declined', sum, 'declined', 'number', {
          bad: true,
          rows: refused ? rowsBehind(view, '/charges', 'declined') : undefined,
        }),
      )}
      ${section(
        `Acceptance by ${view.span.by}`,
        chart(
          view,
          'acceptance',
          seriesTable(
            view,
            `Attempts and the share that succeeded, by ${view.span.by}`,
            lines,
            [MADE, { label: 'Accepted', metric: 'acceptance_rate', unit: 'percent' }, inEarlier(MADE)],
            { ofAll: sum.values },
          ),
          { kind: 'bar', lines: ['Accepted'] },
        ),
        {
          note: 'All payments in the payment report, including imported ones. Faint line: attempts in the earlier period.',
        },
      )}
      <div class="halves">${tableSection(view, 'reasons', reasonTable(view, reasons, sum.values.declined ?? 0), { empty: html`<p>No declined payments in this period.</p>`, note: declineTypes(types) })}
      ${tableSection(view, 'providers', providerTable(providers), { empty: html`<p>No payments in this period.</p>` })}</div>
      ${accounts.length > 0 && tableSection(view, 'accounts', accountTable(accounts))}
      ${refused}
      ${list && customCharges(view, list)}`,
  }
}

/** The charges that were made with the billing API. */
function customCharges(view: View, list: Listed<Item<'listOrders'>>): Piece {
  const isFiltered = Object.keys(chosenFilters(view, ...CHARGE_FILTERS)).length > 0
  return tableSection(view, 'charges', orderTable(view, 'Custom charges', list.data), {
    note: unfiltered(view),
    above: filters(view, [
      { name: 'status', label: 'Status', options: STATUSES },
      { name: 'external_id', label: 'Customer' },
    ]),
    empty: isFiltered
      ? html`<p>No charges match these filters.</p>`
      : html`<h3>No charges yet</h3><p>Custom charges are made with <a href="/docs/guides/charging">the billing API</a> once they are allowed in <a href="${view.href('/settings')}">Settings</a>.</p>`,
    below: pageLinks(view, list),
  })
}

/** Nothing for those who may not see orders. */
const ordersOf = async (view: View, name: string, query: Record<string, string>, options: object) =>
  view.may('listOrders')
    ? listed(view, name, 'listOrders', { params: { organization_id: view.organization!.id }, query }, options)
    : undefined

const reasonLink = (view: View, reason: string): Piece =>
  view.may('listDeclinedPayments')
    ? html`<a href="${view.href(view.path, { ...allChoices(view), reason: urlValue(reason) })}#declined">${nameOfReason(reason)}</a>`
    : nameOfReason(reason)

/** The most common reason first, each with its share of all declined payments. */
function reasonTable(view: View, reasons: Figure[], all: number): Table {
  const declines = mostFirst(reasons, 'declined').filter(({ values }) => values.declined)
  return {
    caption: 'Decline reasons',
    columns: [{ label: 'Reason' }, { label: '', bar: true }, ...sums('Declined'), ...numbers('Share')],
    rows: declines.map(({ key, values }) => [
      named(reasonLink(view, key ?? ''), key ?? ''),
      cell(bar(values.declined! / declines[0]!.values.declined!), null),
      valueCell('number', values.declined),
      valueCell('percent', all ? values.declined! / all : null),
    ]),
  }
}

const providerTable = (providers: Figure[]): Table => ({
  caption: 'By payment provider',
  columns: [{ label: 'Provider' }, ...attemptColumns],
  rows: mostFirst(providers, 'attempts').map(({ key, values }) => [key, ...attemptCells(values)]),
})

/** The key of an account is its provider, a space, and its ID, which old payments may lack. */
const accountTable = (accounts: Figure[]): Table => ({
  caption: 'By merchant account',
  columns: [{ label: 'Account' }, { label: 'Provider' }, ...attemptColumns],
  rows: mostFirst(accounts, 'attempts').map(({ key, values }) => {
    const [psp, ...account] = key!.split(' ')
    return [account.join(' ') || 'none', psp, ...attemptCells(values)]
  }),
})

const attemptColumns: Column[] = [
  { label: 'Acceptance', number: true, ratio: ['Accepted', 'Attempts'] },
  ...sums('Attempts', 'Accepted', 'Declined'),
]

const attemptCells = (values: Figure['values']) => [
  valueCell('percent', values.acceptance_rate),
  valueCell('number', values.attempts),
  valueCell('number', values.accepted),
  valueCell('number', values.declined),
]

/** How many declined payments may succeed on a retry. */
function declineTypes(found: Figure[]): Piece {
  const all = found.reduce((sum, { values }) => sum + (values.declined ?? 0), 0)
  const of = (key: string) => found.find((one) => one.key === key)?.values.declined ?? 0
  return (
    all > 0 &&
    html`${number(of('soft'))} soft declines (${percent(of('soft') / all)}), which may succeed on a retry; ${number(of('hard'))} hard declines (${percent(of('hard') / all)}), which will not.`
  )
}

type ShownOrder = Item<'listOrders'> | Response<'getPerson'>['orders'][number]

export function orderTable(view: View, caption: string, data: ShownOrder[]): Table {
  return {
    caption,
    columns: [
      { label: 'Order' },
      ...amountColumns('Amount'),
      ...columns('Status', 'Customer', 'Created', 'Provider'),
      { label: 'Refunded', number: true },
    ],
    rows: data.map((one) => [
      cell(id(one.order_id, view.href(pathOf('charges', one.organization_id, one.order_id))), one.order_id),
      ...amountCells(one),
      html`${status(one.status)}${one.failed_message_for_user && html`<br><span class="quiet">${one.failed_message_for_user}</span>`}`,
      customerLink(view, one.external_id),
      moment(one.created_at),
      [one.psp, one.psp_merchant_id].filter(Boolean).join(', '),
      cell(one.amount_refunded > 0 ? money(one.amount_refunded, one.currency_code) : '', one.amount_refunded),
    ]),
  }
}
