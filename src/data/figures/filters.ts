// By which dimensions a metric can be split and filtered.
import { type MetricName, metrics } from './metrics.ts'
import { has, isStored } from './source.ts'

/** The dimensions that figures can be filtered by, also by several of them. */
export const FILTERS = ['funnel', 'source', 'campaign', 'country', 'product', 'variant'] as const
/** Those that a session has: no product. */
export const VISITED_BY = ['funnel', 'source', 'campaign', 'country', 'variant'] as const

/** The dimension, if facts have it as a column. */
export const ofFacts = (dimension: string | undefined): string[] =>
  dimension === undefined || dimension === 'currency' || dimension === 'project' ? [] : [dimension]

/** The dimensions of a metric, or those that it has when it is filtered by others. */
export function dimensionsOf(name: MetricName, filters: readonly string[]): string[] {
  const { family } = metrics[name]
  const all = ['project', ...(family.money ? ['currency'] : []), ...new Set(family.splits.flat())]
  return all.filter((dimension) => has(family, [...new Set([...ofFacts(dimension), ...filters])]))
}

/** Whether a metric can be filtered by these dimensions together. */
export const isFilter = (name: MetricName, ...filters: string[]): boolean => has(metrics[name].family, filters)

/** Whether figures of the metric by this dimension are stored, so that they can be read at any time without a scan of records. */
export const isStoredFilter = (name: MetricName, filter: string): boolean => isStored(metrics[name].family, [filter])
