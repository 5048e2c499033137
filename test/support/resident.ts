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
  /** Remembers where in its standard error a command begins. */
  begin(): void
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
    return await answerOf(await resident, { args, env })
  } catch (error) {
    resident = undefined
    throw new Error(`tundish ${args.join(' ')}: ${(error as Error).message}`)
  }
}

async function answerOf({ child, ended, begin }: Resident, command: object): Promise<Outcome> {
  // It keeps this process running only while it has something to do.
  child.ref()
  child.channel?.ref()
  const late = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  try {
    const answer = once(child, 'message')
    begin()
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
  let from = 0
  const begin = () => {
    // The file is closed when the program has ended.
    if (child.exitCode === null && child.signalCode === null) from = fstatSync(descriptor).size
  }
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', (code, signal) => {
      const how = signal ? `by ${signal}` : `with ${code}`
      reject(new Error(`the resident program has ended ${how}. ${lastWords(descriptor, from)}`.trim()))
    })
  })
  ended.catch(() => {})
  await Promise.race([once(child, 'message'), ended])
  return { child, ended, begin }
}

/** What it has written since the last command began, such as an error that ended it. */
function lastWords(descriptor: number, from: number): string {
  const bytes = Buffer.alloc(fstatSync(descriptor).size - from)
  readSync(descriptor, bytes, 0, bytes.length, from)
  closeSync(descriptor)
  return bytes.toString()
}
