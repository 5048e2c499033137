// The server as a separate process, until a test stops it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { PROGRAM_ENV } from './cli.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export interface ServerProcess {
  url: string
  adminUrl: string
  process: ChildProcess
  /** The lines of its log so far, as objects. */
  log: LogLine[]
  /** Resolves with its exit code and signal. */
  ended: Promise<{ code: number | null; signal: string | null }>
  stop(): Promise<void>
}

export type LogLine = { msg?: string; worker?: number; pid?: number; [field: string]: unknown }

/** Starts `tundish serve` with only these settings, and waits until it is ready. `program` may be the launcher. */
export async function startProcess(
  env: Record<string, string>,
  args: string[] = [],
  program: [string, ...string[]] = [process.execPath, MAIN],
): Promise<ServerProcess> {
  const [command, ...first] = program
  const child = spawn(command, [...first, 'serve', ...args], {
    env: { ...PROGRAM_ENV, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const log: LogLine[] = []
  const ready = Promise.withResolvers<{ url: string; adminUrl: string }>()
  createInterface({ input: child.stdout! }).on('line', (text) => {
    const line = JSON.parse(text) as LogLine
    log.push(line)
    if (line.msg === 'Tundish is ready.') ready.resolve({ url: String(line.url), adminUrl: String(line.admin_url) })
  })
  void ended.then((how) => ready.reject(new Error(`The server ended before it was ready: ${JSON.stringify(how)}`)))
  const addresses = await ready.promise
  return {
    ...addresses,
    process: child,
    log,
    ended,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
