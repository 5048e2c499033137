// Freezes a command in a transaction, as SIGSTOP, a debugger or a suspended machine does.
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import type { Db } from '../../src/lib/pg/db.ts'
import { PATIENCE_MS, PROGRAM_ENV, program } from './cli.ts'
import { untilLocked } from './locks.ts'

/** Runs `lock` in a transaction that is committed when the returned function is called. */
export async function holding(db: Db, lock: string, params: string[]): Promise<() => Promise<void>> {
  const { query, release } = await db.connect()
  await query('begin')
  await query(lock, params)
  return async () => {
    await query('commit')
    release()
  }
}

/**
 * Starts `tundish ARGUMENTS...` and freezes it when it waits for a lock in a statement with `part` in its text. The returned
 * function lets it go on, and returns how it ended.
 */
export async function freezeAtLock(db: Db, args: string[], env: Record<string, string>, part: string) {
  const child = spawn(...program(...args), {
    env: { ...PROGRAM_ENV, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: PATIENCE_MS,
  })
  const stderr = text(child.stderr)
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  await untilLocked(db.query, part)
  child.kill('SIGSTOP')
  return async () => {
    child.kill('SIGCONT')
    return { code: await ended, stderr: await stderr }
  }
}
