// Collects the metrics of all workers, including the counters of those that have ended.
import { setTimeout as sleep } from 'node:timers/promises'
import { countersOf, type ProcessMetrics } from '../../core/metrics/merge.ts'

interface Worker {
  requestMetrics(): void
}

// The previous metrics of a worker are used if it does not respond within this time.
const TIMEOUT_MS = 1000

export interface MetricsCollector {
  /** The metrics of each running worker, and the merged counters of those that have ended. */
  collect(running: readonly Worker[]): Promise<ProcessMetrics[]>
  /** Stores the metrics that a worker has sent. */
  receive(from: Worker, metrics: ProcessMetrics): void
  /** Keeps the counters of a worker that has ended. */
  keepCountersOf(ended: Worker): void
}

export function openMetricsCollector(): MetricsCollector {
  const latest = new Map<Worker, ProcessMetrics>()
  const awaited = new Map<Worker, () => void>()
  let ofEnded: Promise<ProcessMetrics> = Promise.resolve([])
  let requesting: Promise<void> | undefined

  async function requestFrom(running: readonly Worker[]): Promise<void> {
    const timeout = new AbortController()
    const responses = running.map((one) => {
      const response = new Promise<void>((resolve) => awaited.set(one, resolve))
      one.requestMetrics()
      return response
    })
    const timedOut = sleep(TIMEOUT_MS, undefined, { signal: timeout.signal }).catch(() => {})
    await Promise.race([Promise.all(responses), timedOut])
    timeout.abort()
    awaited.clear()
  }

  return {
    async collect(running) {
      requesting ??= requestFrom(running).finally(() => {
        requesting = undefined
      })
      await requesting
      // Retried if a worker ends while the counters of ended workers are merged: else it would be missed or counted twice.
      for (let merged = ofEnded; ; merged = ofEnded) {
        const counters = await merged
        if (merged === ofEnded) return [...latest.values(), counters]
      }
    },
    receive(from, metrics) {
      latest.set(from, metrics)
      awaited.get(from)?.()
    },
    keepCountersOf(ended) {
      const metrics = latest.get(ended)
      latest.delete(ended)
      awaited.get(ended)?.()
      if (metrics) ofEnded = ofEnded.then((before) => countersOf([before, metrics]))
    },
  }
}
