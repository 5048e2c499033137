// tundish import api: imports a project of another service with this API, and follows its changes.
import { hash } from 'node:crypto'
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { compareApi, describeApi, dryReport } from '../../data/ingest/api/compare.ts'
import { noCustomers, readCustomers, whyUnused } from '../../data/ingest/api/customers.ts'
import { dryRunApi } from '../../data/ingest/api/dry-run.ts'
import { type ApiImport, runApiImport } from '../../data/ingest/api/run.ts'
import { ApiSource } from '../../data/ingest/api/source.ts'
import {
  type ApiImportName,
  type ApiImportState,
  beginState,
  emptyNotes,
  saveState,
  takeTurn,
} from '../../data/ingest/api/state.ts'
import { findOrganization } from '../../data/ingest/load.ts'
import { releaseTurn } from '../../data/ingest/turn.ts'
import { UsageError } from '../../lib/errors.ts'
import { type Result, withSettings } from './command.ts'
import { showObjects } from './import-progress.ts'
import { printLine, untilInterrupted, writeEntry } from './import-service.ts'
import { commandLine } from './operations.ts'
import { readSecret } from './secrets.ts'
import { readTextFile } from './text-file.ts'

interface Options {
  from: string
  keyFile: string
  project: string
  billingFrom?: string
  billingKeyFile?: string
  keyHeader: string
  billingKeyHeader: string
  customers?: string
  follow?: boolean
  dryRun?: boolean
}

export function registerApi(parent: Command): void {
  const command = parent
    .command('api')
    .description('Import a project of another service with this API; see docs/moving-in.md')
    .requiredOption('--from <url>', 'The address of its data API, with its version: https://…/public/v1')
    .requiredOption('--key-file <file>', 'File with the secret key of the project there (- for standard input)')
    .requiredOption('--project <id>', 'The project to import into')
    .option('--billing-from <url>', 'The address of its billing API with the organization: https://…/ORG')
    .option('--billing-key-file <file>', 'File with the secret key of the organization there')
    .option('--key-header <name>', 'The header in which the data API there takes the key', 'Service-Secret')
    .option('--billing-key-header <name>', 'The header in which the billing API there takes it', 'service-secret-key')
    .option('--customers <file>', 'JSON lines that say whose a payment is, and the tokens of saved cards')
    .option('--follow', 'Then import changes until Ctrl-C')
    .option('--dry-run', 'Read and check everything, and write nothing')
  withSettings(command, async (config, given) => {
    const options = given as Options
    const source = await openReading(options)
    return untilInterrupted(config, (app, signal) => run(app, options, source, signal))
  })
}

interface Read {
  from: string
  headers: Record<string, string>
  billing: { url: string; headers: Record<string, string> } | undefined
  customers: string | undefined
}

/** Usage is judged, and files are read, before anything is looked up. */
async function openReading(options: Options): Promise<Read> {
  const { from, billingFrom, billingKeyFile, keyFile, follow, dryRun, customers } = options
  const { keyHeader, billingKeyHeader } = options
  if (dryRun && follow) throw new UsageError('--dry-run and --follow exclude each other.')
  if ((billingFrom === undefined) !== (billingKeyFile === undefined))
    throw new UsageError('--billing-from and --billing-key-file belong together: give both, or neither.')
  if (customers !== undefined && billingFrom === undefined)
    throw new UsageError('--customers says whose payments are: give --billing-from, too.')
  if (keyFile === '-' && billingKeyFile === '-') throw new UsageError('Only one key can be on standard input.')
  const read: Read = {
    from: addressOf('--from', from),
    headers: headerOf('--key-header', keyHeader, await keyOf('--key-file', keyFile)),
    billing: undefined,
    customers: undefined,
  }
  if (billingFrom !== undefined)
    read.billing = {
      url: addressOf('--billing-from', billingFrom).replace(/\/v1$/, ''),
      headers: headerOf('--billing-key-header', billingKeyHeader, await keyOf('--billing-key-file', billingKeyFile!)),
    }
  if (customers !== undefined) read.customers = await readTextFile(customers)
  return read
}

function addressOf(option: string, given: string): string {
  if (!/^https?:\/\//.test(given) || !URL.canParse(given))
    throw new UsageError(`${option} must be an address such as https://api.example.com/public/v1.`)
  const { username, password, search, hash: fragment } = new URL(given)
  if (username || password || search || fragment)
    throw new UsageError(`${option} must not contain a user name, a password, a query (?) or a fragment (#).`)
  return given.replace(/\/+$/, '')
}

async function keyOf(option: string, file: string): Promise<string> {
  const key = await readSecret(file)
  if (key === undefined || !/^[\x21-\x7e]+$/.test(key)) throw new UsageError(`${option} must name a file with one key.`)
  return key
}

function headerOf(option: string, name: string, key: string): Record<string, string> {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(name)) throw new UsageError(`${option} must be the name of a header.`)
  return { [name]: key }
}

async function run(app: App, options: Options, read: Read, signal: AbortSignal): Promise<Result> {
  const { project: projectId, follow = false } = options
  const name = { organizationId: await findOrganization(app.db, projectId), projectId, source: read.from }
  const open = (url: string, headers: Record<string, string>) =>
    new ApiSource({ url, headers, clock: app.clock, signal, onPause: printLine })
  const progress = showObjects()
  const importing = {
    app,
    source: open(read.from, read.headers),
    billing: read.billing && open(read.billing.url, read.billing.headers),
    customers: read.customers === undefined ? noCustomers() : readCustomers(options.customers!, read.customers),
    actor: commandLine(),
    signal,
    onProgress: progress.update,
    onRejected: printLine,
  }
  try {
    if (options.dryRun) return await check(importing, name, progress)
    const customers = read.customers === undefined ? null : hash('sha256', read.customers, 'hex')
    return await carryOut({ ...importing, follow }, name, { billing: read.billing?.url ?? null, customers }, progress)
  } finally {
    progress.stop()
  }
}

type Progress = ReturnType<typeof showObjects>

async function carryOut(
  importing: Omit<ApiImport, 'query' | 'app'> & { app: App },
  name: ApiImportName,
  options: Parameters<typeof beginState>[2],
  progress: Progress,
): Promise<Result> {
  const { app, follow } = importing
  const connection = await app.db.connect()
  const { query } = connection
  try {
    await takeTurn(query, name)
    const state = await beginState(query, name, options)
    await saveState(query, state)
    await writeEntry(app, name, 'api_import.begun', { source: name.source, ...options, follow })
    if (state.notes.read > 0) process.stderr.write(`${howItContinues(state)}\n`)
    await runApiImport({ ...importing, query, onTrouble: printLine }, state)
    progress.stop()
    const report = await compareApi(query, state)
    const unused = importing.billing && (await whyUnused(query, name.organizationId, importing.customers))
    if (unused !== undefined) report.missing.push(unused)
    const { read, rejected, differences } = report
    await writeEntry(app, name, 'api_import.ended', { read, rejected, differences: differences.length })
    return { json: { status: state.status, ...report }, text: describeApi(report, state.status) }
  } finally {
    await releaseTurn(connection)
  }
}

function howItContinues({ place: { step, since }, notes }: ApiImportState): string {
  const before = `${notes.read} objects were read before.`
  if (step !== '' || since === null) return `The import continues where it stopped: ${before}`
  return `The import reads what changed since ${since}: ${before}`
}

async function check(
  importing: Parameters<typeof dryRunApi>[0],
  name: ApiImportName,
  progress: Progress,
): Promise<Result> {
  const place = { step: '', at: null, since: null, next: null, report: null }
  const state = { ...name, pass: 1, place, notes: emptyNotes() }
  const report = dryReport(state.notes, await dryRunApi(importing, state))
  progress.stop()
  const { differences: _, ...rest } = report
  return { json: { status: 'dry_run', ...rest }, text: describeApi(report, 'dry_run') }
}
