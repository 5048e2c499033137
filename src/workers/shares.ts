// How many workers there are, and how many connections to PostgreSQL each of them may open.
import { availableParallelism } from 'node:os'
import { UsageError } from '../lib/errors.ts'

/** What one worker may open: pipelined connections for short reads, and plain ones for transactions. */
export interface Share {
  read: number
  plain: number
}

export interface Division {
  workers: number
  share: Share
  /** To be told: why there are fewer workers than cores. */
  notice?: string
}

const MOST_WORKERS = 256
// One for reads, and two for transactions: with one of them everything would wait for the slowest.
const LEAST = 3
// A worker alone gets by with half of what a process alone has, since others stand beside it.
const ENOUGH = 6
// PostgreSQL's own default is 100 in all, for everybody.
const MOST_UNASKED = 80

/** Reads `--workers`: a number, or `auto` for one on each core. */
export function readWorkers(text: string): number | 'auto' {
  if (text === 'auto') return text
  const number = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= MOST_WORKERS) return number
  throw new UsageError(`--workers must be a whole number from 1 to ${MOST_WORKERS}, or auto, got "${text}".`)
}

/**
 * Divides `connections`, which is `DATABASE_CONNECTIONS` if that is set, among the workers and one more: at a restart the
 * new worker runs beside the one that it replaces.
 */
export function divide(
  asked: number | 'auto',
  connections: number | undefined,
  cores: number = availableParallelism(),
): Division {
  const room = Math.floor((connections ?? MOST_UNASKED) / LEAST) - 1
  const wanted = asked === 'auto' ? Math.min(cores, MOST_WORKERS) : asked
  const workers = asked === 'auto' ? Math.max(1, Math.min(wanted, room)) : asked
  if (workers > room) {
    throw new UsageError(
      `${workers === 1 ? 'A worker needs' : `${workers} workers need`} DATABASE_CONNECTIONS of ${LEAST * (workers + 1)} at least: ${LEAST} for each, and for one more during a restart.`,
    )
  }
  const each = Math.floor((connections ?? Math.min(MOST_UNASKED, ENOUGH * (workers + 1))) / (workers + 1))
  const read = each >= ENOUGH ? 3 : each > LEAST ? 2 : 1
  const division = { workers, share: { read, plain: each - read } }
  if (workers === wanted) return division
  return { ...division, notice: `DATABASE_CONNECTIONS has room for ${workers} workers on ${cores} cores.` }
}
