// tundish sync into a PostgreSQL database that others use: its role has few rights, and queries of others are not held up.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { postgresTarget } from '../../../src/data/sync/postgres.ts'
import { TABLES } from '../../../src/data/sync/tables.ts'
import { freshDatabase, runStatement } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { startTestServer } from '../../support/server.ts'
import { readerOf } from './copies.ts'
import { checkEqual, filled, PROFILES, syncEnv } from './source.ts'

const server = await startTestServer()
const warehouse = await freshDatabase()
const ROLE = `analyst_${process.pid}`
after(async () => {
  await warehouse.drop()
  await runStatement(process.env['TUNDISH_TEST_DATABASE']!, `drop role if exists ${ROLE}`)
  await server.stop()
})

const asRole = (password = 'p%40zyx') => Object.assign(new URL(warehouse.url), { username: ROLE, password }).href

test('a role that may not create the schema is refused with a sentence, and uses its own schema', async () => {
  const project = await filled(server)
  await runStatement(warehouse.url, `create role ${ROLE} login password 'p@zyx'`)
  const sync = (to: string) => tundishAgain(['sync', '--to', to], syncEnv(server, project))
  const refused = await sync(asRole())
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /^The database of the copy cannot be used \(permission denied for database .+\)\.\n$/)
  await runStatement(warehouse.url, `create schema tundish authorization ${ROLE}`)
  const first = await sync(asRole())
  assert.deepEqual([first.code, first.stderr], [0, ''])
  assert.match(first.stdout, new RegExp(`^${PROFILES + 9} records stored in postgres`))
  await checkEqual(server, project, readerOf(warehouse.url))
})

test('a run does not wait for a query of another that is still open, and adds a column that is missing', async () => {
  const project = await filled(server)
  await runStatement(warehouse.url, 'delete from tundish.sync')
  const reader = new pg.Client({ connectionString: warehouse.url })
  await reader.connect()
  try {
    await reader.query('begin')
    await reader.query('select count(*) from tundish.profiles')
    const run = await tundishAgain(['sync', '--to', asRole()], syncEnv(server, project))
    assert.deepEqual([run.code, run.stderr], [0, ''])
  } finally {
    await reader.end()
  }
  await runStatement(
    warehouse.url,
    'alter table tundish.profiles drop column locale; update tundish.sync set since = null',
  )
  assert.equal((await tundishAgain(['sync', '--to', asRole()], syncEnv(server, project))).code, 0)
  await checkEqual(server, project, readerOf(warehouse.url))
})

test('1 and one sentence when the database of the copy refuses a record', async () => {
  const project = await filled(server)
  await runStatement(
    warehouse.url,
    `delete from tundish.sync; alter table tundish.profiles add constraint theirs check (id not like 'p%') not valid`,
  )
  const { code, stderr } = await tundishAgain(['sync', '--to', asRole()], syncEnv(server, project))
  await runStatement(warehouse.url, 'alter table tundish.profiles drop constraint theirs')
  assert.equal(code, 1)
  assert.match(
    stderr,
    /^The database of the copy refused a batch \(23514; table profiles, rule theirs\): nothing of it was stored\..+\n$/,
  )
})

test('a password is not shown, wherever the address has it', async () => {
  const project = await filled(server)
  const env = syncEnv(server, project)
  await runStatement(warehouse.url, 'delete from tundish.sync')
  const inQuery = new URL(asRole(''))
  inQuery.searchParams.append('password', 'p@zyx')
  for (const to of [asRole(), inQuery.href]) {
    const { stdout, code } = await tundishAgain(['sync', '--to', to], env)
    assert.equal(code, 0)
    assert.match(stdout, /postgres(ql)?:\/\//)
    assert.doesNotMatch(stdout, /zyx/)
  }
})

test('of two syncs that begin a copy at the same time one is stopped', async () => {
  await runStatement(warehouse.url, 'drop schema tundish cascade')
  const targets = [postgresTarget(warehouse.url), postgresTarget(warehouse.url)]
  const [table] = TABLES
  const batch = new Map([[table!, new Map([['fun_1', [{ id: 'fun_1' }]]])]])
  const after = { url: server.url, since: null, cursor: 'next', records: 1 }
  await Promise.all(targets.map((target) => target.open()))
  const outcomes = await Promise.allSettled(targets.map((target) => target.store(batch, undefined, after)))
  await Promise.all(targets.map((target) => target.close()))
  const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.message] : []))
  assert.equal(errors.length, 1)
  assert.match(errors[0], /^Another sync is writing to this copy/)
})
