// How every command runs: settings, shared parts, output as text or JSON, and the exit code.
import { isatty } from 'node:tty'
import { inspect } from 'node:util'
import type { Command } from 'commander'
import pg from 'pg'
import { type App, type OpenOptions, openApp } from '../app.ts'
import { type Config, readConfig } from '../config.ts'
import { Refusal, UsageError } from '../lib/errors.ts'
import { openLog } from '../lib/log.ts'
import { errorForLog } from '../lib/log-error.ts'
import { hideSecrets } from '../tenants/hide-secrets.ts'

/** What a command has to say: `text` for a person, `json` for a program, `exitCode` when it is not 0. */
export interface Result {
  json: unknown
  text: string
  exitCode?: number
}

const EXIT_REFUSED = 1
const EXIT_USAGE = 2
const CONNECTIONS = { read: 1, plain: 4 }

/** Adds `--json` to a command and makes `run` its action, with everything open while it runs. */
export function action(
  command: Command,
  run: (app: App, ...args: never[]) => Promise<Result>,
  options: Partial<OpenOptions> = {},
): Command {
  return withSettings(command, async (config, ...args) => {
    const app = await openApp(config, {
      log: openLog(quieter(config.logLevel), 2),
      connections: CONNECTIONS,
      ...options,
    })
    try {
      return await run(app, ...(args as never[]))
    } finally {
      await app.close()
    }
  })
}

/** The same without opening anything: the command gets the settings alone. */
export function withSettings(command: Command, run: (config: Config, ...args: unknown[]) => Promise<Result>): Command {
  return command.option('--json', 'print one JSON document and nothing else').action(async (...args: unknown[]) => {
    // Commander appends the command itself; the arguments and then the options come before it.
    const given = args.slice(0, -1)
    const { json } = given.at(-1) as { json?: boolean }
    await guard(async () => {
      const result = await run(readConfig(process.env), ...given)
      if (json) process.stdout.write(`${JSON.stringify(result.json)}\n`)
      else if (result.text !== '') process.stdout.write(`${result.text}\n`)
      process.exitCode = result.exitCode ?? 0
    })
  })
}

/** Output that nobody takes: whoever closed a pipe has read enough, and a full disk is told in a sentence. */
export function watchOutput(): void {
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return
    process.stderr.write(`The output cannot be written (${code}).\n`)
    // At the end, over the code of a command that did what it was asked.
    process.once('exit', () => {
      process.exitCode ||= EXIT_REFUSED
    })
  })
  // Of this there is nobody to tell.
  process.stderr.on('error', () => {})
}

/** Runs and turns what went wrong into a sentence and an exit code. */
export async function guard(run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    const told = aboutFile(error) ?? error
    if (error instanceof pg.DatabaseError) return tellOfDatabase(error)
    if (!(told instanceof UsageError || told instanceof Refusal)) throw error
    process.stderr.write(`${hideSecrets(told.message)}\n`)
    process.exitCode = told instanceof UsageError ? EXIT_USAGE : EXIT_REFUSED
  }
}

/** A defect, told as in the log: Node's own telling of it would show the values of the row. */
function tellOfDatabase(error: Error): void {
  process.stderr.write(`${inspect(errorForLog(error))}\n`)
  process.exitCode = EXIT_REFUSED
}

/** A folder or file that the settings name, and that this machine does not let us use. */
function aboutFile(error: unknown): UsageError | undefined {
  const { syscall, path } = error as NodeJS.ErrnoException
  if (path === undefined || !['open', 'mkdir', 'access'].includes(syscall ?? '')) return undefined
  return new UsageError(fileTrouble(error as NodeJS.ErrnoException))
}

/** What Node says of a file, as a sentence. */
export const fileTrouble = ({ path, syscall, code }: NodeJS.ErrnoException) =>
  `${path} cannot be used (${syscall}: ${code}).`

/** A command's log lines are for trouble only, and never on standard output with its result. */
const quieter = (level: string) => (level === 'info' ? 'warn' : level)

// npm passes on the Ctrl-C that the terminal has sent us already: what follows at once is the same wish.
const SAME_WISH_MS = 1000

const ON_TERMINAL = isatty(0)

/** What a server does at signals beside stopping; what is not there yet, while it starts, is not done. */
export interface Signalled {
  /** At SIGHUP. */
  restart?(): void
  /** Before it ends at once. */
  kill?(): void
}

/**
 * Resolves at the first SIGINT or SIGTERM, or when the program's terminal is closed; another one a second later ends the
 * program at once. Without `signalled` SIGHUP ends it too, as by default.
 */
export function stopSignal(signalled?: Signalled): Promise<void> {
  const terminalIsClosed = () => ON_TERMINAL && !isatty(0)
  return new Promise((resolve) => {
    let firstMs: number | undefined
    const stop = () => {
      if (firstMs !== undefined && performance.now() - firstMs > SAME_WISH_MS) {
        signalled?.kill?.()
        process.exit(130)
      }
      firstMs ??= performance.now()
      resolve()
    }
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    if (!signalled) return
    // A terminal that is closed sends it too, and is none any more.
    process.on('SIGHUP', () => (terminalIsClosed() ? stop() : signalled.restart?.()))
    if (terminalIsClosed()) stop()
  })
}
