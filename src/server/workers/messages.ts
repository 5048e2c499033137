// The messages between the supervisor and its workers. A restart may pair a supervisor with workers of a newer version, so
// their form must not change.
import type { ProcessMetrics } from '../../core/metrics/merge.ts'
import type { Share } from './shares.ts'

export type ToWorker =
  /** The first message: the worker's number, and the connections that it may open. */
  | { is: 'begin'; number: number; share: Share }
  /** The worker has to do the background work from now on. */
  | { is: 'work' }
  /** Another worker has replaced this one: it closes its listeners gracefully and ends. */
  | { is: 'leave' }
  /** The program stops. */
  | { is: 'stop' }
  /** Requests the worker's metrics. */
  | { is: 'count' }
  /** The metrics of all workers, in response to `asking`. */
  | { is: 'all'; counted: ProcessMetrics[] }

export type FromWorker =
  | { is: 'ready'; url: string; adminUrl: string | undefined }
  /** The worker cannot serve for this reason, and ends. */
  | { is: 'failed'; sentence: string; usage: boolean }
  /** The worker's metrics, in response to `count`, and once more before it ends. */
  | { is: 'counted'; counted: ProcessMetrics }
  /** Requests the metrics of all workers, because `/metrics` was requested here. */
  | { is: 'asking' }
