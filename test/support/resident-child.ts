// The process behind resident.ts: runs the command of each message in its environment, and returns its output.
import { fstatSync, readSync } from 'node:fs'
import { inspect } from 'node:util'
import { runCommand } from '../../src/main.ts'
import type { Outcome } from './cli.ts'

const STDERR = 2

process.on('message', async ({ args, env }: { args: string[]; env: Record<string, string> }) => {
  process.send!(await run(args, env))
})
process.on('disconnect', () => process.exit())
process.send!('ready')
// Each interruptible command adds a listener.
process.setMaxListeners(0)

async function run(args: string[], env: Record<string, string>): Promise<Outcome> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.exitCode = undefined
  const from = fstatSync(STDERR).size
  const { write } = process.stdout
  let stdout = ''
  process.stdout.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    stdout += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    const done = rest.find((one) => typeof one === 'function') as (() => void) | undefined
    if (done) process.nextTick(done)
    return true
  }
  try {
    await runCommand(args)
  } catch (error) {
    process.stderr.write(`${inspect(error)}\n`)
    process.exitCode = 1
  } finally {
    process.stdout.write = write
  }
  const code = Number(process.exitCode ?? 0)
  process.exitCode = undefined
  return { code, stdout, stderr: writtenSince(from) }
}

/** Standard error is a file, because the log does not write through `process.stderr`. */
function writtenSince(from: number): string {
  const bytes = Buffer.alloc(fstatSync(STDERR).size - from)
  readSync(STDERR, bytes, 0, bytes.length, from)
  return bytes.toString()
}
