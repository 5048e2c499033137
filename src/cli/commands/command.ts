// How every command runs: settings, shared parts, output as text or JSON, and the exit code.
import { isatty } from 'node:tty'
import { inspect } from 'node:util'
import type { Command } from 'commander'
import pg from 'pg'
import { type App, type OpenOptions, openApp } from '../../app.ts'
import { type Config, readConfig } from '../../config.ts'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'
import { hideSecrets } from '../../lib/hide-secrets.ts'
import { logLost, openLog } from '../../lib/log.ts'
import { errorForLog } from '../../lib/log-error.ts'
import { causeOf, isRefusedData, isUnavailable, placeOfRefusal, sqlState } from '../../lib/pg/errors.ts'
import { printable } from '../../lib/text.ts'
import { rejectWhenAborted } from '../../lib/when-aborted.ts'
import { sayIfNew } from './new-database.ts'

/**
 * The result of a command: `text` for a person, `json` for a program, `exitCode` when it is not 0. A command that has written its
 * output has no `json` and an empty text.
 */
export interface Result {
  json: unknown
  text: string
  exitCode?: number
}

export const EXIT_REFUSED = 1
const EXIT_USAGE = 2
const CONNECTIONS = { read: 1, plain: 4 }

/** Adds `--json` to a command and makes `run` its action, with everything open while it runs. */
export function action(
  command: Command,
  run: (app: App, ...args: never[]) => Promise<Result>,
  options: Partial<OpenOptions> = {},
): Command {
  return withSettings(command, async (config, ...args) => {
    const runWith = (app: App) => run(app, ...(args as never[]))
    // With DATABASE_URL there is no embedded server to stop: a signal ends the command at once, as by default.
    if (config.databaseUrl !== undefined) return withApp(config, runWith, options)
    return untilStopped(config, (app, signal) => Promise.race([runWith(app), failWhenStopped(signal)]), options)
  })
}

/**
 * Runs `run` with everything open. A signal before that cancels opening, so that a first start leaves neither a half-made
 * database nor a PostgreSQL behind; from then on `run` stops by its `signal`.
 */
export async function untilStopped<T>(
  config: Config,
  run: (app: App, signal: AbortSignal) => Promise<T>,
  options: Partial<OpenOptions> = {},
): Promise<T> {
  sayIfNew(config)
  const signal = abortedWhenStopped()
  signal.addEventListener('abort', sayStopping)
  const app = await openApp(config, { ...shortLived(config, options), signal }).catch((error) => {
    throw error === signal.reason ? new Interrupted('Stopped before the command began: it did nothing.') : error
  })
  // From here on `run` reports it.
  signal.removeEventListener('abort', sayStopping)
  return closing(app, (opened) => run(opened, signal))
}

const shortLived = (config: Config, options: Partial<OpenOptions>): OpenOptions => ({
  log: openLog(quieter(config.logLevel), 2),
  connections: CONNECTIONS,
  unmeasured: true,
  ...options,
})

/** Runs `run` with everything open, and closes it. */
export async function withApp<T>(
  config: Config,
  run: (app: App) => Promise<T>,
  options: Partial<OpenOptions> = {},
): Promise<T> {
  return closing(await openApp(config, shortLived(config, options)), run)
}

async function closing<T>(app: App, run: (app: App) => Promise<T>): Promise<T> {
  try {
    return await run(app)
  } finally {
    await app.close()
  }
}

class Interrupted extends Refusal {}

export const sayStopping = () => void process.stderr.write('Stopping. Another Ctrl-C or SIGTERM stops at once.\n')

function failWhenStopped(signal: AbortSignal): Promise<never> {
  signal.addEventListener('abort', sayStopping)
  const sentence = 'Stopped while the command ran: check what it did before you repeat it.'
  return rejectWhenAborted(signal, () => new Interrupted(sentence))
}

/** The same without opening anything: `run` gets only the settings. */
export function withSettings(command: Command, run: (config: Config, ...args: unknown[]) => Promise<Result>): Command {
  return command.option('--json', 'Print one JSON document and nothing else').action(async (...args: unknown[]) => {
    // Commander appends the command itself; the arguments and then the options come before it.
    const given = args.slice(0, -1)
    const { json } = given.at(-1) as { json?: boolean }
    await guard(async () => {
      checkFileNames(command)
      const result = await run(readConfig(process.env), ...given)
      if (json && result.json !== undefined) process.stdout.write(`${JSON.stringify(result.json)}\n`)
      else if (result.text !== '') process.stdout.write(`${printable(result.text)}\n`)
      process.exitCode = result.exitCode ?? 0
    })
  })
}

/** Refuses empty names of files and folders, as a variable of the shell that is not set gives them. */
function checkFileNames(command: Command): void {
  const named = [
    ...command.registeredArguments.map((one, n) => [command.name(), one.name(), command.processedArgs[n]] as const),
    ...command.options.map((one) => [one.long!, one.flags, command.getOptionValue(one.attributeName())] as const),
  ]
  for (const [what, placeholder, value] of named) {
    const [kind] = /\b(file|folder)(?=s?\b[^ ]*$)/.exec(placeholder) ?? []
    if (kind && [value].flat().includes('')) throw new UsageError(`${what} needs the name of a ${kind}.`)
  }
}

/** Runs `run`, and turns an error into a sentence and an exit code. */
export async function guard(run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    const known = aboutFile(error) ?? aboutDatabase(error) ?? aboutData(error) ?? error
    if (known instanceof pg.DatabaseError) return printDatabaseError(known)
    if (!(known instanceof UsageError || known instanceof Refusal)) throw error
    process.stderr.write(`${printable(hideSecrets(known.message))}\n`)
    process.exitCode = known instanceof UsageError ? EXIT_USAGE : EXIT_REFUSED
    // Otherwise an open handle of the command, standard input for example, would keep the program running.
    if (known instanceof Interrupted) process.exit()
  }
}

/** A defect, printed as in the log: Node's own message would show the values of the row. */
function printDatabaseError(error: Error): void {
  process.stderr.write(`${inspect(errorForLog(error))}\n`)
  process.exitCode = EXIT_REFUSED
}

/** A folder or file of the settings that cannot be used, or a file that was opened and does not take what is written: a full disk. */
function aboutFile(error: unknown): UsageError | Refusal | undefined {
  const { syscall = '', path } = error as NodeJS.ErrnoException
  if (path === undefined) return undefined
  const sentence = fileTrouble(error as NodeJS.ErrnoException)
  if (['open', 'mkdir', 'access', 'scandir'].includes(syscall)) return new UsageError(sentence)
  if (!['write', 'fsync'].includes(syscall)) return undefined
  return new Refusal(`${sentence} Check what the command did before you repeat it.`)
}

/** A right that the role lacks; a connection that was lost, or a server that stopped working, in the middle of a command. */
function aboutDatabase(error: unknown): Refusal | undefined {
  // PostgreSQL's message names the object, and no values.
  if (sqlState(error) === '42501')
    return new Refusal(
      `The role of the database lacks a right (${causeOf(error)}): give it that right (docs/managed-postgresql.md).`,
    )
  if (!isUnavailable(error)) return undefined
  return new Refusal(
    `The database became unavailable (${causeOf(error)}): check what the command did before you repeat it.`,
  )
}

/** Data that passed every check and that the database refuses. Its own message may quote the values of the row. */
function aboutData(error: unknown): Refusal | undefined {
  if (!isRefusedData(error)) return undefined
  return new Refusal(
    `The database refused the data (${placeOfRefusal(error)}): check what the command did before you repeat it, and report this error.`,
  )
}

/** Node's error about a file as a sentence. */
export const fileTrouble = (error: NodeJS.ErrnoException) => `${error.path} cannot be used: ${whyNot(error)}.`

/** Commands log warnings and errors only, to standard error. */
const quieter = (level: string) => (level === 'info' ? 'warn' : level)

// npm forwards a Ctrl-C that the terminal has already sent to this process, so a second signal within this time is the same.
const SAME_SIGNAL_MS = 1000

const ON_TERMINAL = isatty(0)

/** The actions of a server on signals, besides stopping. They are absent while the server starts. */
export interface Signalled {
  /** At SIGHUP. */
  restart?(): void
  /** Before the program ends at once. */
  kill?(): void
}

/**
 * Resolves at the first SIGINT or SIGTERM, when the program's terminal is closed, or when its log is lost; another signal a second
 * later ends the program at once. Without `signalled` SIGHUP ends it too, as by default.
 */
export function stopSignal(signalled?: Signalled): Promise<void> {
  const terminalIsClosed = () => ON_TERMINAL && !isatty(0)
  return new Promise((resolve) => {
    let firstMs: number | undefined
    const stop = () => {
      if (firstMs !== undefined && performance.now() - firstMs > SAME_SIGNAL_MS) {
        signalled?.kill?.()
        process.exit(130)
      }
      firstMs ??= performance.now()
      resolve()
    }
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    logLost.addEventListener('abort', () => {
      // Ctrl-C also ends the program that reads the log.
      if (firstMs !== undefined) return
      process.stderr.write(`The log cannot be written (${logLost.reason.code}): stopping.\n`)
      process.exitCode = EXIT_REFUSED
      resolve()
    })
    if (!signalled) return
    // SIGHUP is also sent when the terminal is closed; then the program stops.
    process.on('SIGHUP', () => (terminalIsClosed() ? stop() : signalled.restart?.()))
    if (terminalIsClosed()) stop()
  })
}

/** A signal that is aborted at the first SIGINT or SIGTERM, with this reason. */
export function abortedWhenStopped(reason?: Error): AbortSignal {
  const stopping = new AbortController()
  void stopSignal().then(() => stopping.abort(reason))
  return stopping.signal
}
