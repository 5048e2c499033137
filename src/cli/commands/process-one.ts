// The warning of a server that runs as process 1, as in a container without an init.
import type { Logger } from 'pino'

/**
 * Process 1 adopts processes whose parent has ended, such as those of the embedded PostgreSQL after a kill. Node cannot wait for a
 * process that it did not start, so they stay as zombies.
 */
export function warnAsProcessOne(log: Logger): void {
  if (process.pid !== 1) return
  log.warn(
    'Tundish runs as process 1: start it with tini or "docker run --init", which reap processes that have lost their parent.',
  )
}
