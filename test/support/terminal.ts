// A command on a terminal: what it prints there, and the keys that are pressed.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { PROGRAM_ENV, program } from './cli.ts'
import { until } from './cluster.ts'

export interface Terminal {
  process: ChildProcess
  /** Everything that was printed so far. */
  output(): string
  /** Waits until the output matches. */
  untilPrinted(pattern: RegExp): Promise<void>
  press(keys: string): void
  /** Resolves with the exit code of the command. */
  ended: Promise<number | null>
}

/** Why no terminal can be opened here, or undefined. */
export const noTerminal =
  existsSync('/usr/bin/script') && process.platform === 'linux' ? undefined : 'there is no script(1) for a terminal'

export const CTRL_C = '\x03'

/** Starts `tundish ARGUMENTS...` on its own terminal, by default of no particular width. */
export function openTerminal(args: string[], env: Record<string, string>, columns?: number): Terminal {
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
    output: () => output,
    untilPrinted: (pattern) => until(`${pattern} on the terminal`, () => pattern.test(output)),
    press: (keys) => void child.stdin.write(keys),
    ended: once(child, 'close').then(([code]) => code as number | null),
  }
}
