// Runs a command of Tundish on every shard, each with its own settings.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { causeOf } from '../../lib/pg/errors.ts'
import type { Shard } from './shard.ts'
import { askShard, NoResponse } from './time-limit.ts'

export interface Ran {
  shard: string
  exitCode: number
  output: string
}

// Of our own settings only the shard's; the rest of the environment as it is.
const OURS = /^(HOST|PORT|ADMIN_|DATA_DIR|DATABASE_|DIRECT_|READ_|STATEMENT_|MASTER_KEY|ERASURE_LEDGER|SIMULATOR_URL)/

// How often the database of a shard is probed while a command runs there: a command may take long, silence may not.
const PROBE_MS = 10_000

/**
 * The words `{shard}` in the command become the shard's name: `backup {shard}.backup`. A shard whose database does not
 * respond is left out, and one that stops responding ends its command: the others have theirs.
 */
export async function runOn(shard: Shard, words: readonly string[]): Promise<Ran> {
  const silence = await silenceOf(shard)
  return silence === undefined ? await start(shard, words) : unanswered(shard, silence)
}

function unanswered({ name }: Shard, why: string, output = ''): Ran {
  process.stderr.write(`The shard ${name} cannot be reached (${why}): the command was not finished there.\n`)
  return { shard: name, exitCode: 1, output }
}

/** Why its database does not respond. A refusal is a response: the command has a sentence for it. */
async function silenceOf(shard: Shard): Promise<string | undefined> {
  try {
    await askShard(shard, ({ query }) => query('select 1'))
    return undefined
  } catch (error) {
    return error instanceof NoResponse ? causeOf(error) : undefined
  }
}

async function start(shard: Shard, words: readonly string[]): Promise<Ran> {
  const kept = Object.entries(process.env).filter(([name]) => !OURS.test(name))
  const main = process.argv[1]!
  const args = words.map((word) => word.replaceAll('{shard}', shard.name))
  const child = spawn(process.execPath, [...process.execArgv, main, ...args], {
    env: { ...Object.fromEntries(kept), ...shard.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (piece) => (output += piece))
  const ended = new AbortController()
  const silence = untilSilent(shard, ended.signal).then((why) => {
    if (why !== undefined) child.kill('SIGKILL')
    return why
  })
  const [code] = await once(child, 'close')
  ended.abort()
  const why = await silence
  return why === undefined ? { shard: shard.name, exitCode: code ?? 1, output } : unanswered(shard, why, output)
}

/** Resolves when the database no longer responds, with the reason, or when the command has ended. */
async function untilSilent(shard: Shard, ended: AbortSignal): Promise<string | undefined> {
  for (;;) {
    await sleep(PROBE_MS, undefined, { signal: ended }).catch(() => {})
    if (ended.aborted) return undefined
    const why = await silenceOf(shard)
    if (why !== undefined) return ended.aborted ? undefined : why
  }
}
