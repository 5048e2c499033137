// Several processes migrate one database: one does it, the others wait for it, however long it takes.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Db, openDb } from '../../../src/lib/pg/db.ts'
import { migrate, migrations } from '../../../src/lib/pg/migrate.ts'
import { untilLocked } from '../../support/locks.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

let database: FreshDatabase
let db: Db
before(async () => {
  database = await freshDatabase()
  db = openDb({ url: database.url, applicationName: 'test', connections: 2 })
})
after(async () => {
  await db.close()
  await database.drop()
})

test('a migration that waits has more time than the statement timeout of its role', async () => {
  const held = await db.connect()
  await held.query('select pg_advisory_lock(7482)')
  const separator = database.url.includes('?') ? '&' : '?'
  const options = encodeURIComponent('-c statement_timeout=1s')
  const migrating = migrate(`${database.url}${separator}options=${options}`)
  const failed = migrating.then(
    () => undefined,
    (error: Error) => error,
  )
  const isLate = untilLocked(db.query, 'pg_advisory_lock', 1.5)
  await Promise.race([isLate, failed])
    .then((error) => assert.equal(error, undefined))
    .finally(() => held.release(true))
  assert.deepEqual(await migrating, [])
})

test('every migration has a number of its own', async () => {
  const versions = (await migrations()).map(({ version }) => version)
  assert.deepEqual(
    versions.filter((version, n) => versions.indexOf(version) !== n),
    [],
  )
})
