// The filters of a page, which stay in the URL: only one source, campaign, country, funnel, product or variant, or several of these.

import { FILTERS as FILTERED_BY, VISITED_BY } from '../../data/figures/filters.ts'
import { countryCode } from './format.ts'
import { html, type Piece } from './html.ts'

export { FILTERED_BY, VISITED_BY }
export type Dimension = (typeof FILTERED_BY)[number]

export interface PageFilter {
  dimension: Dimension
  value: string
}

/** In a URL: only records without a value. An empty value there is a field of a form in which nothing was chosen. */
const NO_VALUE = '(none)'

/** The value of a filter for a URL: that of records without one is not empty there. */
export const urlValue = (value: string): string => value || NO_VALUE

// What people type in another way than records have it.
const AS_RECORDED: Record<string, (typed: string) => string> = {
  country: countryCode,
  email: (typed) => typed.trim(),
  currency: (typed) => typed.trim().toUpperCase(),
}

/** The value of a filter in the URL, as operations take it: empty for records without one, undefined if nothing was chosen. */
export function chosenValue(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)
  if (value === NO_VALUE) return ''
  return value ? (AS_RECORDED[name]?.(value) ?? value) : undefined
}

/** The filters of the URL. */
export const chosenFilters = (query: URLSearchParams): PageFilter[] =>
  FILTERED_BY.flatMap((dimension) => {
    const value = chosenValue(query, dimension)
    return value === undefined ? [] : [{ dimension, value }]
  })

/** The changes of an address that remove all filters. */
export const NO_FILTER: Record<string, null> = Object.fromEntries(FILTERED_BY.map((name) => [name, null]))

/** The filters as parameters of an operation. */
export const parametersOf = (filters: readonly PageFilter[]): Record<string, string> =>
  Object.fromEntries(filters.map(({ dimension, value }) => [dimension, value]))

/** `country and source`. */
export const listOf = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

// More do not fit a list of choices.
const MAX_CHOICES = 200

/** The options of a filter. The chosen one is always among them: sending the form would otherwise remove it. */
export function choiceOptions(options: Record<string, string>, value: string): Piece {
  const shown = Object.entries(options).slice(0, MAX_CHOICES)
  // Only links offer records without a value.
  const name = value === NO_VALUE ? 'none' : Object.hasOwn(options, value) ? options[value] : value
  if (value !== '' && !shown.some(([key]) => key === value)) shown.unshift([value, name!])
  return html`<option value="">all</option>${shown.map(([key, text]) => html`<option value="${key}"${key === value && html` selected`}>${text}</option>`)}`
}
