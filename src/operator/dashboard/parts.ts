// What several pages consist of: tiles, sections, steps of a funnel, links between pages of a list, forms.
import { choiceOptions, chosenValue } from './dimensions.ts'
import { bar, change, number, percent, plural } from './format.ts'
import { type Html, html, type Piece } from './html.ts'
import type { Lacking } from './lacking.ts'
import { type Figure, show, type Unit } from './numbers.ts'
import { keptIfRefused } from './refused-form.ts'
import type { Table } from './sheet.ts'
import { csvLink, table } from './table.ts'
import { dayInput } from './typed-days.ts'
import { allChoices, hiddenParameters, inCurrency, pathOf, type View } from './view.ts'

interface Tile {
  /** Whether growth is bad. */
  bad?: boolean
  /** Whether the figure is an average or a share, which a period without records has none of: not 0. */
  isRate?: boolean
  /** Shown instead of the change. */
  note?: Piece
  /** What the figure leaves out, shown behind the change. */
  lacks?: Lacking | undefined
  /** The page with the details, to which the label links. */
  href?: string
  /** The list of what the figure counts, to which the tile links. */
  rows?: string | undefined
}

/** The address of the list with the rows behind a figure; undefined without a single project, and for those who may not see the list. */
export const rowsBehind = (view: View, path: string, list: string, choices: Record<string, string | null> = {}) =>
  view.project && view.mayOpen(path) ? `${view.href(path, choices)}#${list}` : undefined

/** A figure of the period with its change. */
export function tile(
  label: string,
  figure: Figure,
  metric: string,
  unit: Unit,
  { bad = false, isRate = unit === 'percent', note, lacks, href, rows }: Tile = {},
): Html {
  const isLeft = figure.left?.has(metric) ?? false
  const value = figure.values[metric] ?? (isRate || isLeft ? null : 0)
  const shown = show(unit, value, figure.currency ?? 'USD')
  // As many characters fit into a tile in the normal font size.
  const isLong = typeof shown === 'string' && shown.length > 12
  return html`<div class="tile"><dt>${href === undefined ? label : html`<a href="${href}">${label}</a>`}</dt><dd><strong${isLong && html` class="long"`}>${shown}</strong>
    <span class="quiet">${isLeft ? 'not known with these filters' : (note ?? changeOf(figure, metric, unit, bad, lacks?.before))}</span>${lacks?.shown && html` <span class="quiet lacks">${lacks.shown}</span>`}${rows && html`<a class="whole" href="${rows}" aria-label="${label}: list"></a>`}</dd></div>`
}

/** The change with the earlier value; nothing if there is nothing to compare with. */
function changeOf(figure: Figure, metric: string, unit: Unit, bad: boolean, without: Piece = ''): Piece {
  const { compared, previous, currency } = figure
  const [now, before] = [compared?.[metric], previous?.[metric]]
  if (now === null || now === undefined || before === null || before === undefined) return ''
  const from = html`<span class="before">from ${show(unit, before, currency ?? 'USD')}</span>${without && html` (${without})`}`
  if (before === 0 && unit !== 'percent') return now === 0 ? '' : from
  return html`${change(now, before, { bad, isShare: unit === 'percent' })} ${from}`
}

/** Links to the same page by each of the options, of which one is chosen. */
export const choices = (
  view: View,
  options: Record<string, string>,
  chosen: string,
  parameters = (key: string): Record<string, string> => ({ split: key }),
): Html =>
  html`<p class="chips">${Object.entries(options).map(([key, label]) => html`<a href="${view.href(view.path, parameters(key))}"${key === chosen ? html` aria-current="true"` : ''}>${label}</a> `)}</p>`

/** Says that amounts are missing from the figures; nothing if all have a value in the reporting currency. */
export function withoutDollars(view: View, { values }: Figure): Piece {
  const count = values.without_usd ?? 0
  if (count === 0) return ''
  return html`<p class="note">${plural(count, 'payment, refund or chargeback has', 'payments, refunds and chargebacks have')} no value ${inCurrency(view)} and can only be seen in the <a href="${view.href('/revenue', { split: 'currency' })}#currencies">table by currency</a>. ${howToValue(view.reporting.currency)}</p>`
}

/** Says how much sandbox and preview data the page leaves out; `whole` is the figure with it. */
export function withoutSandbox(view: View, { values }: Figure, whole: Figure | undefined): Piece {
  if (view.test || !whole) return ''
  const more = (metric: string) => Math.max(0, (whole.values[metric] ?? 0) - (values[metric] ?? 0))
  const parts = [
    [more('sales'), 'sale'],
    [more('sessions'), 'session'],
    [more('new_subscriptions'), 'new subscription'],
  ] as const
  const left = parts.flatMap(([count, noun]) => (count > 0 ? [plural(count, noun)] : []))
  if (left.length === 0) return ''
  return html`<p class="note">Sandbox and preview data is left out: ${left.join(', ')}. <a href="${view.href(view.path, { ...allChoices(view), test: '1' })}">Include it</a></p>`
}

/** How amounts in other currencies get a value. Values that were imported are in US dollars. */
export const howToValue = (currency: string): Html =>
  currency === 'USD'
    ? IMPORT_OR_LOAD
    : html`<a href="/docs/guides/commands#rates">Load exchange rates</a>: the figures follow.`

const IMPORT_OR_LOAD = html`<a href="/docs/guides/import#kinds">Import them with their value</a>, or <a href="/docs/guides/commands#rates">load exchange rates</a> before you charge or import from Stripe.`

/** Tiles in full rows: the stylesheet chooses the columns by the number of tiles, and a smaller font for ten characters in narrow ones. */
export const tiles = (...all: Piece[]) =>
  html`<dl class="tiles of-${all.length}${/<strong>[^<]{10}/.test(all.join('')) && ' wide'}">${all}</dl>`

export function section(title: string, body: Piece, { actions, note }: { actions?: Piece; note?: Piece } = {}): Html {
  return html`<section><div class="heading"><h2>${title}</h2><div class="actions">${actions}</div></div>
    ${note && html`<p class="quiet">${note}</p>`}${body}</section>`
}

interface TableSection {
  /** The heading, if it is not the table's caption. */
  title?: string
  note?: Piece
  /** Shown instead of the table if it has no rows. */
  empty?: Piece
  /** Between the heading and the table: filters. */
  above?: Piece
  /** Below the table: links to further pages, buttons. */
  below?: Piece
  /** Whether a long table scrolls in a box of limited height. */
  short?: boolean
}

// Visitors can choose the values of a dimension, up to 1,000 a day: a page with all of them could not be read.
const MOST_ROWS = 100

/** A section with a table and a link that downloads it as CSV. */
export function tableSection(view: View, name: string, content: Table, more: TableSection = {}): Html {
  const { title = content.caption, note, empty, above, below, short = false } = more
  const rows = table(view, name, content, { empty, hideCaption: true, most: MOST_ROWS })
  const actions = content.rows.length > 0 && csvLink(view, name)
  const body = html`${above}${short ? html`<div class="short">${rows}</div>` : rows}${below}`
  return section(title, body, { note, actions })
}

/** The count at each step, with a bar, its share of the first step and its share of the previous step. */
export function steps(all: { label: string; count: number }[]): Html {
  const first = all[0]?.count ?? 0
  return html`<ol class="steps">${all.map(({ label, count }, n) => {
    const before = all[n - 1]?.count
    return html`<li><span class="label">${label}</span>
      <strong>${number(count)}</strong> ${bar(first > 0 ? count / first : 0)}
      <span class="quiet">${n === 0 ? 'all' : html`${percent(first ? count / first : null)} of all, ${shareOf(count, before)}`}</span></li>`
  })}</ol>`
}

/** A step can be reached without the one before it. */
const shareOf = (count: number, before: number | undefined) =>
  before !== undefined && count > before
    ? 'more than the previous step'
    : html`${percent(before ? count / before : null)} of the previous step`

interface Choice {
  name: string
  label: string
  /** The labels of the values to choose from; without them the filter is a text field. */
  options?: Record<string, string>
  type?: string
}

/** The form with the filters of a list, which become query parameters. */
export function filters(view: View, choices: Choice[]): Html {
  const names = choices.map(({ name }) => name)
  const chosen = names.some((name) => view.query.get(name))
  const form = html`<form class="filters" method="get" action="${view.path}">${hiddenParameters(view, names)}
    ${choices.map(({ name, label, options, type = 'text' }) => {
      const value = view.query.get(name) ?? ''
      return html`<label>${label} ${
        options
          ? html`<select name="${name}" data-submit>${choiceOptions(options, value)}</select>`
          : type === 'day'
            ? dayInput(name, value)
            : html`<input name="${name}" type="${type}" value="${value}" maxlength="320">`
      }</label>`
    })}<button>Filter</button>${chosen ? html`<a href="${view.href(view.path)}">Clear</a>` : ''}</form>`
  return keptIfRefused(view, view.path, form)
}

/** The chosen filters, as parameters of the operation. */
export function chosenFilters(view: View, ...names: string[]): Record<string, string> {
  const chosen = names.map((name) => [name, chosenValue(view.query, name)])
  return Object.fromEntries(chosen.filter(([, value]) => value !== undefined))
}

/** The id of a billing customer, linked to the search, which finds the person. */
export const customerLink = (view: View, externalId: string | undefined): Piece =>
  externalId !== undefined &&
  html`<a class="cut" href="${view.href('/people', { q: externalId })}" title="${externalId}">${externalId}</a>`

/** The page of a person, under a name if it is known. */
export const personLink = (view: View, profileId: string, name: string | null | undefined): Html =>
  html`<a class="cut" href="${view.href(pathOf('people', profileId))}" title="${name ?? profileId}">${name ?? profileId}</a>`

/** A link to another page, or only its text for operators who may not open it. */
export const pageLink = (view: View, path: string, text: string): Piece =>
  view.mayOpen(path) ? html`<a href="${view.href(path)}">${text}</a>` : text

/** The fields of one object: names and values. */
export const facts = (all: Record<string, Piece>) =>
  html`<dl class="facts">${Object.entries(all).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`

interface ActionForm {
  /** The path that the form is sent to. */
  action: string
  /** The label of the button. */
  button: string
  /** Says what will happen. */
  explanation: Piece
  fields?: Piece
  danger?: boolean
}

/** A button that opens a form, which says what will happen before it can be sent. Not shown to operators who may not send it. */
export function actionForm(view: View, { action, button, explanation, fields, danger = false }: ActionForm): Piece {
  if (!view.maySend(action)) return ''
  const form = html`<details class="action-form"><summary class="button ${danger ? 'danger' : ''}">${button}…</summary>
    <form method="post" action="${action}" hx-boost="false" class="stack"><p>${explanation}</p>${fields}
      <button class="button ${danger ? 'danger' : 'main'}">${button}</button></form></details>`
  return keptIfRefused(view, action, form)
}

/** A form of one button, which looks like a link. */
export const linkButton = (action: string, label: string, fields?: Piece): Html =>
  html`<form method="post" action="${action}" hx-boost="false">${fields}<button class="link">${label}</button></form>`

const field = (label: string, input: Piece, hint?: Piece) =>
  html`<label class="field"><span>${label}</span>${input}${hint && html`<span class="quiet">${hint}</span>`}</label>`

export const hiddenField = (name: string, value: string) => html`<input type="hidden" name="${name}" value="${value}">`

export const textField = (
  name: string,
  label: string,
  more: { value?: string; required?: boolean; hint?: string; type?: string; isSecret?: boolean } = {},
) =>
  field(
    label,
    more.type === 'day'
      ? dayInput(name, more.value, more.required)
      : html`<input name="${name}" type="${more.type ?? 'text'}" value="${more.value ?? ''}"${more.required ? html` required` : ''}${more.isSecret && html` data-secret`} autocomplete="off" spellcheck="false">`,
    more.hint,
  )

export const selectField = (name: string, label: string, options: Record<string, string>, value = '') =>
  field(
    label,
    html`<select name="${name}">${Object.entries(options).map(
      ([key, text]) => html`<option value="${key}"${key === value ? html` selected` : ''}>${text}</option>`,
    )}</select>`,
  )
