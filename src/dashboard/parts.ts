// Parts of several pages: tiles, sections, steps of a funnel, links between pages of a list, forms.
import { bar, change, number, percent } from './format.ts'
import { type Html, html, type Piece } from './html.ts'
import type { Figure, Unit } from './numbers.ts'
import { show } from './numbers.ts'
import type { Table } from './sheet.ts'
import { kept } from './shell.ts'
import { csvLink, table } from './table.ts'
import { allChoices, type View } from './view.ts'

// Characters that fit into a tile at its usual size.
const LONG_FIGURE = 12

/** A figure of the period with its change; its label links to the page that has more of it. */
export function tile(
  label: string,
  figure: Figure,
  metric: string,
  unit: Unit,
  { bad = false, note, href }: { bad?: boolean; note?: Piece; href?: string } = {},
): Html {
  const value = figure.values[metric] ?? (unit === 'percent' ? null : 0)
  const { shown } = show(unit, value)
  const isLong = typeof shown === 'string' && shown.length > LONG_FIGURE
  return html`<div class="tile"><dt>${href === undefined ? label : html`<a href="${href}">${label}</a>`}</dt><dd><strong${isLong && html` class="long"`}>${shown}</strong>
    <span class="quiet">${note ?? change(figure.compared?.[metric], figure.previous?.[metric], { bad, isShare: unit === 'percent' })}</span></dd></div>`
}

/** Tiles in rows that are full at every width: `n` decides how many columns there are. */
export const tiles = (...all: Piece[]) => html`<dl class="tiles of-${all.length}">${all}</dl>`

export function section(title: string, body: Piece, { actions, note }: { actions?: Piece; note?: Piece } = {}): Html {
  return html`<section><div class="heading"><h2>${title}</h2><div class="actions">${actions}</div></div>
    ${note && html`<p class="quiet">${note}</p>`}${body}</section>`
}

/** A section with a table and a link to it as CSV. */
export function tableSection(
  view: View,
  name: string,
  content: Table,
  options: { empty?: Piece; note?: Piece } = {},
): Html {
  const actions = content.rows.length > 0 ? csvLink(view, name) : ''
  return section(content.caption, table(view, name, content, { ...options, hideCaption: true }), {
    ...options,
    actions,
  })
}

interface Step {
  label: string
  count: number
}

/** The count at each step, as a bar, a share of the first step and a share of the step before. */
export function steps(all: Step[]): Html {
  const first = all[0]?.count ?? 0
  return html`<ol class="steps">${all.map(({ label, count }, n) => {
    const before = all[n - 1]?.count
    return html`<li><span class="label">${label}</span>
      <strong>${number(count)}</strong> ${bar(first > 0 ? count / first : 0)}
      <span class="quiet">${n === 0 ? 'all' : html`${percent(first ? count / first : null)} of all, ${percent(before ? count / before : null)} of the step before`}</span></li>`
  })}</ol>`
}

/** A link to the next page of a list. */
export function further(view: View, nextCursor: string | undefined): Piece {
  if (nextCursor === undefined)
    return view.query.has('cursor') ? html`<p class="pages"><a href="${firstPage(view)}">First page</a></p>` : ''
  const next = view.href(view.path, { ...allChoices(view), cursor: nextCursor })
  return html`<p class="pages">${view.query.has('cursor') ? html`<a href="${firstPage(view)}">First page</a>` : ''} <a class="button" href="${next}">Next page</a></p>`
}

const firstPage = (view: View) => view.href(view.path, { ...allChoices(view), cursor: null })

interface Choice {
  name: string
  label: string
  /** Values with their labels; without them it is a text field. */
  options?: Record<string, string>
  type?: string
}

/** Filters of a list: chosen ones stay in the address. */
export function filters(view: View, choices: Choice[]): Html {
  const names = choices.map(({ name }) => name)
  const chosen = names.some((name) => view.query.get(name))
  return html`<form class="filters" method="get" action="${view.path}">${kept(view, names)}
    ${choices.map(({ name, label, options, type = 'text' }) => {
      const value = view.query.get(name) ?? ''
      return html`<label>${label} ${
        options
          ? html`<select name="${name}" data-submit><option value="">all</option>${Object.entries(options).map(
              ([key, text]) => html`<option value="${key}"${key === value ? html` selected` : ''}>${text}</option>`,
            )}</select>`
          : html`<input name="${name}" type="${type}" value="${value}" maxlength="320">`
      }</label>`
    })}<button>Filter</button>${chosen ? html`<a href="${view.href(view.path)}">Clear</a>` : ''}</form>`
}

/** The filters that are chosen, for the operation. */
export function chosen(view: View, ...names: string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (view.query.get(name) ? [[name, view.query.get(name)!]] : [])))
}

/** A customer of billing, as a link to the person. */
export const customerLink = (view: View, externalId: string) =>
  html`<a class="cut" href="${view.href('/people', { q: externalId })}" title="${externalId}">${externalId}</a>`

/** Names and values of one object. */
export const facts = (all: Record<string, Piece>) =>
  html`<dl class="facts">${Object.entries(all).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`

interface Asking {
  /** Where the form is sent. */
  action: string
  /** The label of its button. */
  button: string
  /** What will happen, in sentences. */
  says: Piece
  fields?: Piece
  danger?: boolean
}

/** A form behind a button: it says what will happen before it can be sent. Hidden from keys that may only read. */
export function asking(view: View, { action, button, says, fields, danger = false }: Asking): Piece {
  if (!view.mayWrite) return ''
  return html`<details class="asking"><summary class="button ${danger ? 'danger' : ''}">${button}…</summary>
    <form method="post" action="${action}" hx-boost="false" class="stack"><p>${says}</p>${fields}
      <button class="button ${danger ? 'danger' : 'main'}">${button}</button></form></details>`
}

const field = (label: string, input: Piece, hint?: Piece) =>
  html`<label class="field"><span>${label}</span>${input}${hint && html`<span class="quiet">${hint}</span>`}</label>`

export const hiddenField = (name: string, value: string) => html`<input type="hidden" name="${name}" value="${value}">`

export const textField = (
  name: string,
  label: string,
  more: { value?: string; required?: boolean; hint?: string; type?: string } = {},
) =>
  field(
    label,
    html`<input name="${name}" type="${more.type ?? 'text'}" value="${more.value ?? ''}"${more.required ? html` required` : ''} autocomplete="off" spellcheck="false">`,
    more.hint,
  )

export const selectField = (name: string, label: string, options: Record<string, string>, value = '') =>
  field(
    label,
    html`<select name="${name}">${Object.entries(options).map(
      ([key, text]) => html`<option value="${key}"${key === value ? html` selected` : ''}>${text}</option>`,
    )}</select>`,
  )
