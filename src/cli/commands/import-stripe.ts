// tundish import stripe: imports a Stripe account into a project, and follows its changes.
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { dryRun } from '../../data/ingest/stripe/dry-run.ts'
import { alreadyRunning, holdImport } from '../../data/ingest/stripe/hold.ts'
import { type MetadataFields, readFields } from '../../data/ingest/stripe/names.ts'
import { describeReport, reportOf } from '../../data/ingest/stripe/report.ts'
import { FIRST_STEP, runImport } from '../../data/ingest/stripe/run.ts'
import type { StripeSource } from '../../data/ingest/stripe/source.ts'
import {
  accountOfKey,
  chooseAccount,
  openSource,
  openWithKey,
  requireProjectOf,
} from '../../data/ingest/stripe/start.ts'
import {
  beginState,
  findState,
  type ImportName,
  isInBackground,
  type StripeImportOptions,
  targetOptions,
} from '../../data/ingest/stripe/state.ts'
import { UsageError } from '../../lib/errors.ts'
import { type Result, withSettings } from './command.ts'
import { showObjects } from './import-progress.ts'
import { printLine, untilInterrupted, writeEntry } from './import-service.ts'
import { readSecret } from './secrets.ts'
import { readTime } from './times.ts'

interface Options {
  org: string
  project: string
  merchantAccount?: string
  keyFile?: string
  since?: string
  externalIdKey?: string
  metadata?: MetadataFields
  matchEmail?: boolean
  follow?: boolean
  dryRun?: boolean
}

const STDIN = '-'

export function registerStripe(parent: Command): void {
  const command = parent
    .command('stripe')
    .description('Import customers, products, subscriptions and payments of a Stripe account')
    .requiredOption('--org <id>', 'The organization')
    .requiredOption('--project <id>', 'The project to import into')
    .option('--merchant-account <id>', 'The merchant account; by default the only connected one')
    .option(
      '--key-file <file>',
      "File with a secret or restricted key (- for standard input), instead of the account's",
    )
    .option('--since <time>', 'Only objects created at or after this time')
    .option('--external-id-key <key>', "The field of a customer's metadata with your id of the customer")
    .option(
      '--metadata <kind=field>',
      'Another field of metadata that names a profile, session, funnel or experiment: profile=user_id (repeatable)',
      (given: string, before: MetadataFields = {}) => ({ ...before, ...readFields([given]) }),
    )
    .option('--match-email', 'Take a customer as the only profile with the same e-mail address, too')
    .option('--follow', 'Then import changes at Stripe until Ctrl-C')
    .option('--dry-run', 'Read and check everything, and write nothing')
  withSettings(command, (config, options) =>
    untilInterrupted(config, (app, signal) => run(app, options as Options, signal)),
  )
}

async function run(app: App, options: Options, signal: AbortSignal): Promise<Result> {
  const { org: organizationId, project: projectId } = options
  if (options.dryRun && options.follow) throw new UsageError('--dry-run and --follow exclude each other.')
  const since = options.since === undefined ? null : readTime('--since', options.since)
  const secretKey = options.keyFile === undefined ? undefined : await readKey(options.keyFile)
  await requireProjectOf(app, organizationId, projectId)
  const { source, merchantId } = await openAccount(app, options, secretKey, signal)
  const name = { organizationId, projectId, merchantId }
  const read = {
    external_id_key: options.externalIdKey ?? null,
    metadata: options.metadata ?? null,
    match_email: options.matchEmail ?? false,
  }
  try {
    return options.dryRun
      ? await check(app, source, name, { since, ...targetOptions(read) }, signal)
      : await carryOut(app, source, name, { since, ...read, follow: options.follow ?? false }, signal)
  } finally {
    source.close()
  }
}

/** Opens the account at Stripe that the options name. */
export async function openAccount(
  app: App,
  { org, merchantAccount }: Pick<Options, 'org' | 'merchantAccount'>,
  secretKey: string | undefined,
  signal: AbortSignal,
): Promise<{ source: StripeSource; merchantId: string }> {
  if (secretKey !== undefined) {
    const { source, ...key } = await openWithKey(app, secretKey, signal)
    try {
      return { source, merchantId: await accountOfKey(app, { organizationId: org, named: merchantAccount }, key) }
    } catch (error) {
      source.close()
      throw error
    }
  }
  const merchantId = await chooseAccount(app, org, merchantAccount)
  return { source: await openSource(app, { organizationId: org, merchantId }, signal), merchantId }
}

async function carryOut(
  app: App,
  source: StripeSource,
  name: ImportName,
  options: StripeImportOptions,
  signal: AbortSignal,
): Promise<Result> {
  const held = await holdImport(app.db, name)
  if (!held) throw alreadyRunning()
  const progress = showObjects()
  try {
    // Otherwise the server would no longer follow the account.
    const known = await findState(held.query, name)
    if (known && isInBackground(known)) throw alreadyRunning()
    const state = await beginState(held.query, name, options, { background: false, firstStep: FIRST_STEP })
    await writeEntry(app, name, 'stripe_import.begun', { ...options, merchant_account: name.merchantId })
    const { step: from, tally } = state
    if (tally.read > 0)
      process.stderr.write(
        `The import continues where it stopped: ${tally.read} objects are stored, ${from} are next.\n`,
      )
    await runImport(app, held, source, state, {
      signal,
      onRejected: printLine,
      onProgress: ({ step, status, tally }) => progress.update(status === 'following' ? 'following' : step, tally.read),
    })
    progress.stop()
    const report = reportOf(state.tally)
    const { read, rejected, differences } = report
    await writeEntry(app, name, 'stripe_import.ended', { read, rejected, differences: differences.length })
    return { json: { status: state.status, ...report }, text: describeReport(report, state) }
  } finally {
    progress.stop()
    await held.release()
  }
}

async function check(
  app: App,
  source: StripeSource,
  name: ImportName,
  { since, ...read }: { since: string | null } & ReturnType<typeof targetOptions>,
  signal: AbortSignal,
): Promise<Result> {
  const progress = showObjects()
  const options = { since: since ?? undefined, signal, onProgress: progress.update, onRejected: printLine }
  const tally = await dryRun(app, source, { ...name, ...read }, options).finally(progress.stop)
  const report = reportOf(tally)
  const { differences: _differences, ...rest } = report
  return { json: { status: 'dry_run', ...rest }, text: describeReport(report, { isDry: true }) }
}

/** The key is never an argument, because every user of the machine can read those. */
export async function readKey(file: string): Promise<string> {
  const key = await readSecret(file)
  if (key !== undefined && /^[sr]k_(test|live)_[A-Za-z0-9_]+$/.test(key)) return key
  throw new UsageError(`${file === STDIN ? 'Standard input' : file} must hold one secret key of Stripe (sk_… or rk_…).`)
}
