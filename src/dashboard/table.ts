// Tables as HTML, and charts of them.
import { type Html, html, type Piece } from './html.ts'
import { type Cell, type Column, isCell, type Table } from './sheet.ts'
import { allChoices, type View } from './view.ts'

interface Options {
  /** Shown instead of no rows: what that means and what to do next. */
  empty?: Piece
  /** Whether the caption is for screen readers only, since a heading above says the same. */
  hideCaption?: boolean
}

/** A table, which is also available as CSV under its id. */
export function table(view: View, name: string, content: Table, { empty, hideCaption }: Options = {}): Html {
  view.tables.set(name, content)
  const { caption, columns, rows } = content
  if (rows.length === 0)
    return html`<div class="empty" id="${name}">${empty ?? html`<p>There is nothing yet.</p>`}</div>`
  const isEven = columns.every((one, n) => n === 0 || one.number || one.sheetOnly)
  return html`<div class="scroll${isEven && ' even'}" tabindex="0" role="region" aria-label="${caption}"><table id="${name}">
    <caption class="${hideCaption ? 'hidden' : ''}">${caption}</caption>
    <thead><tr>${columns.map(headOf)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((one, n) => cellOf(one, columns[n]!))}</tr>\n`)}</tbody>
  </table></div>`
}

const headOf = ({ label, number, bar, sheetOnly, sum }: Column) =>
  sheetOnly
    ? ''
    : bar
      ? html`<td class="bars"></td>`
      : html`<th scope="col" class="${number ? 'number' : ''}"${sum && html` data-sum`}>${label}</th>`

function cellOf(one: Cell | Piece, { number, bar, sheetOnly }: Column): Piece {
  if (sheetOnly) return ''
  const { shown, value } = isCell(one) ? one : { shown: one, value: undefined }
  const data = value === undefined || value === null ? '' : html` data-value="${value}"`
  const look = number ? (value === 0 ? 'number zero' : 'number') : bar ? 'bars' : ''
  return html`<td class="${look}"${data}>${shown}</td>`
}

/** A link to the table as CSV. */
export const csvLink = (view: View, name: string) =>
  html`<a class="quiet" href="${view.href(view.path, { ...allChoices(view), csv: name })}" hx-boost="false" download>CSV</a>`

const isEmpty = ({ rows }: Table) => !rows.some((row) => row.some((one) => isCell(one) && Number(one.value) > 0))

interface Chart {
  kind: 'line' | 'bar' | 'stacked'
  /** Labels of columns that are drawn as lines over bars. */
  lines?: string[]
  unit?: 'usd' | 'percent' | 'number'
}

/** A chart of a table, drawn by the script; without scripts the table alone is shown. */
export function chart(view: View, name: string, content: Table, { kind, lines = [], unit = 'number' }: Chart): Html {
  const rows = table(view, name, content, { hideCaption: true })
  if (content.rows.length === 0 || isEmpty(content))
    return html`<div class="empty"><p>Nothing in this period.</p></div>`
  return html`<figure class="chart" data-chart="${kind}" data-lines="${lines.join('|')}" data-unit="${unit}" data-table="${name}">
    <div class="canvas" hidden><canvas role="img" aria-label="${content.caption}; the same numbers are in the table below"></canvas></div>
    ${content.shorter && html`<p class="quiet shorter" hidden>${kind === 'line' ? 'Dashed' : 'Faded'}: ${content.shorter}.</p>`}
    <details><summary>Numbers</summary><p class="actions">${csvLink(view, name)}</p>${rows}</details>
  </figure>`
}
