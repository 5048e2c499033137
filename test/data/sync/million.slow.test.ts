// A sync of many records while others write, killed twenty times: equal to the source, with flat memory. SYNC_RECORDS is
// the number of records (100,000; the full proof is 1,000,000), SYNC_TARGETS the targets (sqlite).
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Query } from '../../../src/lib/pg/types.ts'
import { spawnTundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { type Json, type Project, startTestServer, type TestServer } from '../../support/server.ts'
import { readerOf } from './copies.ts'

const RECORDS = Number(process.env['SYNC_RECORDS'] ?? 100_000)
const TARGETS = (process.env['SYNC_TARGETS'] ?? 'sqlite').split(',')
const KILLS = 20
const MAX_MEMORY_MB = 400
const MB = 1024

describe(`a sync of ${RECORDS} records`, { timeout: 3_600_000 }, () => {
  let server: TestServer
  let project: Project
  let folder: string
  /** Records a second by COPY. */
  let copied: number
  before(async () => {
    server = await startTestServer({ RATE_LIMIT: '0' })
    project = await server.project()
    folder = temporaryFolder()
    await fill(server, project, RECORDS)
    copied = Math.round(RECORDS / (await copySeconds(server)))
  })
  after(() => server.stop())

  const targets: Record<string, () => Promise<string>> = {
    sqlite: async () => `sqlite:${join(folder, 'killed.sqlite')}`,
    duckdb: async () => `duckdb:${join(folder, 'killed.duckdb')}`,
    postgres: async () => (await freshDatabase()).url,
  }
  for (const name of TARGETS) {
    test(`into ${name}, while others write, killed ${KILLS} times`, async (t) => {
      const target = await targets[name]!()
      const writing = new AbortController()
      const writer = write(writing.signal)
      const beganMs = performance.now()
      const killed = await killAgainAndAgain(target)
      writing.abort()
      await writer
      const last = await ended(start(target))
      const peakMb = Math.max(killed.peakMb, last.peakMb)
      const seconds = (performance.now() - beganMs) / 1000
      assert.equal(last.code, 0)
      // The horizon may lag by a second; what came behind it is for one run more.
      await sleep(1100)
      assert.equal((await ended(start(target))).code, 0)
      await checkEqual(target)
      assert.ok(peakMb < MAX_MEMORY_MB, `${peakMb} MB`)
      t.diagnostic(
        `${name}: ${Math.round(RECORDS / seconds)} records/s with all kills, ${Math.round(peakMb)} MB; runs of up to ${killed.longestMs} ms; COPY: ${copied} records/s`,
      )
    })
  }

  function start(target: string): ChildProcess {
    return spawnTundish(['sync', '--to', target], { SYNC_URL: server.url, SYNC_KEY: project.key }, [
      'ignore',
      'ignore',
      'inherit',
    ])
  }

  /** Kills runs at moments that are spread over a whole one, which gets longer the more often it begins anew. */
  async function killAgainAndAgain(target: string): Promise<{ longestMs: number; peakMb: number }> {
    const longestMs = Math.round(Math.max(1500, RECORDS / 50))
    let peakMb = 0
    for (let kills = 0; kills < KILLS; kills += 1) {
      const child = start(target)
      const exit = ended(child)
      await sleep(500 + (longestMs * (kills + 1)) / KILLS)
      child.kill('SIGKILL')
      peakMb = Math.max(peakMb, (await exit).peakMb)
    }
    return { longestMs, peakMb }
  }

  async function write(signal: AbortSignal): Promise<void> {
    for (let n = 0; !signal.aborted; n += 1) {
      await server.db.tx(async (query) => {
        await query('select begin_write($1)', [project.id])
        await query(
          `update profiles set country = 'C' || $2, updated_at = greatest(db_clock(), updated_at + interval '1 microsecond')
           where project_id = $1 and id = any($3)`,
          [project.id, String(n), Array.from({ length: 5 }, (_, k) => `p-${(n * 7919 + k * 104_729) % (RECORDS / 2)}`)],
        )
      })
      await sleep(5)
    }
  }

  async function checkEqual(target: string): Promise<void> {
    const read = readerOf(target)
    for (const [table, columns] of Object.entries({
      profiles: ['id', 'email', 'country', 'updated_at'],
      transactions: ['id', 'profile_id', 'currency', 'price', 'updated_at'],
    })) {
      const rows = await server.db.query(`select ${columns} from ${table} where project_id = $1`, [project.id])
      assert.equal(rows.length, RECORDS / 2)
      assert.equal(fingerprint(await read(table), columns), fingerprint(rows, columns), table)
    }
  }
})

/** Independent of the order of rows. */
function fingerprint(rows: Json[], columns: string[]): string {
  const lines = rows.map((row) => columns.map((name) => comparable(name, row[name])).join('|')).sort()
  return createHash('sha256').update(lines.join('\n')).digest('hex')
}

/** Targets write instants in different ways, and some readers keep milliseconds only. */
function comparable(name: string, value: unknown): string {
  if (name !== 'updated_at') return String(value)
  return (value instanceof Date ? value : new Date(String(value).replace(/\+00$/, 'Z'))).toISOString()
}

/** How a run ended, and the most memory it had. */
async function ended(child: ChildProcess): Promise<{ code: number | null; peakMb: number }> {
  let peakMb = 0
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const watch = setInterval(() => {
    try {
      const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
      peakMb = Math.max(peakMb, Number(kb ?? 0) / MB)
    } catch {
      // It has just ended, or there is no /proc here.
    }
  }, 100)
  const code = await exit
  clearInterval(watch)
  return { code, peakMb }
}

function fill({ db }: TestServer, { id }: Project, records: number): Promise<void> {
  const at = `timestamptz '2026-01-01' + n * interval '1 millisecond'`
  const from = `from generate_series(0, ${records / 2 - 1}) n`
  return atLeisure(db, async (query) => {
    await query(
      `insert into profiles (project_id, id, created_at, updated_at, email, email_folded)
       select $1, 'p-' || n, ${at}, ${at}, 'p' || n || '@example.com', 'p' || n || '@example.com' ${from}`,
      [id],
    )
    await query(
      `insert into transactions (project_id, id, created_at, updated_at, profile_id, currency, price)
       select $1, 't-' || n, ${at}, ${at}, 'p-' || n, 'USD', n ${from}`,
      [id],
    )
    await query('analyze')
  })
}

/** How long PostgreSQL takes for the same records by itself: out into files by COPY, and from these into other tables. */
async function copySeconds({ db }: TestServer): Promise<number> {
  const folder = temporaryFolder()
  // PostgreSQL writes there; if the tests run as root, it has another user.
  chmodSync(folder, 0o777)
  const beganMs = performance.now()
  await atLeisure(db, async (query) => {
    for (const table of ['profiles', 'transactions']) {
      await query(`copy ${table} to '${join(folder, table)}'`)
      await query(`create table copied_${table} (like ${table} including indexes)`)
      await query(`copy copied_${table} from '${join(folder, table)}'`)
    }
  })
  const seconds = (performance.now() - beganMs) / 1000
  for (const table of ['profiles', 'transactions']) await db.query(`drop table copied_${table}`)
  return seconds
}

/** A transaction whose statements may take as long as they do for a million rows. */
function atLeisure(db: TestServer['db'], work: (query: Query) => Promise<void>): Promise<void> {
  return db.tx(async (query) => {
    await query('set local statement_timeout = 0')
    await work(query)
  })
}
