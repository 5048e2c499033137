// The server as a program of its own, until a test stops it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
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
