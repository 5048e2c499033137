// tundish worker: the background work alone, for those who serve with --no-worker.
import type { Command } from 'commander'
import { openApp } from '../app.ts'
import { readConfig } from '../config.ts'
import { startWork } from '../server/server.ts'
import { guard, stopSignal } from './command.ts'

export function register(program: Command): void {
  program
    .command('worker')
    .description('do the background work without serving: settle charges, deliver events, add up counts')
    .action(() => guard(work))
}

async function work(): Promise<void> {
  const app = await openApp(readConfig(process.env), { simulator: 'embedded' })
  try {
    const stop = startWork(app)
    app.log.info('The background work has begun.')
    await stopSignal()
    await stop()
  } finally {
    await app.close()
  }
}
