// tundish worker: the background work alone, for servers that run with --no-worker.
import { once } from 'node:events'
import type { Command } from 'commander'
import { openApp } from '../../app.ts'
import { readConfig } from '../../config.ts'
import { startWork } from '../../server/listeners/server.ts'
import { abortedWhenStopped, guard, sayStopping } from './command.ts'
import { warnAsProcessOne } from './process-one.ts'

export function register(program: Command): void {
  program
    .command('worker')
    .description('Do only the background work: settle charges, deliver events, update figures')
    .action(() => guard(work))
}

async function work(): Promise<void> {
  // Installed before the start, which may take minutes: an interrupted start must clean up.
  const stopping = abortedWhenStopped()
  stopping.addEventListener('abort', sayStopping)
  try {
    const app = await openApp(readConfig(process.env), { simulator: 'embedded', signal: stopping })
    warnAsProcessOne(app.log)
    try {
      const stop = startWork(app)
      app.log.info('The background work has begun.')
      if (!stopping.aborted) await once(stopping, 'abort')
      await stop()
    } finally {
      await app.close()
    }
  } catch (error) {
    if (error !== stopping.reason) throw error
  }
}
