// Time: waiting until something holds, a clock that only the test moves, a machine that sleeps, and moving the clock of a test's database.
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../src/lib/clock.ts'
import { openDb } from '../../src/lib/pg/db.ts'

const PATIENCE_MS = 300_000

/** Waits until `done` returns true, for `maxMs` at most; returns whether it did. */
export async function eventually(done: () => boolean | Promise<boolean>, maxMs = PATIENCE_MS): Promise<boolean> {
  const begin = performance.now()
  while (!(await done())) {
    const waitedMs = performance.now() - begin
    if (waitedMs > maxMs) return false
    // Rarer the longer it takes: most conditions are requests, which cost more than the wait.
    await sleep(Math.min(20 + waitedMs / 20, 100))
  }
  return true
}

/** The same, and throws if it did not. */
export async function until(what: string, done: () => boolean | Promise<boolean>, ms = PATIENCE_MS): Promise<void> {
  if (!(await eventually(done, ms))) throw new Error(`Waited ${ms} ms for ${what}.`)
}

export class HandClock implements Clock {
  #now = 0
  monotonicMs = () => this.#now
  sleep = async (ms: number) => this.advance(ms)
  advance(ms: number): void {
    this.#now += ms
  }
}

const { now } = Date
let sleptMs = 0

/** The machine sleeps for so long, as its own process sees it afterwards: the wall clock has gone on, the monotonic one has not. */
export function machineSleeps(t: TestContext, ms: number): void {
  sleptMs += ms
  Date.now = () => now() + sleptMs
  t.after(() => {
    sleptMs = 0
    Date.now = now
  })
}

/** The day of the next noon, and how far it is ahead, as an interval. */
export function nextNoon(): { day: string; ahead: string } {
  const noon = new Date()
  noon.setUTCHours(noon.getUTCHours() < 12 ? 12 : 36, 0, 0, 0)
  return { day: noon.toISOString().slice(0, 10), ahead: `${noon.getTime() - Date.now()} milliseconds` }
}

/** Sets the database's clock to the next noon, so that no day or month ends during a test. Returns its day. */
export async function setNoon(url: string): Promise<string> {
  const { day, ahead } = nextNoon()
  await setDatabaseClock(url, ahead)
  return day
}

/** Sets the database's clock ahead by an interval; `undefined` corrects it. Ends all sessions of the database. */
export async function setDatabaseClock(url: string, ahead: string | undefined): Promise<void> {
  const outside = openDb({ url, applicationName: 'outside', connections: 1, readConnections: 0 })
  try {
    const [row] = await outside.query('select current_database() as name')
    const setting = ahead === undefined ? 'reset tundish.clock_offset' : `set tundish.clock_offset = '${ahead}'`
    await outside.query(`alter database ${row!.name} ${setting}`)
    // A session reads the offset when it begins, and is only then known as one of this database.
    const [now] = await outside.query('select clock_timestamp() as at')
    const earlier = () =>
      outside.query(
        `select case when datname = current_database() then pg_terminate_backend(pid) end from pg_stat_activity
         where (datname = current_database() or datname is null and backend_type = 'client backend') and pid <> pg_backend_pid()
           and backend_start <= $1`,
        [now!.at!],
      )
    await until('the earlier sessions to end', async () => (await earlier()).length === 0)
  } finally {
    await outside.close()
  }
}
