// The filter of a page by one dimension, which stays in the URL: only one source, campaign, country, funnel, product or variant.

export const FILTERED_BY = ['funnel', 'source', 'campaign', 'country', 'product', 'variant'] as const
export type Dimension = (typeof FILTERED_BY)[number]

export interface PageFilter {
  dimension: Dimension
  value: string
}

/** The filter of the URL; undefined if there is none. */
export function chosenFilter(query: URLSearchParams): PageFilter | undefined {
  const dimension = FILTERED_BY.find((name) => query.get(name))
  return dimension && { dimension, value: query.get(dimension)! }
}

/** The changes of an address that make this the only filter; without a value they remove it. */
export const filterBy = (dimension?: string, value?: string): Record<string, string | null> => ({
  ...Object.fromEntries(FILTERED_BY.map((name) => [name, null])),
  ...(dimension !== undefined && value !== undefined && { [dimension]: value }),
})
