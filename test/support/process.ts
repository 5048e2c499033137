// Programs of their own for tests: a server that serves until it is stopped, and a command that runs to its end.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export interface ServerProcess {
  url: string
  process: ChildProcess
  stop(): Promise<void>
}

/** Starts `tundish serve` with this environment alone, and waits until it is ready. */
export async function startProcess(env: Record<string, string>): Promise<ServerProcess> {
  const child = spawn(process.execPath, [MAIN, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout! })) {
    const { url } = JSON.parse(line)
    if (!url) continue
    child.stdout!.resume()
    return {
      url,
      process: child,
      async stop() {
        child.kill('SIGTERM')
        await ended
      },
    }
  }
  throw new Error(`The server ended before it was ready: ${await ended}`)
}

/** Runs `tundish ARGUMENTS` to its end. */
export async function runCommand(args: string[], env: Record<string, string>, input = '') {
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: 'pipe' })
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code: code as number, stdout, stderr }
}
