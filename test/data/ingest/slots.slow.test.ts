// Imports leave connections to everything else, however many of them wait for each other.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startAdmin } from '../../support/admin.ts'
import { untilLocked } from '../../support/database.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../../support/events.ts'
import { line, textOf } from '../../support/imports.ts'

const events = await openEvents({ DATABASE_CONNECTIONS: '4', LOG_LEVEL: 'silent' })
const other = await events.another({ DATABASE_CONNECTIONS: '12' })
const admin = await startAdmin(events)
after(async () => {
  await admin.stop()
  await events.close()
})

test('the process goes on while imports wait for their turn; those that wait too long are told to try again', async () => {
  const { query, release } = await other.db.connect()
  await query('select pg_advisory_lock(7486, hashtext($1))', [ORGANIZATION])
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  const imports = ids.map((id) =>
    admin.call('POST', `/projects/${PROJECT}/import`, textOf([line.product({ id, name: id })])),
  )
  await untilLocked(other.db.query, 'pg_advisory_lock')
  const { status, body } = await admin.call('POST', `/projects/${PROJECT}/webhooks`, { url: 'http://127.0.0.1:1' })
  assert.equal(status, 200, JSON.stringify(body))
  const refused = await Promise.race(imports)
  assert.deepEqual([refused.status, refused.headers.get('x-error-code')], [503, 'too_many_imports'])
  release(true)
  const written = (await Promise.all(imports)).filter((one) => one.status === 200)
  assert.ok(written.length > 0)
  const stored = await other.db.query('select id from products where project_id = $1', [PROJECT])
  assert.equal(stored.length, written.length)
})
