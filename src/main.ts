// The command line: a table of its commands. Only the module of the command that runs is loaded.
import './lib/relative-imports.ts'
import './lib/slow-connections.ts'
import { Command, CommanderError } from 'commander'
import { guard } from './cli/commands/command.ts'
import { takeEnvFile } from './cli/commands/env-file.ts'
import { watchOutput } from './cli/commands/whole-output.ts'
import { hideSecrets } from './lib/hide-secrets.ts'
import { tundishVersion } from './lib/version.ts'

type Load = () => Promise<{ register: (program: Command) => void | Promise<void> }>

/** The commands under the headings of the help. A text describes a group of operations of the operator's API. */
const COMMANDS: Record<string, Record<string, Load | string>> = {
  'The server': {
    serve: () => import('./cli/commands/serve.ts'),
    worker: () => import('./cli/commands/worker.ts'),
    migrate: () => import('./cli/commands/migrate.ts'),
    doctor: () => import('./cli/commands/doctor.ts'),
    simulator: () => import('./cli/commands/simulator.ts'),
  },
  'Organizations, projects and keys': {
    org: () => import('./cli/commands/org.ts'),
    project: () => import('./cli/commands/project.ts'),
    keys: () => import('./cli/commands/keys.ts'),
    operator: () => import('./cli/commands/operator.ts'),
    audit: () => import('./cli/commands/audit.ts'),
    'master-key': () => import('./cli/commands/master-key.ts'),
  },
  'Payment providers': {
    'merchant-account': () => import('./cli/commands/merchant-account.ts'),
    rates: () => import('./cli/commands/rates.ts'),
    reconcile: () => import('./cli/commands/reconcile.ts'),
  },
  Records: {
    import: () => import('./cli/commands/import.ts'),
    'stripe-import': 'Let the server import Stripe accounts in the background',
    sync: () => import('./cli/commands/sync.ts'),
    backup: () => import('./cli/commands/backup.ts'),
    restore: () => import('./cli/commands/restore.ts'),
    'upgrade-postgresql': () => import('./cli/commands/upgrade-postgresql.ts'),
  },
  'People and orders': {
    search: 'Find people, subscriptions and orders',
    profile: () => import('./cli/commands/profile.ts'),
    subscription: 'List subscriptions',
    payment: 'List payments of a project',
    session: 'List sessions of a project',
    funnel: 'Show the screens of a funnel',
    order: 'Show, refund and resolve custom charges',
    credits: 'Units of credits, what charges grant, and balances of customers',
    refund: 'List refunds, also those without an outcome',
    charges: () => import('./cli/commands/charges.ts'),
    erasures: () => import('./cli/commands/erasures.ts'),
  },
  Webhooks: {
    webhook: () => import('./cli/commands/webhook.ts'),
    event: 'List events and send them again',
    delivery: 'List deliveries of events',
  },
  Numbers: {
    figures: () => import('./cli/commands/figures.ts'),
    report: () => import('./cli/commands/report.ts'),
    alert: 'Alerts on figures and the morning digest: rules, destinations, messages',
    finance: 'Tie out a month with the dashboard, close it, and match payouts',
  },
  'Several databases': {
    shards: () => import('./cli/commands/shards.ts'),
  },
}

const MORE = `
To try it: tundish serve --demo
Each command has its own help: tundish COMMAND --help
The guides are in docs/, and at /docs/guides of a running server.`

const HELP = ['help [command]', 'Show help for a command'] as const
const EXIT_USAGE = 2

/** Runs the command of these words to its end, and sets the exit code of the process. */
export async function runCommand(words: string[]): Promise<void> {
  const program = await programOf(words)
  await guard(async () => {
    const rest = takeEnvFile(words)
    // Commander's own command shows the help of the first word alone.
    const isLong = rest[0] === 'help' && rest.length > 2
    try {
      await program.parseAsync(isLong ? [...rest.slice(1), '--help'] : rest, { from: 'user' })
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
      'The backend for web funnels that sell subscriptions. Settings come from the environment: docs/configuration.md.',
    )
    .version(tundishVersion(), '--version', 'Show the version')
    .helpOption('-h, --help', 'Show this help')
    .option('--env-file <file>', 'Read settings from this file; variables of the environment take precedence')
    .addHelpText('after', MORE)
    .exitOverride()
    .configureOutput({ outputError: (sentence, write) => write(hideSecrets(sentence)) })
    // Options belong to the command they follow: `import` and `import stripe` both have a --project.
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for help)')
  const named = words.find((word) => Object.values(COMMANDS).some((commands) => Object.hasOwn(commands, word)))
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(`${heading}:`)
    for (const [name, load] of Object.entries(commands)) if ((named ?? name) === name) await add(program, name, load)
  }
  program.commandsGroup('Help:').helpCommand(...HELP)
  for (const command of allOf(program)) {
    // Subcommands copy this setting from their parent when they are created, which was before it was set here.
    command.exitOverride()
    if (command === program || command.commands.length === 0) continue
    command.configureHelp({ sortSubcommands: true })
    if (command.name() !== 'import') command.helpCommand(...HELP)
  }
  return program
}

/** A command and all below it. */
const allOf = (command: Command): Command[] => [command, ...command.commands.flatMap(allOf)]

async function add(program: Command, name: string, load: Load | string): Promise<void> {
  if (typeof load === 'string') await (await import('./cli/commands/operations.ts')).addGroup(program, name, load)
  else await (await load()).register(program)
}

if (import.meta.main) {
  watchOutput()
  await runCommand(process.argv.slice(2))
}
