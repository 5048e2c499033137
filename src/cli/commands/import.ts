// tundish import: imports records from files or standard input into a project.
import { constants, createReadStream } from 'node:fs'
import { access, type FileHandle, lstat, open, rm, stat } from 'node:fs/promises'
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import type { ImportResult, RejectedLine, Source } from '../../data/ingest/load.ts'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { naming } from '../../lib/files.ts'
import { causeOf, isUnavailable } from '../../lib/pg/errors.ts'
import { printable } from '../../lib/text.ts'
import { importAudited } from '../../operator/admin/audited-import.ts'
import { fileTrouble, type Result, untilStopped, withSettings } from './command.ts'
import { registerApi } from './import-api.ts'
import { registerPrimer } from './import-primer.ts'
import { showProgress } from './import-progress.ts'
import { registerStripe } from './import-stripe.ts'
import { commandLine } from './operations.ts'

interface Options {
  project?: string
  live?: boolean
  merge?: boolean
  emitEvents?: boolean
  dryRun?: boolean
  skipBadLines?: boolean
}

const STDIN = '-'
const STDIN_NAME = 'stdin'

export function register(program: Command): void {
  const command = program
    .command('import <files...>')
    .description('Import records from files of JSON lines, or from standard input (-); see docs/import.md')
    .option('--project <id>', 'The project to import into (required)')
    .option(
      '--live',
      'A feed: set updated_at to the present time, so that a sync reads the changes; by default, history keeps its dates',
    )
    .option('--merge', 'Change only the fields that a line has; by default, a line replaces the record')
    .option(
      '--emit-events',
      'Send events of new and changed profiles, sessions and subscriptions, and of new transactions',
    )
    .option('--dry-run', 'Check everything and write nothing')
    .option('--skip-bad-lines', 'Write the good lines, and the bad ones to FILE.rejected.ndjson')
  withSettings(command, (config, ...given) => {
    const [files, options] = given as [string[], Options]
    return untilStopped(config, (app, signal) => importFiles(app, files, options, signal))
  })
  registerStripe(command.enablePositionalOptions())
  registerPrimer(command)
  registerApi(command)
}

async function importFiles(app: App, files: string[], options: Options, signal: AbortSignal): Promise<Result> {
  // Commander would require it of `import stripe`, too, before the option of that command.
  const { project: projectId } = options
  if (projectId === undefined) throw new UsageError("error: required option '--project <id>' not specified")
  const bytes = await checkFiles(files)
  const saved = new RejectedFiles()
  const progress = showProgress(bytes)
  try {
    const result = await importAudited(
      app,
      commandLine(),
      {
        ...options,
        projectId,
        saveRejected: options.dryRun ? undefined : (lines) => saved.write(lines),
        signal,
        onProgress: progress.update,
      },
      files.map(sourceOf),
    )
    progress.stop()
    return report(result, options, saved.paths)
  } catch (error) {
    progress.stop()
    await saved.remove()
    throw asRefusal(error)
  }
}

/** The number of bytes to read; undefined if the size of a file is not known. */
async function checkFiles(files: string[]): Promise<number | undefined> {
  const twice = files.find((file, n) => files.indexOf(file) !== n)
  if (twice !== undefined) throw new UsageError(`${twice} is named twice: name it once.`)
  let bytes: number | undefined = 0
  for (const file of files) {
    const size = file === STDIN ? undefined : await sizeOf(file)
    bytes = bytes === undefined || size === undefined ? undefined : bytes + size
  }
  return bytes
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    await access(file, constants.R_OK)
    const found = await stat(file)
    if (found.isDirectory()) throw new Refusal(`${file} is a folder: name the files in it.`)
    return found.isFile() ? found.size : undefined
  } catch (error) {
    throw asRefusal(error)
  }
}

function sourceOf(file: string): Source {
  if (file === STDIN) return { name: STDIN_NAME, stream: () => process.stdin }
  return { name: file, stream: () => createReadStream(file) }
}

/** The rejected lines of each source, in a file next to it that only its owner can read: they contain personal data. */
class RejectedFiles {
  readonly paths: string[] = []

  async write(lines: AsyncIterable<RejectedLine>): Promise<void> {
    let file: { of: string; path: string; handle: FileHandle } | undefined
    try {
      for await (const { source, bytes } of lines) {
        if (file?.of !== source) {
          await close(file)
          const path = `${source}.rejected.ndjson`
          file = { of: source, path, handle: await this.open(path) }
        }
        const { path, handle } = file
        await naming(path, () => handle.write(bytes))
      }
    } finally {
      await close(file)
    }
  }

  /** If nothing was written, nothing was rejected either. */
  async remove(): Promise<void> {
    for (const path of this.paths) await rm(path, { force: true })
  }

  private async open(path: string): Promise<FileHandle> {
    const handle = await openRejected(path)
    if (!this.paths.includes(path)) this.paths.push(path)
    return handle
  }
}

/**
 * Always creates a new file. Refuses a link, through which the lines would go to another place, and anything else that is not a
 * file. An older file of this name is removed, so that its permissions and other links do not apply.
 */
async function openRejected(path: string): Promise<FileHandle> {
  const found = await lstat(path).catch(() => undefined)
  if (found && !found.isFile())
    throw new Refusal(
      `${path} is ${found.isSymbolicLink() ? 'a link' : 'no file'}: the rejected lines cannot go there.`,
    )
  await rm(path, { force: true })
  return open(path, 'wx', 0o600)
}

/** Writes the file to disk before the import commits: after that the lines are nowhere else. */
async function close(file: { path: string; handle: FileHandle } | undefined): Promise<void> {
  if (!file) return
  const { path, handle } = file
  await naming(path, () => handle.sync().finally(() => handle.close()))
}

function report(result: ImportResult, options: Options, paths: string[]): Result {
  const { rejects, stopped, ...numbers } = result
  for (const { source, line, reason } of rejects) process.stderr.write(`${printable(`${source}:${line}: ${reason}`)}\n`)
  const rest = result.rejected - rejects.length
  if (rest > 0) process.stderr.write(`... and ${rest} more bad lines.\n`)
  if (stopped) process.stderr.write('The rest was not read.\n')
  const refused = result.rejected > 0 && !options.skipBadLines
  return { json: numbers, text: summary(result, options, refused, paths), exitCode: refused ? 1 : 0 }
}

function summary(result: ImportResult, { dryRun }: Options, refused: boolean, paths: string[]): string {
  const { read, written, unchanged, skipped, erased, rejected } = result
  const lines = (count: number) => (count === 1 ? '1 line' : `${count} lines`)
  if (refused) return `${lines(rejected)} of ${read} ${rejected === 1 ? 'is' : 'are'} bad: nothing was written.`
  const parts = [`${written} written`]
  if (unchanged > 0) parts.push(`${unchanged} unchanged`)
  if (skipped > 0) parts.push(`${skipped} skipped (older than what is stored, or charged here)`)
  if (erased > 0) parts.push(`${erased} written without personal data (erased profiles)`)
  if (rejected > 0) parts.push(`${rejected} rejected${paths.length > 0 ? ` (in ${paths.join(', ')})` : ''}`)
  return `${lines(read)} read: ${parts.join(', ')}.${dryRun ? ' This was a dry run: nothing was stored.' : ''}`
}

function asRefusal(error: unknown): unknown {
  const { path } = error as NodeJS.ErrnoException
  if (error instanceof Refusal || error instanceof UsageError) return error
  if (path !== undefined) return new Refusal(fileTrouble(error as NodeJS.ErrnoException))
  if (isUnavailable(error))
    return new Refusal(`The database became unavailable (${causeOf(error)}): nothing was written. Import again.`)
  return error
}
