// The process that supervises workers: it holds the listening sockets and the database, and serves nothing itself.
import cluster from 'node:cluster'
import type { App } from '../app.ts'
import type { Running } from '../server/server.ts'
import { divide } from './shares.ts'
import { WorkerPool } from './worker-pool.ts'

export interface Supervised extends Running {
  /** Puts new workers in the place of the old ones, one after another. */
  restart(): void
  /** Ends the workers at once. */
  kill(): void
}

/** Starts the workers, which run this very command line, and hands every connection to one of them in turn. */
export async function startWorkers(
  app: App,
  { count, work }: { count: number | 'auto'; work: boolean },
): Promise<Supervised> {
  const { workers, share, notice } = divide(count, app.config.databaseConnections)
  if (notice) app.log.warn(notice)
  cluster.schedulingPolicy = cluster.SCHED_RR
  // Numbers that are none survive it.
  cluster.setupPrimary({ serialization: 'advanced' })
  const pool = new WorkerPool({ workers, share, work, log: app.log, clock: app.clock })
  const addresses = await pool.begin()
  return {
    app,
    ...addresses,
    restart: () => void pool.restart(),
    stop: () => pool.stop(),
    kill: () => pool.kill(),
  }
}
