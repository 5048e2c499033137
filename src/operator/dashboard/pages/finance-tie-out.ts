// The tie-out of a month as a table, and the page with the rows of its differences.
import { monthOf } from '../../../lib/days.ts'
import type { Json } from '../../../lib/json/json.ts'
import { mapInTurns } from '../../../lib/time-sliced.ts'
import { readPeriod } from '../../../payments/billing/finance/period.ts'
import { sumOfTexts } from '../../../payments/billing/finance/sums.ts'
import { tieOutRows } from '../../admin/tie-out.ts'
import { type Exact, exactValue, type Response } from '../call.ts'
import { id, money, number, plainMoney, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Listed, pageLinks } from '../lists.ts'
import { personLink, tableSection } from '../parts.ts'
import { amountCells, amountColumns, type Cell, cell, columns, csvColumns, numbers, type Table } from '../sheet.ts'
import type { Page } from '../shell.ts'
import { organizationOf, type View } from '../view.ts'
import { amount, monthBefore, presentMonth } from './finance-tables.ts'

type TieOut = Exact<Response<'getTieOut'>>
type TieOutRows = Exact<Response<'listTieOutRows'>>
type TieOutRow = TieOutRows['data'][number]

export function tieOut(view: View, tied: TieOut, month: string): Piece {
  const reported = tied.reporting_currency
  const named = Map.groupBy(tied.differences, ({ name }) => name)
  const lines = [...named].map(([name, all]): (Cell | Piece)[] => {
    const value = sumOfTexts(all.map(({ amount_reported }) => String(amount_reported)))
    const rows = all.reduce((sum, one) => sum + one.rows, 0)
    return [
      cell(
        html`<a href="${view.href('/finance/differences', { month, name })}">${words(name)}</a><br><span class="quiet">${all[0]!.meaning}</span>`,
        name,
      ),
      amount(value, reported),
      cell(
        all.map(({ amount: own, currency_code }, n) => [n > 0 && ', ', money(own, currency_code)]),
        all.map((one) => `${one.currency_code} ${plainMoney(one.amount, one.currency_code)}`).join('; '),
      ),
      cell(number(rows), rows),
    ]
  })
  const bold = (text: string, value: number | string, column: 'dashboard' | 'finance') => [
    cell(html`<strong>${text}</strong>`, text),
    amount(value, reported),
    cell(
      tied.currencies.map((one, n) => [n > 0 && ', ', money(one[column], one.currency_code)]),
      tied.currencies.map((one) => `${one.currency_code} ${plainMoney(one[column], one.currency_code)}`).join('; '),
    ),
    cell('', null),
  ]
  const table: Table = {
    caption: 'From finance to the dashboard',
    columns: [
      { label: 'Gross revenue' },
      ...numbers(`In ${reported}`),
      ...csvColumns('By currency'),
      ...numbers('Rows'),
    ],
    rows: [
      bold('Finance', tied.reporting.finance, 'finance'),
      ...lines,
      bold('Dashboard', tied.reporting.dashboard, 'dashboard'),
    ],
  }
  return html`${tableSection(view, 'tie-out', table, {
    note:
      tied.differences.length === 0
        ? 'Both have the same gross revenue.'
        : 'Both count the same sales from two sources. The lines between them are the whole difference, to the cent.',
  })}
    ${tableSection(view, 'tie-out-currencies', currencyTable(tied), { empty: html`<p>No revenue in this month.</p>` })}`
}

function currencyTable({ currencies }: TieOut): Table {
  return {
    caption: 'By currency',
    columns: [{ label: 'Currency' }, ...numbers('Difference', 'Dashboard', 'Finance')],
    rows: currencies.map(({ currency_code, dashboard, finance, difference }) => [
      currency_code,
      ...[difference, dashboard, finance].map((value) => amount(value, currency_code)),
    ]),
  }
}

/** The payments and transactions that a difference consists of. */
export async function differences(view: View): Promise<Page> {
  const organization = organizationOf(view)
  const month = view.query.get('month') ?? monthBefore(await presentMonth(view), 1)
  const name = view.query.get('name')
  const list = await rowsOf(view, organization.id, { month, ...(name && { name }) })
  const content: Table = {
    caption: name ? words(name) : 'All differences',
    of: name ? [name] : [],
    columns: [
      { label: 'Difference', csvOnly: name !== null },
      ...amountColumns('Amount'),
      { label: 'When' },
      ...numbers('Dashboard', 'Finance'),
      { label: 'Customer', right: 'people' },
      ...columns('Transaction', 'Payment'),
    ],
    rows: await mapInTurns(list.data, (one) => [
      words(one.name),
      ...amountCells({ amount: one.difference, currency_code: one.currency_code }),
      time(one.transaction_at ?? one.paid_at),
      amount(one.dashboard, one.currency_code),
      amount(one.finance, one.currency_code),
      cell(one.profile_id && personLink(view, one.profile_id, one.external_id), one.external_id ?? one.profile_id),
      cell(one.transaction_id && id(one.transaction_id), one.transaction_id),
      cell(one.trx_id && id(one.trx_id), one.trx_id),
    ]),
  }
  return {
    title: 'Differences',
    days: readPeriod({ month }),
    actions: html`<a href="${view.href('/finance', { month })}">Back to ${monthOf(month)}</a>`,
    question: html`Which payments and transactions of ${monthOf(month)} are only in the dashboard or only in finance?`,
    body: html`${tableSection(view, 'differences', content, {
      empty: html`<p>No difference.</p>`,
      note: 'The largest first.',
      below: pageLinks(view, list),
    })}`,
  }
}

const SHOWN_ROWS = 50
const MAX_CSV_ROWS = 100_000
// The database makes the whole comparison for each page.
const CSV_PAGE = 10_000

/** The shown page of the rows; all of them if they are downloaded as CSV. */
async function rowsOf(
  view: View,
  organizationId: string,
  query: { month: string; name?: string },
): Promise<Listed<TieOutRow>> {
  const call = (more: { limit: number; after: number }): Promise<TieOutRows> =>
    view.call.exactly('listTieOutRows', { params: { organization_id: organizationId }, query: { ...query, ...more } })
  if (view.query.get('csv') !== 'differences') {
    const { data, next_after } = await call({ limit: SHOWN_ROWS, after: Number(view.query.get('cursor') ?? 0) })
    return { data, next: next_after === null ? undefined : String(next_after), cursor: 'cursor' }
  }
  // The operation, which also checks who asks, has smaller pages.
  const { data, next_after } = await call({ limit: 1000, after: 0 })
  const [{ db }, { access }] = [view.app, view.session]
  let next = next_after
  while (next !== null && data.length < MAX_CSV_ROWS) {
    const part = { limit: Math.min(CSV_PAGE, MAX_CSV_ROWS - data.length), after: next }
    const page = exactValue((await tieOutRows(db, access, organizationId, { ...query, ...part })) as Json<TieOutRows>)
    for (const one of page.data) data.push(one)
    next = page.next_after
  }
  if (next !== null) view.cuts.set('differences', data.length)
  return { data, next: undefined, cursor: 'cursor' }
}
