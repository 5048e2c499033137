// tundish simulator: the payment provider of play money, as a program of its own.
import { mkdir } from 'node:fs/promises'
import type { Command } from 'commander'
import { openLog } from '../app.ts'
import { readConfig } from '../config.ts'
import { UsageError } from '../lib/errors.ts'
import { ledgerFile } from '../simulator/play-money.ts'
import { startSimulator } from '../simulator/server.ts'
import { guard, stopSignal } from './command.ts'

export function register(program: Command): void {
  program
    .command('simulator')
    .description('run the payment provider simulator, with its ledger in the data folder')
    .option('--port <number>', 'port on 127.0.0.1; 0 takes any free one', '8090')
    .action((options: { port: string }) => guard(() => run(options.port)))
}

async function run(port: string): Promise<void> {
  const config = readConfig(process.env)
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) > 65_535)
    throw new UsageError(`--port must be a whole number from 0 to 65535, not "${port}".`)
  await mkdir(config.dataDir, { recursive: true })
  const simulator = await startSimulator({
    port: Number(port),
    ledgerFile: ledgerFile(config.dataDir),
    log: openLog(config.logLevel),
  }).catch((error) => {
    if (error.code === 'EADDRINUSE') throw new UsageError(`Port ${port} is taken: give another with --port.`)
    throw error
  })
  process.stdout.write(
    `The simulator is ready at ${simulator.url}; start Tundish with SIMULATOR_URL=${simulator.url}\n`,
  )
  await stopSignal()
  await simulator.close()
}
