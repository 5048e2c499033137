// The command line without a program for each command: one runs them all, one after the other, for tests of many refusals.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Outcome, PATIENCE_MS, PROGRAM_ENV } from './cli.ts'

interface Resident {
  child: ChildProcess
  /** Rejects when the program ends, whatever it does then. */
  ended: Promise<never>
}

let resident: Promise<Resident> | undefined
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs `tundish ARGUMENTS...` as `tundish` of cli.ts does, but for the start of a program, and without standard input. It logs
 * nothing: a line is written up to 50 ms later, among what the next command prints.
 */
export function tundishAgain(args: string[], env: Record<string, string> = {}): Promise<Outcome> {
  const outcome = last.then(() => run(args, { ...PROGRAM_ENV, LOG_LEVEL: 'silent', ...env }))
  last = outcome.catch(() => {})
  return outcome
}

/** Kills the program that runs the commands, for the test of this file. */
export async function killResident(): Promise<void> {
  resident ??= start()
  const { child } = await resident
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

async function run(args: string[], env: Record<string, string>): Promise<Outcome> {
  try {
    resident ??= start()
    const { child, ended } = await resident
    return await answerOf(child, ended, { args, env })
  } catch (error) {
    resident = undefined
    throw new Error(`tundish ${args.join(' ')}: ${(error as Error).message}`)
  }
}

async function answerOf(child: ChildProcess, ended: Promise<never>, command: object): Promise<Outcome> {
  // It keeps this process running only while it has something to do.
  child.ref()
  child.channel?.ref()
  const late = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  try {
    const answer = once(child, 'message')
    // What cannot be sent any more shows as the end of the program.
    answer.catch(() => {})
    child.send(command, () => {})
    const [outcome] = (await Promise.race([answer, ended])) as [Outcome]
    return outcome
  } finally {
    clearTimeout(late)
    child.unref()
    child.channel?.unref()
  }
}

/** What is sent before the child listens can be lost, so it says when it does. */
async function start(): Promise<Resident> {
  const execArgv = ['--disable-warning=ExperimentalWarning']
  // The child reads there what a command has written.
  const stderr = join(tmpdir(), `tundish-resident-${process.pid}-${Date.now()}`)
  const descriptor = openSync(stderr, 'a+')
  const child = fork(new URL('resident-child.ts', import.meta.url), {
    env: PROGRAM_ENV,
    execArgv,
    stdio: ['ignore', 'ignore', descriptor, 'ipc'],
  })
  unlinkSync(stderr)
  child.setMaxListeners(0)
  process.once('exit', () => child.kill())
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', (code, signal) => {
      const how = signal ? `by ${signal}` : `with ${code}`
      reject(new Error(`the resident program has ended ${how}. ${lastWords(descriptor)}`.trim()))
    })
  })
  ended.catch(() => {})
  await Promise.race([once(child, 'message'), ended])
  return { child, ended }
}

/** What it has written at last, such as an error that ended it. */
function lastWords(descriptor: number): string {
  const { size } = fstatSync(descriptor)
  const bytes = Buffer.alloc(Math.min(size, 2000))
  readSync(descriptor, bytes, 0, bytes.length, size - bytes.length)
  closeSync(descriptor)
  return bytes.toString()
}
