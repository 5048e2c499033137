// A program that writes profiles of a project in slow transactions, as importers do, and prints what it committed:
// URL PROJECT NAME MILLISECONDS. Each line of its output is a list of [id, updated_at].
import { setTimeout as sleep } from 'node:timers/promises'
import { openDb } from '../../../src/lib/pg/db.ts'
import type { Query } from '../../../src/lib/pg/types.ts'
import { instantFromPg } from '../../../src/lib/time.ts'

const AT_ONCE = 4
// All writers write to these, so that rows change repeatedly.
const SHARED = 12
const LONGEST_PAUSE_MS = 350
// Four pauses of half the longest on average. A slow machine still makes as many rounds as usual in the given time.
const USUAL_TRANSACTION_MS = 700

const pause = () => sleep(Math.random() * LONGEST_PAUSE_MS)
const INSERT = `
  insert into profiles as p (project_id, id, created_at, updated_at)
  values ($1, $2, db_clock(), greatest(db_clock(), $3)) returning updated_at`
const UPSERT = `
  ${INSERT.replace('returning updated_at', '')}
  on conflict (project_id, id) do update
  set updated_at = greatest(db_clock(), $3, p.updated_at + interval '1 microsecond') returning updated_at`

const [url, project, name, milliseconds] = process.argv.slice(2) as [string, string, string, string]
const db = openDb({ url, applicationName: 'slow writer', connections: AT_ONCE })
const end = performance.now() + Number(milliseconds)
const minRounds = Math.ceil(Number(milliseconds) / USUAL_TRANSACTION_MS)

/** Rolls a transaction back on purpose. */
class RolledBack extends Error {}

await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => write(`${name}-${n}`)))
await db.close()

async function write(writer: string): Promise<void> {
  for (let round = 0; round < minRounds || performance.now() < end; round++) {
    const committed = await db
      .tx((query) => transaction(query, `${writer}-${round}`))
      .catch((error) => {
        if (!(error instanceof RolledBack)) throw error
      })
    if (committed) process.stdout.write(`${JSON.stringify(committed)}\n`)
  }
}

/** A transaction with pauses before its stamps, between them, and before its end; one in eight is rolled back. */
async function transaction(query: Query, id: string) {
  await pause()
  const [{ base } = {}] = await query('select begin_write($1) as base', [project])
  const written: [string, string][] = []
  await pause()
  for (const [target, sql] of [
    [id, INSERT],
    [`shared-${Math.floor(Math.random() * SHARED)}`, UPSERT],
  ] as const) {
    const [row] = await query(sql, [project, target, base!])
    written.push([target, instantFromPg(row!.updated_at!)])
    await pause()
  }
  if (Math.random() < 1 / 8) throw new RolledBack()
  return written
}
