// The command line as a user runs it: a separate process, with only the environment that the test gives it.
import { spawn } from 'node:child_process'
import { join } from 'node:path'

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
// A command that takes this long hangs, even if it creates an embedded database on a busy machine.
export const PATIENCE_MS = 300_000

/** The program and arguments of `tundish ARGUMENTS...` for `spawn`. */
export const program = (...args: string[]): [string, string[]] => [
  process.execPath,
  ['--disable-warning=ExperimentalWarning', '--', MAIN, ...args],
]

/** Runs `tundish ARGUMENTS...`, with `input` as its standard input, until it ends. */
export function tundish(
  args: string[],
  env: Record<string, string> = {},
  input: string | Buffer = '',
): Promise<Outcome> {
  const child = spawn(...program(...args), { env: { ...PROGRAM_ENV, ...env }, timeout: PATIENCE_MS })
  const outcome: Outcome = { code: null, stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    outcome.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    outcome.stderr += text
  })
  // A program that ends without reading breaks the pipe.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ ...outcome, code }))
  })
}
