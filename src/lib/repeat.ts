// Repeats background work until it is stopped.
import type { Clock } from './clock.ts'
import { isUnavailable } from './pg/errors.ts'

interface Shared {
  clock: Clock
  log: { error(details: object, message: string): void }
}

interface Options {
  /** The pause after a run that failed, and after one that returned nothing. */
  pauseMs: number
  /** The pause before the first run; none by default. */
  delayMs?: number
  /** The message of the log line for a run that failed. */
  failure: string
}

/**
 * Runs `work` again and again. It may return the milliseconds to pause before the next run. A run that throws is logged,
 * unless the database was unavailable, and repeated. Returns the function that stops it: it aborts the signal of `work` and
 * resolves when the present run has ended.
 */
export function repeat(
  { clock, log }: Shared,
  { pauseMs, delayMs = 0, failure }: Options,
  work: (signal: AbortSignal) => Promise<number> | Promise<void>,
): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const pause = async (ms: number) => {
    if (ms > 0) await clock.sleep(ms, signal)
  }
  const runOnce = async () => {
    try {
      const nextMs = await work(signal)
      return typeof nextMs === 'number' ? nextMs : pauseMs
    } catch (error) {
      if (!isUnavailable(error)) log.error({ err: error }, failure)
      return pauseMs
    }
  }
  const run = async () => {
    await pause(delayMs)
    while (!signal.aborted) {
      await pause(await runOnce())
    }
  }
  const running = run()
  return async () => {
    stopping.abort()
    await running
  }
}
