// The program as users run it: commands, also on a terminal or frozen, and servers, as separate processes with only the environment
// that the test gives them.
import assert from 'node:assert/strict'
import { type ChildProcess, type ChildProcessWithoutNullStreams, type StdioOptions, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { Db } from '../../src/lib/pg/db.ts'
import { untilLocked } from './database.ts'
import { until } from './time.ts'

export interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

/** The environment of a program that a test starts, with the same Node and its cache of compiled code. */
export const PROGRAM_ENV = {
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
  // A run of the mutants plants its bug with these.
  ...(process.env['TUNDISH_MUTANT'] && {
    TUNDISH_MUTANT: process.env['TUNDISH_MUTANT'],
    NODE_OPTIONS: process.env['NODE_OPTIONS'] ?? '',
  }),
}

const MAIN = join(import.meta.dirname, '../../src/main.ts')
const RELATIVE_IMPORTS = new URL('../../src/lib/relative-imports.ts', import.meta.url).href

/** Node's options for a module that a test forks: those of the tests themselves. */
export const FORK_OPTIONS = ['--disable-warning=ExperimentalWarning', '--import', RELATIVE_IMPORTS]

// A command that takes this long hangs, even if it creates an embedded database on a busy machine.
export const PATIENCE_MS = 300_000

/** The program and arguments of `tundish ARGUMENTS...` for `spawn`. */
export const program = (...args: string[]): [string, string[]] => [
  process.execPath,
  ['--disable-warning=ExperimentalWarning', '--', MAIN, ...args],
]

/** Starts `tundish ARGUMENTS...`. */
export function spawnTundish(args: string[], env?: Record<string, string>): ChildProcessWithoutNullStreams
export function spawnTundish(args: string[], env: Record<string, string>, stdio: StdioOptions): ChildProcess
export function spawnTundish(args: string[], env: Record<string, string> = {}, stdio: StdioOptions = 'pipe') {
  return spawn(...program(...args), { env: { ...PROGRAM_ENV, ...env }, stdio })
}

/** Runs `tundish ARGUMENTS...`, with `input` as its standard input, until it ends. */
export async function tundish(
  args: string[],
  env: Record<string, string> = {},
  input: string | Buffer = '',
): Promise<Outcome> {
  const child = spawn(...program(...args), { env: { ...PROGRAM_ENV, ...env }, timeout: PATIENCE_MS })
  // A program that ends without reading breaks the pipe.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}

/** Asserts that a command has succeeded, and returns its standard output. */
export async function succeeded(outcome: Promise<Outcome>): Promise<string> {
  const { code, stdout, stderr } = await outcome
  assert.equal(code, 0, stdout + stderr)
  return stdout
}

/** The same for a command with --json: its output as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the shape is what tests check.
export const jsonOf = async (outcome: Promise<Outcome>): Promise<any> => JSON.parse(await succeeded(outcome))

/** Has a process end with this one: one that is frozen does not receive Ctrl-C. */
export function endWithTest(child: ChildProcess): void {
  process.once('exit', () => child.kill('SIGKILL'))
}

/**
 * Starts `tundish ARGUMENTS...` and freezes it when it waits for a lock in a statement with `part` in its text. The returned
 * function lets it go on, and returns how it ended.
 */
export async function freezeAtLock(db: Db, args: string[], env: Record<string, string>, part: string) {
  const child = spawn(...program(...args), {
    env: { ...PROGRAM_ENV, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: PATIENCE_MS,
  })
  endWithTest(child)
  const ended = Promise.all([once(child, 'close'), text(child.stderr)])
  await untilLocked(db.query, part)
  child.kill('SIGSTOP')
  return async () => {
    child.kill('SIGCONT')
    const [[code], stderr] = await ended
    return { code: code as number | null, stderr }
  }
}

/** Why no terminal can be opened here, or undefined. */
export const noTerminal =
  existsSync('/usr/bin/script') && process.platform === 'linux' ? undefined : 'there is no script(1) for a terminal'

export const CTRL_C = '\x03'

/** Starts `tundish ARGUMENTS...` on its own terminal, by default of no particular width. */
export function openTerminal(args: string[], env: Record<string, string>, columns?: number) {
  const [node, given] = program(...args)
  const command = [node, ...given].join(' ')
  const sized = columns === undefined ? command : `stty cols ${columns}; ${command}`
  const child = spawn('script', ['-qfec', sized, '/dev/null'], { env: { ...PROGRAM_ENV, ...env } })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  return {
    process: child,
    /** Everything that was printed so far. */
    output: () => output,
    untilPrinted: (pattern: RegExp) => until(`${pattern} on the terminal`, () => pattern.test(output)),
    press: (keys: string) => void child.stdin.write(keys),
    /** Resolves with the exit code of the command. */
    ended: once(child, 'close').then(([code]) => code as number | null),
  }
}

export type ServerProcess = Awaited<ReturnType<typeof startProcess>>
export type LogLine = { msg?: string; worker?: number; pid?: number; [field: string]: unknown }

/** Starts `tundish serve` with only these settings, and waits until it is ready. `command` may be the launcher. */
export async function startProcess(
  env: Record<string, string>,
  args: string[] = [],
  [command, ...first]: [string, ...string[]] = [process.execPath, MAIN],
) {
  const child = spawn(command, [...first, 'serve', ...args], {
    env: { ...PROGRAM_ENV, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const log: LogLine[] = []
  const ready = Promise.withResolvers<{ url: string; adminUrl: string }>()
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as LogLine
    log.push(line)
    if (line.msg === 'Tundish is ready.') ready.resolve({ url: String(line.url), adminUrl: String(line.admin_url) })
  })
  void ended.then((how) => ready.reject(new Error(`The server ended before it was ready: ${JSON.stringify(how)}`)))
  return {
    ...(await ready.promise),
    process: child as ChildProcess,
    /** The lines of its log so far, as objects. */
    log,
    /** Resolves with its exit code and signal. */
    ended,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** A free port of this machine, which no connection and no `listen(0)` takes in between: below the ports that systems give out. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    await once(server.close(), 'close')
    return port
  }
}
