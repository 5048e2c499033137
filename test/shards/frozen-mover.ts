// A mover that stands still at a step, as on a machine that is frozen, and is continued or killed later.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { PROGRAM_ENV } from '../support/cli.ts'
import type { Cluster } from '../support/cluster.ts'
import { until } from '../support/time.ts'

/** The steps, by the statement before which the mover stands still; the number is that of the statement among its like. */
export const STEPS = {
  'before the mark': ['^create subscription', 1],
  'before its keys end': ['^update secret_keys set expires_at = db_clock', 1],
  'when its keys have ended': ['^select 1 from orders where organization_id = .* lease_until >', 1],
  'before the commit on the new shard': ['^commit', 3],
  'after the commit on the new shard': ['^select 1 from instance where name = .* and value = ', 1],
  'when the old rows are deleted, before the commit': ['^delete from instance where name = any', 1],
} as const
export type Step = keyof typeof STEPS

// One that stands still after its test has failed would never end.
const movers: ChildProcess[] = []
after(() => {
  for (const mover of movers) mover.kill('SIGKILL')
})

/** Starts a mover and returns when it stands still at the step. */
export async function freeze(settings: string, step: Step, from: string, to: string) {
  const [pattern, number] = STEPS[step]
  const program = join(import.meta.dirname, 'stopping-mover.ts')
  const args = ['--disable-warning=ExperimentalWarning', program, settings, from, to, pattern, String(number)]
  const child = spawn(process.execPath, args, { env: PROGRAM_ENV, stdio: ['ignore', 'ignore', 'pipe'] })
  movers.push(child)
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  const ended = once(child, 'close')
  await until(`the mover to stand still ${step}`, () => {
    assert.equal(child.exitCode, null, errors)
    return /^State:\s+T/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8'))
  })
  return {
    async end(signal: 'SIGCONT' | 'SIGKILL') {
      child.kill(signal)
      const [code] = await ended
      return { code, errors }
    },
  }
}

const SESSIONS = `pg_stat_activity where application_name = 'tundish shards'`

/** Ends its connections, as a network does whose other end is silent for long. */
export async function cutOff(...clusters: Cluster[]): Promise<void> {
  for (const { query } of clusters) await query(`select pg_terminate_backend(pid) from ${SESSIONS}`)
  await untilDisconnected(...clusters)
}

/** Waits until PostgreSQL has noticed that its connections ended, as those of a process that was killed. */
export async function untilDisconnected(...clusters: Cluster[]): Promise<void> {
  for (const { query } of clusters)
    await until('its sessions to end', async () => (await query(`select 1 from ${SESSIONS}`)).length === 0)
}
