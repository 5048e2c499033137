// The numbers of several processes as one: counters add up, also those of processes that have gone.
import { AggregatorRegistry, type Registry } from 'prom-client'

/** What one process has counted, as it goes from process to process. */
export type Counted = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** The numbers of a worker that tell of itself alone carry this label. */
export const WORKER = 'worker'

/** Each metric says by its aggregator how it becomes one; counters and histograms are sums. */
export const together = (counted: Counted[]): Registry => AggregatorRegistry.aggregate(counted)

/**
 * What has to stay of processes that have gone: their counters, as one. Without them a sum would fall with each restart,
 * and whoever takes its rate would see all that remains counted once more.
 */
export async function lasting(counted: Counted[]): Promise<Counted> {
  const counters = counted.flat().filter(({ type }) => COUNTERS.has(String(type)))
  const ofAll = counters.map((metric) => ({ ...metric, values: valuesOf(metric).filter(ofNoWorker) }))
  return together([ofAll.filter(({ values }) => values.length > 0) as Counted]).getMetricsAsJSON()
}

const COUNTERS = new Set(['counter', 'histogram'])

interface Value {
  labels: Record<string, string | number>
}

const valuesOf = (metric: object) => (metric as { values: Value[] }).values

const ofNoWorker = ({ labels }: Value) => !(WORKER in labels)
