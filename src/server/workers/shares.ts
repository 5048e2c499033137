// Decides how many workers run, and how many connections to PostgreSQL each may open.
import { availableParallelism } from 'node:os'
import { UsageError } from '../../lib/errors.ts'

/** The connections of one worker: pipelined ones for short reads, and plain ones for transactions. */
export interface Share {
  read: number
  plain: number
}

export interface Division {
  workers: number
  share: Share
  /** A message for the log: why there are fewer workers than cores. */
  notice?: string
}

const MAX_WORKERS = 256
// The fewest connections of a worker: one for reads, and two for transactions, so that a slow one does not delay all others.
const MIN_EACH = 3
// The connections of a worker by default: half of those of a process without workers, because several share the load.
const DEFAULT_EACH = 6
// The connections of all workers together by default. PostgreSQL's own default limit is 100, for all programs.
const DEFAULT_TOTAL = 80

/** Reads `--workers`: a number, or `auto` for one on each core. */
export function readWorkers(text: string): number | 'auto' {
  if (text === 'auto') return text
  const number = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= MAX_WORKERS) return number
  throw new UsageError(`--workers must be a whole number from 1 to ${MAX_WORKERS}, or auto, got "${text}".`)
}

/**
 * Divides `connections` (the setting `DATABASE_CONNECTIONS`) among the workers and one more, because during a restart the
 * new worker runs while the one that it replaces still does.
 */
export function divide(
  requested: number | 'auto',
  connections: number | undefined,
  cores: number = availableParallelism(),
): Division {
  const room = Math.floor((connections ?? DEFAULT_TOTAL) / MIN_EACH) - 1
  const wanted = requested === 'auto' ? Math.min(cores, MAX_WORKERS) : requested
  const workers = requested === 'auto' ? Math.max(1, Math.min(wanted, room)) : requested
  if (workers > room) {
    throw new UsageError(
      `${workers === 1 ? 'A worker needs' : `${workers} workers need`} DATABASE_CONNECTIONS of ${MIN_EACH * (workers + 1)} at least: ${MIN_EACH} for each, and for one more during a restart.`,
    )
  }
  const each = Math.floor((connections ?? Math.min(DEFAULT_TOTAL, DEFAULT_EACH * (workers + 1))) / (workers + 1))
  const read = each >= DEFAULT_EACH ? 3 : each > MIN_EACH ? 2 : 1
  const division = { workers, share: { read, plain: each - read } }
  if (workers === wanted) return division
  return { ...division, notice: `DATABASE_CONNECTIONS has room for ${workers} workers on ${cores} cores.` }
}
