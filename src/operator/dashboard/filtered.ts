// Figures with the filters of a page: which metrics they leave out.

import { dimensionsOf, isFilter } from '../../data/figures/filters.ts'
import { type MetricName, sumsOf } from '../../data/figures/metrics.ts'
import { PERIODS } from '../../data/figures/periods.ts'
import { ApiError } from '../../lib/errors.ts'
import type { View } from './view.ts'

interface Marked {
  left?: ReadonlySet<string>
}

const LEFT = new WeakMap<readonly Marked[], ReadonlySet<string>>()

/** The metrics that are not known with the filters of the page, of figures that were read with them. */
export const leftOf = (found: readonly Marked[]): ReadonlySet<string> => LEFT.get(found) ?? new Set()

/** Leaves out the metrics that are not known with the filters of the page, which its parts and its filter bar then say. */
export async function readFiltered<Figure extends Marked>(
  view: View,
  metric: string,
  { by, funnel }: { by?: string; funnel?: string },
  read: (metric: string) => Promise<Figure[]>,
): Promise<Figure[]> {
  const dimensions = view.filters.map(({ dimension }) => dimension)
  const filters = [...new Set([...dimensions, ...(funnel === undefined ? [] : ['funnel'])])]
  const names = metric.split(',') as MetricName[]
  const split = by?.split(',').find((one) => !PERIODS.some((period) => period === one))
  const isKnown = (name: MetricName) =>
    sumsOf(name).every((sum) =>
      split === undefined ? isFilter(sum, ...filters) : dimensionsOf(sum, filters).includes(split),
    )
  const left = names.filter((name) => !isKnown(name))
  const found = await orRefused(view, () => (left.length === names.length ? [] : read(names.filter(isKnown).join())))
  const marked = (found ?? []).map((one) => ({ ...one, left: new Set(left) }))
  LEFT.set(marked, new Set(found ? left : names))
  return marked
}

/** Undefined if the filters are refused, such as for too many records. */
async function orRefused<T>({ filtered }: View, read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'invalid_parameter') throw error
    filtered.refused.add(error.message)
    return undefined
  }
}
