// The supervisor: holds the listening sockets, starts the workers, and serves no requests itself.
import cluster from 'node:cluster'
import type { App } from '../../app.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Running } from '../listeners/server.ts'
import { divide } from './shares.ts'
import { WorkerPool } from './worker-pool.ts'
import { EndedEarly } from './worker-process.ts'

// How long the supervisor waits for a signal that has ended one of its workers already.
const NOTICED_WITHIN_MS = 1000

export interface Supervised extends Running {
  /** Replaces the workers by new ones, one after another. */
  restart(): void
  /** Ends the workers at once. */
  kill(): void
}

export interface SupervisorOptions {
  count: number | 'auto'
  /** Whether one of the workers does the background work. */
  work: boolean
  /** Aborts the start: the workers are stopped, and the promise rejects with the signal's reason. */
  signal: AbortSignal
  /** Its `kill` is set as soon as there are workers. */
  signalled: { kill?(): void }
}

/** Starts the workers, which run the same command line, and distributes connections among them round-robin. */
export async function startWorkers(
  app: App,
  { count, work, signal, signalled }: SupervisorOptions,
): Promise<Supervised> {
  const { workers, share, notice } = divide(count, app.config.databaseConnections)
  if (notice) app.log.warn(notice)
  cluster.schedulingPolicy = cluster.SCHED_RR
  // The default, JSON, would turn NaN and Infinity in metrics into null.
  cluster.setupPrimary({ serialization: 'advanced' })
  const pool = new WorkerPool({ workers, share, work, log: app.log, clock: app.clock })
  signalled.kill = () => pool.kill()
  const addresses = await begin(pool, app.clock, signal)
  return {
    app,
    ...addresses,
    restart: () => void pool.restart(),
    stop: () => pool.stop(),
    kill: () => pool.kill(),
  }
}

async function begin(pool: WorkerPool, clock: Clock, signal: AbortSignal) {
  const stop = () => void pool.stop()
  signal.addEventListener('abort', stop)
  try {
    signal.throwIfAborted()
    return await pool.begin()
  } catch (error) {
    // Ctrl-C ends workers that do not handle signals yet, and may do so before the supervisor notices it.
    if (error instanceof EndedEarly && error.wasInterrupted) await clock.sleep(NOTICED_WITHIN_MS, signal)
    // An aborted start takes precedence over the error that its workers ended before they were ready.
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
