// An import whose process is frozen holds up erasures, syncs and other imports for seconds only, and writes nothing.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readHorizon } from '../../../src/core/lists/horizon.ts'
import { freezeAtLock } from '../../support/cli.ts'
import { holding } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { importLines, type Line, line, textOf } from '../../support/imports.ts'
import { ok, type Project, startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const STOOD_STILL =
  'The import stood still for seconds while others waited for it, so the database ended it: nothing was written. Import again.\n'

const server = await startTestServer()
const folder = temporaryFolder()
after(() => server.stop())

const importHere = ({ id }: Project, lines: Line[]) => importLines(server.app, id, lines)

async function frozen(project: Project, lines: Line[], part: string) {
  const file = join(folder, `${project.id}.ndjson`)
  await writeFile(file, textOf(lines))
  return freezeAtLock(server.db, ['import', '--project', project.id, file], server.env, part)
}

test('frozen in its transaction', async () => {
  const project = await server.project()
  await importHere(project, [line.product(), line.profile({ email: 'ada@example.com' })])
  // Persons are locked first.
  const release = await holding(server.db, 'select from products where project_id = $1 for update', [project.id])
  const lines = [line.product({ name: 'Other' }), line.profile({ email: 'other@example.com' })]
  const thaw = await frozen(project, lines, 'import_product')
  await release()
  const [row] = await server.db.query('select db_clock() as now')

  await ok(server.api('/profiles/anonymize', { key: project.key, method: 'POST', body: { profile_ids: ['profile'] } }))
  await until('the horizon to pass', async () => {
    return Date.parse(await readHorizon(server.db, project.id)) > Date.parse(row!.now!)
  })
  assert.equal((await importHere(project, [line.product({ name: 'Third' })])).written, 1)

  assert.deepEqual(await thaw(), { code: 1, stderr: STOOD_STILL })
  const found = await server.db.query(
    `select name, email from products join profiles using (project_id) where project_id = $1`,
    [project.id],
  )
  assert.deepEqual(found, [{ name: 'Third', email: null }])
})

test('frozen while it waits for its turn', async () => {
  const project = await server.project()
  const release = await holding(server.db, 'select pg_advisory_xact_lock(7486, hashtext($1))', [project.organizationId])
  const thaw = await frozen(project, [line.profile()], 'pg_advisory_lock')
  await release()
  assert.equal((await importHere(project, [line.product()])).written, 1)
  assert.deepEqual(await thaw(), { code: 1, stderr: STOOD_STILL })
  assert.deepEqual(await server.db.query('select id from profiles where project_id = $1', [project.id]), [])
})

test('an import keeps its turn while the rejected lines are written to a slow disk', async () => {
  const project = await server.project()
  const turn = `
    select a.pid, a.query_start from pg_locks l join pg_stat_activity a using (pid)
    where l.locktype = 'advisory' and l.classid = 7486 and l.granted and a.datname = current_database()`
  const saveRejected = async () => {
    const [held] = await server.db.query(turn)
    await until('the import to go on sending', async () => {
      const [now] = await server.db.query(turn)
      assert.equal(now?.pid, held!.pid)
      return now!.query_start !== held!.query_start
    })
  }
  const options = { skipBadLines: true, saveRejected }
  assert.equal((await importLines(server.app, project.id, [line.profile(), '{}'], options)).written, 1)
})
