// What the supervisor and its workers tell each other.
import type { Counted } from '../metrics/merge.ts'
import type { Share } from './shares.ts'

export type ToWorker =
  /** The first message: who the worker is, and what it may open. */
  | { is: 'begin'; number: number; share: Share }
  /** The background work is this worker's now. */
  | { is: 'work' }
  /** Another worker has replaced it. */
  | { is: 'leave' }
  /** The program ends. */
  | { is: 'stop' }
  /** Asks for what it has counted. */
  | { is: 'count' }
  /** What all have counted, for who asked. */
  | { is: 'all'; counted: Counted[] }

export type FromWorker =
  | { is: 'ready'; url: string; adminUrl: string | undefined }
  /** It cannot serve, for this reason; it ends by itself. */
  | { is: 'failed'; sentence: string; usage: boolean }
  | { is: 'counted'; counted: Counted }
  /** Its metrics are read: asks for what all workers have counted. */
  | { is: 'asking' }
