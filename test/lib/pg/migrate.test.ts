// Several processes migrate one database: one does it, the others wait for it, however long it takes. Statements wait for none.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate, migrations } from '../../../src/lib/pg/migrate.ts'
import { setUpDb, untilLocked } from '../../support/database.ts'
import { until } from '../../support/time.ts'

const fresh = setUpDb({ connections: 4 })

/** The address of the database, with settings of the session. */
const withOptions = (options: string) =>
  `${fresh.url}${fresh.url.includes('?') ? '&' : '?'}options=${encodeURIComponent(options)}`

test('a migration that waits has more time than the statement timeout of its role', async () => {
  const held = await fresh.db.connect()
  await held.query('select pg_advisory_lock(7482)')
  const migrating = migrate(withOptions('-c statement_timeout=1s'))
  const failed = migrating.then(
    () => undefined,
    (error: Error) => error,
  )
  const isLate = untilLocked(fresh.db.query, 'pg_advisory_xact_lock', 1.5)
  await Promise.race([isLate, failed])
    .then((error) => assert.equal(error, undefined))
    .finally(() => held.release(true))
  assert.deepEqual(await migrating, [])
})

// The tables of migration 7, and one with a reference to them; its references need a lock on other tables.
const CREDITS = 'top_ups units clocks rules accounts grants holds entries keys'
  .split(' ')
  .map((name) => `credit_${name}`)

// Other files migrate their own databases of the same server.
const OWN_LOCKS = `
  select from pg_locks where locktype = 'advisory' and objid = 7482
    and database = (select oid from pg_database where datname = current_database())`

test('a migration that waits for a table does not keep others from using it', async () => {
  await fresh.db.query(`drop table ${CREDITS.join(', ')}`)
  await fresh.db.query('delete from schema_migrations where version = 7')
  const writer = await fresh.db.connect()
  await writer.query('begin')
  await writer.query('update organizations set name = name')
  const sentences: string[] = []
  const migrating = migrate(fresh.url, {}, (sentence) => sentences.push(sentence))
  try {
    await untilLocked(fresh.db.query, 'credit_units')
    await fresh.db.query('update organizations set name = name')
    await until('a sentence', () => sentences.length > 0)
    // During the pause it holds no lock: one that outlives a transaction would stay on a connection of a pooler.
    assert.deepEqual(await fresh.db.query(OWN_LOCKS), [])
  } finally {
    await writer.query('commit')
    writer.release()
  }
  assert.deepEqual(await migrating, [7])
  assert.match(
    sentences[0]!,
    /^Migration 7 \(credits\) needs a table that another connection keeps: trying again in 1 s\.$/,
  )
})

/** Undoes migration 242, which changes three tables. */
async function undoFigures(): Promise<void> {
  await fresh.db.query(`alter table figures_sales drop column gross_unvalued, drop column refunded_unvalued,
    drop column charged_back_unvalued`)
  await fresh.db.query(
    'alter table figures_declines drop column amount_unvalued, drop column recovered_amount_unvalued',
  )
  await fresh.db.query('alter table figures_spend drop column spent_unvalued')
  await fresh.db.query('delete from schema_migrations where version = 242')
}

test('a migration that waits for a request that waits for it gives way, and is tried again', async () => {
  await undoFigures()
  const request = await fresh.db.connect()
  await request.query('begin')
  await request.query('select from figures_declines')
  const migrating = migrate(fresh.url)
  await untilLocked(fresh.db.query, 'figures_declines')
  await request.query('select from figures_sales')
  await request.query('commit')
  request.release()
  assert.deepEqual(await migrating, [242])
})

test('a migration that PostgreSQL ends because of a deadlock is tried again', async () => {
  await undoFigures()
  const first = await fresh.db.connect()
  const request = await fresh.db.connect()
  await first.query('begin')
  await first.query('select from figures_declines')
  await request.query('begin')
  await request.query('select from figures_spend')
  const migrating = migrate(withOptions('-c deadlock_timeout=50ms'))
  await untilLocked(fresh.db.query, 'figures_declines')
  const waiting = request.query('select from figures_sales')
  await first.query('commit')
  first.release()
  await waiting
  await request.query('commit')
  request.release()
  assert.deepEqual(await migrating, [242])
})

test('a start that waits for another process to migrate says so after three seconds', async () => {
  const held = await fresh.db.connect()
  await held.query('begin')
  await held.query('select pg_advisory_xact_lock(7482)')
  const sentences: string[] = []
  const migrating = migrate(fresh.url, {}, (sentence) => sentences.push(sentence))
  await until('a sentence', () => sentences.length > 0).finally(() => held.release(true))
  assert.deepEqual(await migrating, [])
  assert.match(sentences[0]!, /^Another process is migrating the database: waiting for it\./)
})

test('every migration has its own number', async () => {
  const versions = (await migrations()).map(({ version }) => version)
  assert.deepEqual(
    versions.filter((version, n) => versions.indexOf(version) !== n),
    [],
  )
})
