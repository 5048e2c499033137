// The command line without a program for each command: one runs them all, one after the other, for tests of many refusals.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Outcome, PROGRAM_ENV } from './cli.ts'

let resident: Promise<ChildProcess> | undefined
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

async function run(args: string[], env: Record<string, string>): Promise<Outcome> {
  resident ??= start()
  const child = await resident
  // It keeps this process running only while it has something to do.
  child.ref()
  child.channel?.ref()
  try {
    const answer = once(child, 'message')
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`The program ended with ${code} at tundish ${args.join(' ')}.`)
    })
    ended.catch(() => {})
    child.send({ args, env })
    const [outcome] = (await Promise.race([answer, ended])) as [Outcome]
    return outcome
  } catch (error) {
    resident = undefined
    throw error
  } finally {
    child.unref()
    child.channel?.unref()
  }
}

/** What is sent before the child listens can be lost, so it says when it does. */
async function start(): Promise<ChildProcess> {
  const execArgv = ['--disable-warning=ExperimentalWarning']
  // The child reads there what a command has written.
  const stderr = join(tmpdir(), `tundish-resident-${process.pid}-${Date.now()}`)
  const descriptor = openSync(stderr, 'a+')
  const child = fork(new URL('resident-child.ts', import.meta.url), {
    env: PROGRAM_ENV,
    execArgv,
    stdio: ['ignore', 'ignore', descriptor, 'ipc'],
  })
  closeSync(descriptor)
  unlinkSync(stderr)
  child.setMaxListeners(0)
  process.once('exit', () => child.kill())
  await once(child, 'message')
  return child
}
