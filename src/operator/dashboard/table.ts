// Tables and charts as HTML.
import { hasRight } from '../../core/tenants/access.ts'
import { money, number } from './format.ts'
import { type Html, html, type Piece, textOf } from './html.ts'
import { roundMoney, show } from './numbers.ts'
import { type Cell, type Column, isCell, type Table } from './sheet.ts'
import { allChoices, inCurrency, type View } from './view.ts'

interface Options {
  /** Shown if there are no rows: what that means and what to do next. */
  empty?: Piece
  /** Whether the caption is for screen readers only, because a heading has the same text. */
  hideCaption?: boolean
  /** The most rows that are shown; the others are in the CSV. */
  most?: number
}

/** A table as HTML. Registers it in the view, so that it is available as CSV under its id. */
export function table(
  view: View,
  name: string,
  whole: Table,
  { empty, hideCaption, most = Infinity }: Options = {},
): Html {
  const content = inReportingCurrency(view, allowed(view, whole))
  const cutAfter = view.cuts.get(name)
  view.tables.set(name, cutAfter === undefined ? content : { ...content, cutAfter })
  const { caption, columns, rows } = content
  if (rows.length === 0)
    return html`<div class="empty" id="${name}">${refusal(view) || (empty ?? html`<p>Nothing here yet.</p>`)}</div>`
  const shown = [...columns.keys()].filter((n) => isShown(view, columns[n]!))
  const isEven = shown.every((n) => n === 0 || columns[n]!.number)
  return html`<div class="scroll${isEven && ' even'}" tabindex="0" role="region" aria-label="${caption}"><table id="${name}">
    <caption class="${hideCaption ? 'hidden' : ''}">${caption}</caption>
    <thead><tr>${shown.map((n) => headOf(columns[n]!))}</tr></thead>
    <tbody>${firstOf(rows, most).map((row) => html`<tr>${shown.map((n) => cellOf(row[n], columns[n]!))}</tr>\n`)}</tbody>
    ${totalRow(view, content, shown)}
  </table></div>${rows.length > most && html`<p class="quiet">The first ${number(most)} of ${number(rows.length)} rows. The CSV has all of them.</p>`}`
}

/** The first rows, and the last one if it is the total of the others. */
function firstOf(rows: Table['rows'], most: number): Table['rows'] {
  if (rows.length <= most) return rows
  const last = rows.at(-1)!
  return [...rows.slice(0, most), ...(typeof last[0] === 'string' && TOTALS.includes(last[0]) ? [last] : [])]
}

const TOTALS = ['Total', 'All', 'All replies']

/** Where a filter is refused, what is empty may not be so without it. */
const refusal = ({ filtered }: View): Piece =>
  filtered.refused.size > 0 && html`<p>Nothing is shown here with these filters. ${[...filtered.refused].join(' ')}</p>`

/** The table without the columns that are for others, which are missing in the CSV too. */
function allowed(view: View, { columns, rows, ...others }: Table): Table {
  const kept = [...columns.keys()].filter((n) => {
    const { right } = columns[n]!
    return right === undefined || hasRight(view.session.access, right)
  })
  return { ...others, columns: kept.map((n) => columns[n]!), rows: rows.map((row) => kept.map((n) => row[n])) }
}

/** Cells are made without knowing the page: those with money are shown in US dollars until here. */
function inReportingCurrency({ reporting: { currency } }: View, content: Table): Table {
  if (currency === 'USD') return content
  const rows = content.rows.map((row) =>
    row.map((one) =>
      isCell(one) && one.unit === 'usd' && typeof one.value === 'number'
        ? { ...one, shown: money(one.value, currency) }
        : one,
    ),
  )
  return { ...content, rows, currency }
}

/** A column of buttons is empty for operators who may not use them. */
const isShown = ({ maySend }: View, { csvOnly, actions }: Column) =>
  !csvOnly && (actions === undefined || actions.some((form) => maySend(form)))

const headOf = ({ label, number, bar, sum, earlier }: Column) =>
  bar
    ? html`<td class="bars"></td>`
    : html`<th scope="col" class="${number ? 'number' : ''}"${sum && html` data-sum`}${earlier && html` data-earlier`}>${label}</th>`

function cellOf(one: Cell | Piece, { number, bar }: Column): Piece {
  const { shown, value, id }: Cell = isCell(one) ? one : { shown: one }
  const data = value === undefined || value === null ? '' : html` data-value="${id ?? value}"`
  const look = number
    ? value === 0
      ? 'number zero'
      : 'number'
    : bar
      ? 'bars'
      : textOf(shown).length <= MAX_LINE
        ? 'line'
        : ''
  // A formatted 0; one with other text in the cell stays.
  return html`<td class="${look}"${data}>${number && value === 0 && typeof shown === 'string' ? ZERO : shown}</td>`
}

// A shorter text, such as the name of a country or an account, is not broken where there is room.
const MAX_LINE = 28

/**
 * The row with the sums of a table with several rows, and with the rates of these sums. Its CSV has none, which a spreadsheet would add
 * again.
 */
function totalRow({ reporting }: View, { columns, rows }: Table, shown: number[]): Piece {
  if (rows.length < 2 || !shown.some((n) => columns[n]!.total)) return ''
  const cellsOf = (n: number) => rows.flatMap((row) => (isCell(row[n]) ? [row[n]] : []))
  const sumOf = (n: number) =>
    roundMoney(cellsOf(n).reduce((all, { value }) => all + (typeof value === 'number' ? value : 0), 0))
  const rateOf = (ratio: readonly [string, string]) => {
    const [part, whole] = ratio.map((label) => sumOf(columns.findIndex((one) => one.label === label))) as [
      number,
      number,
    ]
    return whole === 0 ? null : part / whole
  }
  return html`<tfoot><tr>${shown.map((n, at) => {
    const { total, ratio, ofAll = null, number, bar } = columns[n]!
    if (at === 0) return html`<th scope="row">Total</th>`
    if (!total && !ratio && ofAll === null) return html`<td class="${number ? 'number' : bar ? 'bars' : ''}"></td>`
    const unit = cellsOf(n).find((one) => one.unit)?.unit ?? (ratio ? 'percent' : 'number')
    const value = total ? sumOf(n) : ratio ? rateOf(ratio) : ofAll
    return html`<td class="number">${value === 0 ? ZERO : show(unit, value, reporting.currency)}</td>`
  })}</tr></tfoot>`
}

const ZERO = html`<span class="none" aria-label="0">–</span>`

/** A link that downloads the table, which is in the view already, as CSV. */
export const csvLink = (view: View, name: string) =>
  html`<a class="quiet" href="${view.href(view.path, { ...allChoices(view), csv: name })}" hx-boost="false" aria-label="CSV: ${view.tables.get(name)?.caption ?? name}">CSV</a>`

/** Whether all numbers are 0. They may be negative: a won dispute returns money. */
const isEmpty = ({ rows }: Table) =>
  !rows.some((row) => row.some((one) => isCell(one) && typeof one.value === 'number' && one.value !== 0))

// As in dashboard.js: a line chart with fewer points has bars.
const FEW_POINTS = 14

interface Chart {
  kind: 'line' | 'bar' | 'stacked'
  /** The labels of the columns that are drawn as lines above the bars. */
  lines?: string[]
  unit?: 'usd' | 'percent' | 'number'
}

/** A chart of a table, drawn in the browser. Without scripts only the table is shown. */
export function chart(view: View, name: string, content: Table, { kind, lines = [], unit = 'number' }: Chart): Html {
  const rows = table(view, name, content, { hideCaption: true })
  if (content.rows.length === 0 || isEmpty(content))
    return html`<div class="empty"><p>${unit === 'usd' ? `No amounts with a value ${inCurrency(view)}` : 'No data'} in this period.</p></div>`
  return html`<figure class="chart" data-chart="${kind}" data-lines="${lines.join('|')}" data-unit="${unit}" data-currency="${view.reporting.currency}" data-table="${name}">
    <div class="canvas" hidden><canvas role="img" aria-label="${content.caption}; the same numbers are in the table below"></canvas></div>
    ${content.incomplete && html`<p class="quiet incomplete" hidden>${kind === 'line' && content.rows.length > FEW_POINTS ? 'Dashed' : 'Faded'}: ${content.incomplete}.</p>`}
    <details><summary>Numbers</summary><p class="actions">${csvLink(view, name)}</p>${rows}</details>
  </figure>`
}
