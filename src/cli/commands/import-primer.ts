// tundish import primer: imports the payments of a Primer account into a project.
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { type ApiImportState, beginState, saveState, takeTurn } from '../../data/ingest/api/state.ts'
import { importPayments } from '../../data/ingest/primer/run.ts'
import { describeReport, reportOf } from '../../data/ingest/stripe/report.ts'
import { requireProjectOf } from '../../data/ingest/stripe/start.ts'
import { emptyTally, type Tally } from '../../data/ingest/stripe/tally.ts'
import { releaseTurn } from '../../data/ingest/turn.ts'
import { Refusal } from '../../lib/errors.ts'
import { instantFromPg } from '../../lib/time.ts'
import { whatDid } from '../../payments/providers/outcomes.ts'
import { PrimerProvider } from '../../payments/providers/primer/primer.ts'
import { ProviderError } from '../../payments/providers/provider.ts'
import { type Result, withSettings } from './command.ts'
import { showObjects } from './import-progress.ts'
import { printLine, untilInterrupted, writeEntry } from './import-service.ts'
import { readTime } from './times.ts'

interface Options {
  org: string
  project: string
  merchantAccount: string
  since?: string
  dryRun?: boolean
}

export function registerPrimer(parent: Command): void {
  const command = parent
    .command('primer')
    .description('Import customers and payments of a Primer account; run it again for what changed')
    .requiredOption('--org <id>', 'The organization')
    .requiredOption('--project <id>', 'The project to import into')
    .requiredOption('--merchant-account <id>', 'The connected merchant account')
    .option('--since <time>', 'Only payments created at or after this time')
    .option('--dry-run', 'Read and check everything, and write nothing')
  withSettings(command, (config, options) =>
    untilInterrupted(config, (app, signal) =>
      run(app, options as Options, signal).catch((error) => {
        throw error instanceof ProviderError && !signal.aborted ? unreadable(error) : error
      }),
    ),
  )
}

/** No account is older. */
const FIRST_DAY = '2019-01-01T00:00:00.000Z'

async function run(app: App, options: Options, signal: AbortSignal): Promise<Result> {
  const { org: organizationId, project: projectId, merchantAccount: merchantId, dryRun: isDry = false } = options
  const since = options.since === undefined ? FIRST_DAY : readTime('--since', options.since)
  await requireProjectOf(app, organizationId, projectId)
  const provider = await app.providers.of(organizationId, 'primer', merchantId)
  if (!(provider instanceof PrimerProvider))
    throw new Refusal(
      `Merchant account "${merchantId}" is not connected to Primer: run tundish merchant-account connect first.`,
    )
  const target = { organizationId, projectId, merchantId, isSandbox: provider.isSandbox }
  const progress = showObjects()
  const importing = {
    ...{ app, provider, target, signal, isDry },
    onProgress: (tally: Tally) => progress.update('payments', tally.read),
    onRejected: printLine,
  }
  // With a clock that is behind, an import until then would leave out the latest payments.
  const [now] = await app.db.query('select db_clock() as at')
  const until = instantFromPg(now!.at!)
  try {
    if (isDry) {
      const tally = emptyTally()
      await importPayments({ ...importing, tally, save: async () => {} }, { since, until })
      const report = reportOf(tally)
      progress.stop()
      return { json: { status: 'dry_run', ...report }, text: describeReport(report, { isDry, title: 'Primer' }) }
    }
    return await carryOut(app, importing, { since, until }, () => progress.stop())
  } finally {
    progress.stop()
  }
}

/** The sums of an import are kept with its place, so that one that was killed continues both. */
type Notes = ApiImportState['notes'] & { tally?: Tally; from?: string }

async function carryOut(
  app: App,
  importing: Omit<Parameters<typeof importPayments>[0], 'tally' | 'save'>,
  { since, until }: { since: string; until: string },
  stop: () => void,
): Promise<Result> {
  const { organizationId, projectId, merchantId } = importing.target
  const connection = await app.db.connect()
  const { query } = connection
  try {
    const name = { organizationId, projectId, source: `primer ${merchantId}` }
    await takeTurn(query, name)
    const state = await beginState(query, name, { billing: null, customers: null })
    const notes: Notes = state.notes
    // One that ended, or had another beginning, reads everything again: payments change long after they were created.
    const isContinued = state.place.since !== null && notes.from === since
    const place = isContinued ? state.place.since! : since
    const tally = isContinued ? notes.tally! : emptyTally()
    if (isContinued) process.stderr.write(`The import continues where it stopped: at ${place}.\n`)
    const keep = (at: string | null, status: ApiImportState['status']) => {
      Object.assign(notes, { tally, from: since })
      Object.assign(state, { status, place: { ...state.place, since: at } })
      return saveState(query, state)
    }
    await writeEntry(app, name, 'primer_import.begun', { psp_merchant_id: merchantId, since })
    await importPayments({ ...importing, tally, save: (at) => keep(at, 'running') }, { since: place, until })
    await keep(null, 'done')
    stop()
    const report = reportOf(tally)
    const { read, rejected, differences } = report
    await writeEntry(app, name, 'primer_import.ended', { read, rejected, differences: differences.length })
    return { json: { status: 'done', ...report }, text: describeReport(report, { title: 'Primer' }) }
  } finally {
    await releaseTurn(connection)
  }
}

const unreadable = ({ message }: ProviderError) =>
  new Refusal(
    `Primer could not be read (${whatDid('it', message)}). Import again: the import continues where it stopped.`,
  )
