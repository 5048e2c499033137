// The filters of a page: links that add one, the bar that names them, and the note on a part that they do not apply to.
import { ApiError } from '../../lib/errors.ts'
import type { Responses } from '../admin/operations.ts'
import {
  choiceOptions,
  chosenValue,
  type Dimension,
  FILTERED_BY,
  listOf,
  NO_FILTER,
  parametersOf,
  urlValue,
} from './dimensions.ts'
import { country, words } from './format.ts'
import { type Html, html, type Piece } from './html.ts'
import type { Names } from './numbers.ts'
import { allChoices, hiddenParameters, type View } from './view.ts'

const isDimension = (name: string) => (FILTERED_BY as readonly string[]).includes(name)

/**
 * Links the name of a value to the same page, filtered by it; an empty value is that of records without one. If the page is filtered
 * by it already, the name is no link.
 */
export function filterLink(view: View, dimension: string, value: string, name: Piece): Piece {
  if (!isDimension(dimension) || chosenValue(view.query, dimension) === value) return name
  return html`<a href="${view.href(view.path, { ...allChoices(view), [dimension]: urlValue(value), split: null })}">${name}</a>`
}

/** The name of a value, linked to another page with only it, and with the parameters `more`. */
export function filterTo(
  view: View,
  path: string,
  dimension: string,
  value: string,
  name: Piece,
  more: Record<string, string> = {},
): Piece {
  if (!isDimension(dimension) || !view.mayOpen(path)) return name
  return html`<a href="${view.href(path, { ...more, [dimension]: urlValue(value) })}">${name}</a>`
}

/** The value of a dimension as people know it; `none` for an empty one. */
export function nameOfValue(dimension: string, value: string, { funnels, products }: Names): string {
  if (value === '') return 'none'
  if (dimension === 'country') return country(value)
  return (dimension === 'funnel' ? funnels[value] : dimension === 'product' ? products[value] : value) ?? value
}

const LISTS: [path: string, title: string][] = [
  ['/people', 'People'],
  ['/sessions', 'Sessions'],
  ['/payments', 'Payments'],
  ['/subscriptions', 'Subscriptions'],
]

/** Names the filters above the page, each with a link that removes it, and the lists behind its figures. Others can be added. */
export function filterBar(view: View, names: Names): Piece {
  const { filters, filtered } = view
  if (filters.length === 0) return chooser(view, names)
  const lists = LISTS.filter(([path]) => path !== view.path && view.project && view.mayOpen(path))
  const without = (changes: Record<string, null>) => view.href(view.path, { ...allChoices(view), ...changes })
  const dimensions = listOf(filters.map(({ dimension }) => dimension))
  return html`<div class="note filtered"><p><strong>Only</strong> ${filters.map(
    (one) =>
      html`<span class="badge flat">${one.dimension} ${nameOfValue(one.dimension, one.value, names)} <a href="${without({ [one.dimension]: null })}" aria-label="Remove the filter by ${one.dimension}">×</a></span> `,
  )}</p>
    ${!filtered.applied && html`<p>What this page shows is not filtered by ${dimensions}.</p>`}
    ${[...filtered.refused].map((sentence) => html`<p>${sentence}</p>`)}
    <p>${lists.map(([path, title], n) => html`${n > 0 && ' · '}<a href="${view.href(path)}">${title}</a>`)}${lists.length > 0 && ' · '}<a href="${without(NO_FILTER)}">Show all</a></p>
    ${chooser(view, names)}</div>`
}

/** The form that filters the figures of the page. */
function chooser(view: View, { funnels, products }: Names): Piece {
  if (!view.filtered.byForm) return ''
  const options: Partial<Record<Dimension, Record<string, string>>> = { funnel: funnels, product: products }
  const fields = FILTERED_BY.map((name) => {
    const value = view.query.get(name) ?? ''
    const choices = options[name]
    if (!choices)
      return html`<label>${words(name)} <input name="${name}" value="${value}" maxlength="256"${name === 'country' && html` placeholder="ES" size="4"`}></label>`
    return html`<label>${words(name)} <select name="${name}">${choiceOptions(choices, value)}</select></label>`
  })
  return html`<details class="chooser"><summary>${view.filters.length > 0 ? 'Change filters' : 'Filter'}</summary>
    <form class="filters" method="get" action="${view.path}">${hiddenParameters(view, [...FILTERED_BY])}${fields}<button>Show</button></form></details>`
}

/** What to do on a page without figures: fewer filters if it has some, otherwise to load records. */
export const howToFill = ({ filters }: View, load: Piece): Html =>
  filters.length > 0
    ? html`<p>Nothing matches the filters of this page. Remove one, or choose a longer period.</p>`
    : html`<p>${load}, or choose a longer period.</p>`

/** The note on a part of the page that has no filters, or only the known ones. */
export function unfiltered({ filters }: View, known: readonly string[] = []): Piece {
  const others = filters.map(({ dimension }) => dimension).filter((name) => !known.includes(name))
  return others.length > 0 && html`<strong>Not filtered by ${listOf(others)}.</strong> `
}

/**
 * Calls an operation with those filters of the page that it has. If there are others, or it cannot be filtered so, its figures are less
 * filtered than the page, and `note` says so: show it on the part with the figures.
 */
export async function callFiltered<I extends keyof Responses>(
  view: View,
  operation: I,
  input: { params: Record<string, string>; query: Record<string, unknown> },
  known: readonly string[] = FILTERED_BY,
): Promise<{ result: Responses[I]; note: Piece }> {
  view.filtered.applied = true
  view.filtered.byForm = true
  const own = view.filters.filter(({ dimension }) => known.includes(dimension))
  const note = unfiltered(view, known)
  try {
    const query = { ...input.query, ...parametersOf(own) }
    return { result: await view.call(operation, { ...input, query }), note }
  } catch (error) {
    if (own.length === 0 || !(error instanceof ApiError) || error.code !== 'invalid_parameter') throw error
    return { result: await view.call(operation, input), note: html`<strong>Not filtered.</strong> ${error.message} ` }
  }
}
