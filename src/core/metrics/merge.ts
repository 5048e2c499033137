// Merges the metrics of several processes. Counters are summed, including those of processes that have ended.
import { AggregatorRegistry, type Registry } from 'prom-client'

/** The metrics of one process, as sent to another process. */
export type ProcessMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** The label of metrics that describe one worker alone. */
export const WORKER = 'worker'

/** Merges metrics by the aggregator that each declares. The default is the sum. */
export const merged = (metrics: ProcessMetrics[]): Registry => AggregatorRegistry.aggregate(metrics)

/**
 * The merged counters and histograms of processes that have ended. If they were dropped, a sum would fall when a process
 * ends, which monitoring takes for a reset to zero, so that `rate()` would count everything that remains again.
 */
export async function countersOf(metrics: ProcessMetrics[]): Promise<ProcessMetrics> {
  const counters = metrics.flat().filter(({ type }) => COUNTERS.has(String(type)))
  const shared = counters.map((metric) => ({ ...metric, values: valuesOf(metric).filter(isShared) }))
  return merged([shared.filter(({ values }) => values.length > 0) as ProcessMetrics]).getMetricsAsJSON()
}

const COUNTERS = new Set(['counter', 'histogram'])

interface Value {
  labels: Record<string, string | number>
}

const valuesOf = (metric: object) => (metric as { values: Value[] }).values

const isShared = ({ labels }: Value) => !(WORKER in labels)
