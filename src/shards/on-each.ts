// Runs a command of Tundish on every shard, each with its own settings.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Shard } from './shard.ts'

export interface Ran {
  shard: string
  exitCode: number
  output: string
}

// Of our own settings only the shard's; the rest of the environment as it is.
const OURS = /^(HOST|PORT|ADMIN_|DATA_DIR|DATABASE_|DIRECT_|READ_|STATEMENT_|MASTER_KEY|ERASURE_LEDGER|SIMULATOR_URL)/

/** The words `{shard}` in the command become the shard's name: `backup {shard}.backup`. */
export async function runOn(shard: Shard, words: readonly string[]): Promise<Ran> {
  const kept = Object.entries(process.env).filter(([name]) => !OURS.test(name))
  const [main] = [process.argv[1]!]
  const args = words.map((word) => word.replaceAll('{shard}', shard.name))
  const child = spawn(process.execPath, [...process.execArgv, main, ...args], {
    env: { ...Object.fromEntries(kept), ...shard.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (piece) => (output += piece))
  const [code] = await once(child, 'close')
  return { shard: shard.name, exitCode: code ?? 1, output }
}
