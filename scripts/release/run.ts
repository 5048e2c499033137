// Runs a program of the release, and reports what it printed if it fails.
import { spawnSync } from 'node:child_process'

interface RunOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
  input?: string | Buffer
}

/** Runs `program` to its end and returns its standard output. Throws with its output if it fails. */
export function run(program: string, args: readonly string[], { cwd, env, input }: RunOptions = {}): Buffer {
  const result = spawnSync(program, args, {
    cwd,
    env: env ?? process.env,
    ...(input !== undefined && { input }),
    maxBuffer: 1024 * 1024 * 1024,
  })
  if (result.error) throw new Error(`${program} cannot be run: ${result.error.message}`)
  if (result.status !== 0)
    throw new Error(`${program} ${args.join(' ')} ended with ${result.status}:\n${result.stderr}${result.stdout}`)
  return result.stdout
}

/** Whether a program is on the PATH. */
export function has(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
}
