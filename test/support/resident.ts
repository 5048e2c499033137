// Runs commands one after another in one resident process, for tests of many refusals.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTask } from 'node:timers/promises'
import { FORK_OPTIONS, type Outcome, PATIENCE_MS, PROGRAM_ENV } from './cli.ts'

interface Resident {
  child: ChildProcess
  /** Rejects when the program ends. */
  ended: Promise<never>
  /** Stores the position in standard error at which a command begins. */
  begin(): void
}

let resident: Promise<Resident> | undefined
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs `tundish ARGUMENTS...` like `tundish` of cli.ts, but without starting a program and without standard input. Logging is off,
 * because a line is written up to 50 ms later, during the output of the next command: `LOG_LEVEL: undefined` is for a refusal.
 */
export async function tundishAgain(args: string[], env: Record<string, string | undefined> = {}): Promise<Outcome> {
  const running = last.then(() => run(args, { ...PROGRAM_ENV, LOG_LEVEL: 'silent', ...env }))
  last = running.catch(() => {})
  try {
    return await running
  } finally {
    // The outcome comes from a program that an earlier file may have started, and what a file registers next would be
    // taken for that file's. A new task is the caller's.
    await nextTask()
  }
}

/** Kills the program that runs the commands, for the test of this file. */
export async function killResident(): Promise<void> {
  resident ??= start()
  const { child } = await resident
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

async function run(args: string[], env: Record<string, string | undefined>): Promise<Outcome> {
  try {
    resident ??= start()
    return await outcomeOf(await resident, { args, env })
  } catch (error) {
    resident = undefined
    throw new Error(`tundish ${args.join(' ')}: ${(error as Error).message}`)
  }
}

async function outcomeOf({ child, ended, begin }: Resident, command: object): Promise<Outcome> {
  // It keeps this process running only while it runs a command.
  child.ref()
  child.channel?.ref()
  const late = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  try {
    const message = once(child, 'message')
    begin()
    // A failure to send is reported as the end of the program.
    message.catch(() => {})
    child.send(command, () => {})
    const [outcome] = (await Promise.race([message, ended])) as [Outcome]
    return outcome
  } finally {
    clearTimeout(late)
    child.unref()
    child.channel?.unref()
  }
}

/** Waits until the child listens: messages that are sent before may be lost. */
async function start(): Promise<Resident> {
  // The child reads the output of commands from this file.
  const stderr = join(tmpdir(), `tundish-resident-${process.pid}-${Date.now()}`)
  const descriptor = openSync(stderr, 'a+')
  const child = fork(new URL('resident-child.ts', import.meta.url), {
    env: PROGRAM_ENV,
    execArgv: FORK_OPTIONS,
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
      reject(new Error(`the resident program has ended ${how}. ${outputSince(descriptor, from)}`.trim()))
    })
  })
  ended.catch(() => {})
  await Promise.race([once(child, 'message'), ended])
  return { child, ended, begin }
}

/** The output since the last command began, such as an error that ended the program. */
function outputSince(descriptor: number, from: number): string {
  const bytes = Buffer.alloc(fstatSync(descriptor).size - from)
  readSync(descriptor, bytes, 0, bytes.length, from)
  closeSync(descriptor)
  return bytes.toString()
}
