// The command line: a table of its commands. Only the module of the command that runs is loaded.
import { Command, CommanderError } from 'commander'
import { guard, watchOutput } from './commands/command.ts'
import { takeEnvFile } from './commands/env-file.ts'
import { tundishVersion } from './lib/version.ts'

type Load = () => Promise<{ register: (program: Command) => void | Promise<void> }>

/** A text describes a group whose commands are all operations of the operator's API. */
const COMMANDS: Record<string, Load | string> = {
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
  report: () => import('./commands/report.ts'),
  reconcile: () => import('./commands/reconcile.ts'),
  charges: () => import('./commands/charges.ts'),
  operator: () => import('./commands/operator.ts'),
  search: 'find people, subscriptions and orders',
  subscription: 'subscriptions of a project',
  order: 'custom charges, their timelines and refunds',
  refund: 'refunds whose outcome is unknown',
  webhook: () => import('./commands/webhook.ts'),
  profile: 'profiles of a project',
  event: 'events of a project and their deliveries',
  delivery: 'deliveries of events',
  'merchant-account': () => import('./commands/merchant-account.ts'),
  'stripe-import': 'imports of Stripe accounts that the servers carry out',
  figures: 'read or rebuild the figures of a project or an organization',
  audit: () => import('./commands/audit.ts'),
  'master-key': () => import('./commands/master-key.ts'),
  backup: () => import('./commands/backup.ts'),
  restore: () => import('./commands/restore.ts'),
  sync: () => import('./commands/sync.ts'),
  shards: () => import('./commands/shards.ts'),
}

const EXIT_USAGE = 2

/** Runs the command of these words to its end, and sets the exit code of the process. */
export async function runCommand(words: string[]): Promise<void> {
  const program = await programOf(words)
  await guard(async () => {
    const rest = takeEnvFile(words)
    try {
      await program.parseAsync(rest, { from: 'user' })
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error
      // Commander has printed the mistake. A request for help is not a mistake.
      process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE
    }
  })
}

async function programOf(words: string[]): Promise<Command> {
  const program = new Command('tundish')
    .description(
      'The backend of web funnels that sell subscriptions. Settings come from the environment; see docs/configuration.md.',
    )
    .version(tundishVersion(), '--version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .option('--env-file <file>', 'read settings from this file; those of the environment go first')
    .exitOverride()
    // Options belong to the command they follow: `import` and `import stripe` both have a --project.
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for help)')
  const named = words.find((word) => Object.hasOwn(COMMANDS, word))
  for (const [name, load] of Object.entries(COMMANDS)) {
    if (named !== undefined && named !== name) continue
    if (typeof load === 'string') await (await import('./commands/operations.ts')).addGroup(program, name, load)
    else await (await load()).register(program)
  }
  // Subcommands copy this setting from their parent when they are created, which was before it was set here.
  for (const command of [program, ...program.commands, ...program.commands.flatMap(({ commands }) => commands)])
    command.exitOverride()
  return program
}

if (import.meta.main) {
  watchOutput()
  await runCommand(process.argv.slice(2))
}
