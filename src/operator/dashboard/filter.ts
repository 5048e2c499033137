// Links that filter a page by one dimension, the figures that a filter leaves, and the note that names it.
import { FILTERED_BY, filterBy } from './dimensions.ts'
import { country } from './format.ts'
import { type Html, html, type Piece } from './html.ts'
import type { Names } from './numbers.ts'
import { allChoices, type View } from './view.ts'

/**
 * The name of a value, linked to the same page with only it. A value that the page is filtered by already, or that stands for
 * records without one, is no link.
 */
export function filterLink(view: View, dimension: string, value: string, name: Piece): Piece {
  const isKnown = (FILTERED_BY as readonly string[]).includes(dimension)
  if (!isKnown || value === '' || view.query.get(dimension) === value) return name
  return html`<a href="${view.href(view.path, { ...allChoices(view), ...filterBy(dimension, value), cursor: null, split: null })}">${name}</a>`
}

/** The name of a value, linked to another page with only it. */
export function filterTo(view: View, path: string, dimension: string, value: string, name: Piece): Piece {
  const isKnown = (FILTERED_BY as readonly string[]).includes(dimension)
  if (!isKnown || value === '' || !view.mayOpen(path)) return name
  return html`<a href="${view.href(path, filterBy(dimension, value))}">${name}</a>`
}

const nameOfValue = (dimension: string, value: string, { funnels, products }: Names): string =>
  (dimension === 'country'
    ? country(value)
    : dimension === 'funnel'
      ? funnels[value]
      : dimension === 'product'
        ? products[value]
        : value) ?? value

const LISTS: [path: string, title: string][] = [
  ['/people', 'People'],
  ['/sessions', 'Sessions'],
  ['/payments', 'Payments'],
  ['/subscriptions', 'Subscriptions'],
]

/** Names the filter above the page, with the lists behind its figures and a link that removes it. */
export function filterBar(view: View, names: Names): Html {
  const { filter, filtered } = view
  if (!filter) return html``
  const { dimension, value } = filter
  const lists = LISTS.filter(([path]) => path !== view.path && view.mayOpen(path))
  const remove = view.href(view.path, { ...allChoices(view), ...filterBy(), cursor: null })
  return html`<p class="note"><strong>Only ${dimension} ${nameOfValue(dimension, value, names)}.</strong>
    ${!filtered.applied && `What this page shows is not split by ${dimension}. `}${filtered.isPartial && `Some figures are not split by ${dimension} and are left out. `}
    ${lists.map(([path, title], n) => html`${n > 0 && ' · '}<a href="${view.href(path)}">${title}</a>`)} · <a href="${remove}">Show all</a></p>`
}
