// The time limit of a shard: one that is frozen, or whose network is cut, does not hold up work on the others.
import { Refusal } from '../../lib/errors.ts'
import { type Connection, connectTo } from './connection.ts'
import type { Shard } from './shard.ts'

// A server that works responds to the directory's statements in milliseconds; a busy one, in a second.
const LIMIT_MS = 10_000

export class NoResponse extends Refusal {}

/** Runs `work`, which has to end when its signal is aborted: after ten seconds, with `NoResponse`, or by `stop`. */
export async function withinLimit<T>(work: (signal: AbortSignal) => Promise<T>, stop?: AbortSignal): Promise<T> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), LIMIT_MS)
  try {
    return await work(stop ? AbortSignal.any([limit.signal, stop]) : limit.signal)
  } catch (error) {
    throw limit.signal.aborted ? new NoResponse(`no response within ${LIMIT_MS / 1000} seconds`) : error
  } finally {
    clearTimeout(timer)
  }
}

/** Runs `work` on the connection, and breaks that when `signal` is aborted. */
export async function breakable<T>(connection: Connection, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  signal.addEventListener('abort', connection.destroy, { once: true })
  try {
    return await work()
  } finally {
    signal.removeEventListener('abort', connection.destroy)
  }
}

/** Runs `work` on a new connection to the shard, within its time limit. */
export const askShard = <T>(shard: Shard, work: (connection: Connection) => Promise<T>): Promise<T> =>
  withinLimit(async (signal) => {
    const connection = await connectTo(shard, signal)
    try {
      return await breakable(connection, signal, () => work(connection))
    } finally {
      if (signal.aborted) connection.destroy()
      else await connection.close()
    }
  })
