// Merges the metrics of several processes: counters add up, also those of processes that have ended.
import { AggregatorRegistry, type Registry } from 'prom-client'

/** The metrics of one process, as sent to another process. */
export type Counted = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** The label of metrics that describe one worker alone. */
export const WORKER = 'worker'

/** The aggregator of each metric says how it is merged; counters and histograms are summed. */
export const together = (counted: Counted[]): Registry => AggregatorRegistry.aggregate(counted)

/**
 * The counters of processes that have ended, merged. Without them a sum would fall with each restart, and its rate would
 * count all that remains a second time.
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
