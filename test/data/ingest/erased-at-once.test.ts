// Imports and erasures at the same time: one waits for the other, and nothing personal is left.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Db } from '../../../src/lib/pg/db.ts'
import { untilLocked } from '../../support/database.ts'
import { importLines, line } from '../../support/imports.ts'
import { silent } from '../../support/simulators.ts'
import { about, MARKER, openErasedImports, personal } from './erased-imports.ts'

const imports = await openErasedImports()
after(() => imports.stop())

test('an erasure and an import at once leave nothing personal, whichever is first', async () => {
  for (let round = 0; round < 12; round++) {
    const project = await imports.project()
    await imports.run(project, [line.profile({ email: MARKER }), line.profile({ id: 'other' })])
    const erasing = new Promise((resolve) => setTimeout(resolve, round * 4)).then(() =>
      imports.erase(project, 'profile'),
    )
    const [result] = await Promise.all([imports.run(project, about()), erasing])
    assert.equal(result.rejected, 0)
    assert.deepEqual(await imports.found(project), [], `round ${round}`)
  }
})

test('an import waits for an erasure under way, and then sees it', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile({ email: MARKER })])
  const { query, release } = await imports.db.connect()
  await query('begin')
  await query('select id from profiles where project_id = $1 for no key update', [project.id])
  const importing = imports.run(project, about())
  await untilLocked(imports.db.query, 'import_concerned')
  await query(
    `update profiles set anonymized_at = db_clock(), email = null, email_folded = null, phone = null, password_hash = null where project_id = $1`,
    [project.id],
  )
  await query('commit')
  release()
  assert.equal((await importing).erased, 4)
  assert.deepEqual(await imports.found(project), [])
})

test('a subscription waits for the erasure of its session, whose user agent its events show', async () => {
  const project = await imports.project()
  const lines = [line.profile(), line.profile({ id: 'other' }), line.session(personal.session), line.product()]
  await imports.run(project, lines)
  const { query, release } = await imports.db.connect()
  await query('begin')
  await query(`select id from profiles where project_id = $1 and id = 'profile' for update`, [project.id])
  const bought = line.subscription({ profile_id: 'other', session_id: 'session' })
  const importing = imports.run(project, [bought], { emitEvents: true })
  await untilLocked(imports.db.query, 'import_concerned')
  await query('update sessions set user_agent = null where project_id = $1', [project.id])
  await query('commit')
  release()
  assert.equal((await importing).written, 1)
  const events = await imports.rows('select data from events where project_id = $1', [project.id])
  assert.ok(events.length > 0 && events.every(({ data }) => !data!.includes(MARKER)))
})

test('an import that stops before its commit holds up an erasure of another person for seconds only', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile(), line.profile({ id: 'other', email: MARKER })])
  await imports.erase(project, 'profile')
  const stopped = Promise.withResolvers<void>()
  const goesOn = Promise.withResolvers<void>()
  const stopping: Db = {
    ...imports.db,
    async connect() {
      const connection = await imports.db.connect()
      const query = (async (statement, params) => {
        if (statement === 'commit') {
          stopped.resolve()
          await goesOn.promise
        }
        return connection.query(statement, params)
      }) as Db['query']
      return { ...connection, query }
    },
  }
  const imported = importLines({ db: stopping, log: silent }, project.id, about()).catch((error) => error)
  await stopped.promise
  await imports.erase(project, 'other')
  assert.deepEqual(await imports.found(project), [])
  goesOn.resolve()
  assert.ok((await imported) instanceof Error)
  assert.deepEqual(await imports.found(project), [])
})
