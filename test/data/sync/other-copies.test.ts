// tundish sync into a copy that lost a table, that is of another project, or of an older version.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { TABLES } from '../../../src/data/sync/tables.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase, runStatement } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { type Project, startTestServer } from '../../support/server.ts'
import { titled } from '../../support/titled.ts'
import { inDuckDb, noDuckDb, readerOf } from './copies.ts'
import { checkEqual, filled, PROFILES, syncEnv } from './source.ts'

const server = await startTestServer()
const warehouse = await freshDatabase()
const folder = temporaryFolder()
after(async () => {
  await warehouse.drop()
  await server.stop()
})

const inSqlite = (file: string) => async (statement: string) => {
  const db = new DatabaseSync(join(folder, file))
  db.exec(statement)
  db.close()
}

const TARGETS = {
  sqlite: { to: `sqlite:${join(folder, 'copy.sqlite')}`, run: inSqlite('copy.sqlite'), skip: undefined },
  postgres: {
    to: warehouse.url,
    run: (statement: string) => runStatement(warehouse.url, statement.replace('table ', 'table tundish.')),
    skip: undefined,
  },
  duckdb: {
    to: `duckdb:${join(folder, 'copy.duckdb')}`,
    run: (statement: string) => inDuckDb(join(folder, 'copy.duckdb'), statement),
    skip: noDuckDb,
  },
}

/** Drops the tables of the copy. */
async function emptied(run: (statement: string) => Promise<unknown>): Promise<void> {
  for (const table of ['tundish_sync', 'sync', ...TABLES.map(({ name }) => name)])
    await run(`drop table ${table}`).catch(() => {})
}

describe('a table of a copy that was dropped', () => {
  for (const [name, { to, run, skip }] of Object.entries(TARGETS)) {
    test(titled(`${name}: the next run reads everything again`, skip), { skip: skip ?? false }, async () => {
      const project = await filled(server)
      const sync = () => tundishAgain(['sync', '--json', '--to', to], syncEnv(server, project))
      assert.equal((await sync()).code, 0)
      await run('drop table profiles')
      const again = await sync()
      assert.deepEqual([again.code, again.stderr], [0, ''])
      // All but the records of the last second, which the first run left to the next one.
      assert.ok(JSON.parse(again.stdout).records >= PROFILES, again.stdout)
      await checkEqual(server, project, readerOf(to))
    })
  }
})

test('a run that was interrupted before the server lost commits is continued, and removes what was lost with a sentence', async () => {
  const project = await filled(server)
  const to = `sqlite:${join(folder, 'interrupted.sqlite')}`
  const sync = async (sentence: RegExp) => {
    const { code, stderr } = await tundishAgain(['sync', '--to', to], syncEnv(server, project))
    assert.equal(code, 0, stderr)
    assert.match(stderr, sentence)
  }
  const [begun] = await server.db.query('select db_clock() as at')
  const lost = { record: 'profile', data: { id: 'lost', created_at: '2026-01-01T00:00:00Z' } }
  assert.equal((await project.post('/records', { records: [lost] })).status, 200)
  // The horizon may lag by a second.
  await sleep(1100)
  const cursors = [...(await project.get('/export')).text.matchAll(/^\{"cursor":"(.+)"\}$/gm)]
  await sync(/^$/)
  assert.equal((await readerOf(to)('profiles')).length, PROFILES + 2)
  await inSqlite('interrupted.sqlite')(`update tundish_sync set since = null, cursor = '${cursors.at(-1)![1]}'`)
  await server.db.query(`delete from profiles where project_id = $1 and id = 'lost'`, [project.id])
  await server.db.query(
    `update project_clocks set void_from = $2, void_until = db_clock() + interval '1 hour' where project_id = $1`,
    [project.id, begun!.at!],
  )
  await sync(/^The server has lost what was written since [^ ]+Z, by a failover or a restore\. .+ read again\.\n$/)
  await checkEqual(server, project, readerOf(to))
})

describe('a copy of a project that was created anew with the same id', () => {
  for (const [name, { to, run, skip }] of Object.entries(TARGETS)) {
    test(titled(`${name}: a sentence, and the next run has the rows of the new one alone`, skip), {
      skip: skip ?? false,
    }, async () => {
      await emptied(run)
      const project = await filled(server)
      const sync = async (sentence: RegExp) => {
        const { code, stderr } = await tundishAgain(['sync', '--to', to], syncEnv(server, project))
        assert.equal(code, 0, stderr)
        assert.match(stderr, sentence)
      }
      await sync(/^$/)
      const { text } = await project.get('/export')
      const cursor = /^\{"cursor":"(.+)"\}$/m.exec(text)![1]
      await server.db.query(`delete from profiles where project_id = $1 and id like 'p-%'`, [project.id])
      await server.db.query('update projects set created_at = db_clock() where id = $1', [project.id])
      // Also of a run that was interrupted, whose cursor is valid on a new server.
      const state = name === 'postgres' ? 'tundish.sync' : 'tundish_sync'
      if (name === 'sqlite') await run(`update ${state} set since = null, cursor = '${cursor}'`)
      // A copy by an older version does not know when its project was created.
      if (name === 'postgres') await run(`alter table sync drop column project_created_at`)
      await sync(
        /^This copy was of a former project "[^"]+": the server's was created at [^ ]+Z\. All rows were removed, and everything is read again\.\n$/,
      )
      await checkEqual(server, project, readerOf(to))
      await sync(/^$/)
    })
  }
})

describe('a copy of another project', () => {
  for (const [name, { to, run, skip }] of Object.entries(TARGETS)) {
    test(titled(`${name}: 1 and a sentence, also for a copy that an older version made`, skip), {
      skip: skip ?? false,
    }, async () => {
      await emptied(run)
      const project = await filled(server)
      const other = await filled(server)
      const sync = (of: Project) => tundishAgain(['sync', '--json', '--to', to], syncEnv(server, of))
      assert.equal((await sync(project)).code, 0)
      // A copy by an older version does not name its project; the next run adds it.
      for (const column of ['project', 'project_created_at'])
        await run(`alter table ${name === 'postgres' ? 'sync' : 'tundish_sync'} drop column ${column}`)
      assert.equal((await sync(project)).code, 0)
      const refused = await sync(other)
      assert.deepEqual([refused.code, refused.stdout], [1, ''])
      assert.equal(
        refused.stderr,
        `This copy is of the project "${project.id}", and the key is of "${other.id}": name another target, or give a key of that project.\n`,
      )
      await checkEqual(server, project, readerOf(to))
    })
  }
})

test('1 and a sentence for a SQLite file with a table of another program, which stays as it is', async () => {
  const project = await filled(server)
  await inSqlite('other.sqlite')('create table profiles (id integer primary key, mine text)')
  const to = `sqlite:${join(folder, 'other.sqlite')}`
  const refused = await tundishAgain(['sync', '--to', to], syncEnv(server, project))
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /other\.sqlite has a table "profiles" that is not of a copy: name another file\.\n$/)
  const db = new DatabaseSync(join(folder, 'other.sqlite'))
  assert.deepEqual(
    db
      .prepare("select name from pragma_table_info('profiles')")
      .all()
      .map(({ name }) => name),
    ['id', 'mine'],
  )
  db.close()
})
