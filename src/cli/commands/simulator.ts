// tundish simulator: runs the payment provider simulator as a separate process.
import { type Command, Option } from 'commander'
import { readConfig } from '../../config.ts'
import { UsageError } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files.ts'
import { openLog } from '../../lib/log.ts'
import { ledgerFile } from '../../simulators/play-money.ts'
import { startPrimerSimulator } from '../../simulators/primer/server.ts'
import { startSimulator } from '../../simulators/server.ts'
import { startStripeSimulator } from '../../simulators/stripe/server.ts'
import { guard, stopSignal } from './command.ts'

interface Options {
  port: string
  dialect: 'tundish' | 'stripe' | 'primer'
  demoCustomers?: string
}

const START = { tundish: startSimulator, stripe: startStripeSimulator, primer: startPrimerSimulator }
const SETTING = { tundish: 'SIMULATOR_URL', stripe: 'STRIPE_API_URL', primer: 'PRIMER_API_URL' }

export function register(program: Command): void {
  program
    .command('simulator')
    .description('Run a simulated payment provider, with its ledger in DATA_DIR')
    .option('--port <number>', 'Port on 127.0.0.1; 0 takes any free one', '8090')
    .addOption(
      new Option('--dialect <name>', "Its API: Tundish's own, Stripe's, or Primer's")
        .choices(['tundish', 'stripe', 'primer'])
        .default('tundish'),
    )
    .option(
      '--demo-customers <number>',
      "With Stripe's API: fill an empty account with customers and two years of payments",
    )
    .action((options: Options) => guard(() => run(options)))
}

async function run({ port, dialect, demoCustomers }: Options): Promise<void> {
  const config = readConfig(process.env)
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) > 65_535)
    throw new UsageError(`--port must be a whole number from 0 to 65535, got "${port}".`)
  if (demoCustomers !== undefined && (dialect !== 'stripe' || !/^[1-9][0-9]{0,5}$/.test(demoCustomers)))
    throw new UsageError('--demo-customers must be a whole number from 1 to 999999, with --dialect stripe.')
  makeFolder(config.dataDir)
  const file = ledgerFile(config.dataDir, dialect)
  const options = { port: Number(port), ledgerFile: file, log: openLog(config.logLevel) }
  const simulator = await START[dialect]({ ...options, demoCustomers: Number(demoCustomers ?? 0) }).catch((error) => {
    if (error.code === 'EADDRINUSE') throw new UsageError(`Port ${port} is taken: give another with --port.`)
    throw error
  })
  if (simulator.note) process.stderr.write(`${simulator.note}\n`)
  process.stdout.write(
    `The simulator is ready at ${simulator.url}; start Tundish with ${SETTING[dialect]}=${simulator.url}\n`,
  )
  await stopSignal()
  await simulator.close()
}
