// The command line: one line a command; of their modules only the one that runs is loaded.
import { Command, CommanderError } from 'commander'
import { guard, watchOutput } from './commands/command.ts'
import { tundishVersion } from './lib/version.ts'

const COMMANDS: Record<string, () => Promise<{ register: (program: Command) => void }>> = {
  serve: () => import('./commands/serve.ts'),
  worker: () => import('./commands/worker.ts'),
  migrate: () => import('./commands/migrate.ts'),
  doctor: () => import('./commands/doctor.ts'),
  org: () => import('./commands/org.ts'),
  project: () => import('./commands/project.ts'),
  keys: () => import('./commands/keys.ts'),
  import: () => import('./commands/import.ts'),
  simulator: () => import('./commands/simulator.ts'),
  erasures: () => import('./commands/erasures.ts'),
  rates: () => import('./commands/rates.ts'),
  reconcile: () => import('./commands/reconcile.ts'),
  charges: () => import('./commands/charges.ts'),
  operator: () => import('./commands/operator.ts'),
  search: () => import('./commands/search.ts'),
  order: () => import('./commands/order.ts'),
  refund: () => import('./commands/refund.ts'),
  webhook: () => import('./commands/webhook.ts'),
  event: () => import('./commands/event.ts'),
  delivery: () => import('./commands/delivery.ts'),
  'merchant-account': () => import('./commands/merchant-account.ts'),
  figures: () => import('./commands/figures.ts'),
  audit: () => import('./commands/audit.ts'),
  backup: () => import('./commands/backup.ts'),
  restore: () => import('./commands/restore.ts'),
}

const EXIT_USAGE = 2

const program = new Command('tundish')
  .description(
    'The backend of web funnels that sell subscriptions. Settings come from the environment; see docs/configuration.md.',
  )
  .version(tundishVersion(), '--version', 'show the version')
  .helpOption('-h, --help', 'show help')
  .exitOverride()
  .showHelpAfterError('(add --help for help)')

const asked = process.argv.slice(2).find((word) => Object.hasOwn(COMMANDS, word))
for (const [name, load] of Object.entries(COMMANDS)) {
  if (asked === undefined || asked === name) (await load()).register(program)
}
// Subcommands take their behaviour at an error from their parent only while they are made.
for (const command of [program, ...program.commands, ...program.commands.flatMap(({ commands }) => commands)])
  command.exitOverride()

watchOutput()
await guard(async () => {
  try {
    await program.parseAsync()
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Commander has said what is wrong. Help that was asked for is no mistake.
    process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE
  }
})
