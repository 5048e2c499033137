// After an old copy was restored, people are erased again by the ledger, also those whom only the ledger knows as erased.
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { tundish } from '../../support/cli.ts'
import { insert } from '../../support/data.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { type Project, startTestServer, type TestServer } from '../../support/server.ts'
import { emailOf, erase, people, read } from './ledgers.ts'

let folder: string
before(() => {
  folder = temporaryFolder()
})

test('after an old copy was restored, reapplying erases again, for good', async () => {
  const original = await freshDatabase()
  const ledger = join(folder, 'restored.ndjson')
  const settings = { DATABASE_URL: original.url, ERASURE_LEDGER: ledger }
  const first = await startTestServer(settings, { worker: false })
  const { env } = first
  const { id, organizationId, key } = await first.project()
  await insert(first.db, { id, organizationId }, people('before', 'between', 'never'))
  const call = (server: TestServer): Project => ({
    ...{ id, organizationId, key },
    get: (path) => server.api(path, { key }),
    post: (path, body) => server.api(path, { key, method: 'POST', body }),
  })
  await erase(call(first), 'before')
  await first.stop()
  // The backup, and what happens after it.
  const backup = await freshDatabase(original)
  const second = await startTestServer({ ...env, ERASURE_LEDGER: ledger }, { worker: false })
  await insert(second.db, { id, organizationId }, people('later'))
  assert.equal((await erase(call(second), 'between', 'later')).status, 200)
  await second.stop()
  const exported = await tundishAgain(['erasures', 'export'], { ...env, ERASURE_LEDGER: ledger })
  const lines = read(ledger)

  const restored = { ...env, DATABASE_URL: backup.url, ERASURE_LEDGER: ledger }
  writeFileSync(
    join(folder, 'more.ndjson'),
    `not JSON\n{"project_id":"elsewhere","profile_id":"x","erased_at":"2026-01-01T00:00:00Z"}\n`,
  )
  const files = [ledger, join(folder, 'more.ndjson')]
  const { code, stdout } = await tundishAgain(['erasures', 'reapply', ...files, '--json'], restored)
  const { unreadable, ...result } = JSON.parse(stdout)
  assert.deepEqual([code, result], [1, { erased: 1, already_erased: 1, unknown: 2 }])
  assert.equal(unreadable.length, 1)
  assert.match(unreadable[0], /more\.ndjson:1: /)

  const again = await tundishAgain(['erasures', 'reapply', '--json'], restored)
  assert.deepEqual(
    [again.code, JSON.parse(again.stdout)],
    [0, { erased: 0, already_erased: 2, unknown: 1, unreadable: [] }],
  )
  // The ledger that the backup brought back has everybody again, with the time of the first erasure.
  assert.equal((await tundishAgain(['erasures', 'export'], restored)).stdout, exported.stdout)
  const all = new Set(read(ledger).map((line) => JSON.stringify(line)))
  assert.deepEqual(all, new Set(lines.map((line) => JSON.stringify(line))))

  const profile = (name: string) =>
    JSON.stringify({
      record: 'profile',
      data: { id: name, created_at: '2026-01-01T00:00:00Z', email: `${name}@example.com` },
    })
  const imported = await tundish(
    ['import', '--project', id, '--json', '-'],
    restored,
    ['before', 'between', 'later', 'never', 'new'].map(profile).join('\n'),
  )
  assert.equal(JSON.parse(imported.stdout).erased, 3, imported.stderr)
  const server = await startTestServer(restored, { worker: false })
  const emails = await Promise.all(
    ['before', 'between', 'later', 'never', 'new'].map((name) => emailOf(call(server), name)),
  )
  assert.deepEqual(emails, [null, null, null, 'never@example.com', 'new@example.com'])
  await server.stop()
  await Promise.all([original.drop(), backup.drop()])
})

test('refuses a ledger that does not exist, and a folder', async () => {
  const database = await freshDatabase()
  const env = { DATABASE_URL: database.url, MASTER_KEY: Buffer.alloc(32).toString('base64'), DATA_DIR: folder }
  const { code, stderr } = await tundishAgain(['erasures', 'reapply', join(folder, 'nowhere')], env)
  assert.deepEqual([code, stderr], [1, `There is no readable ledger at ${join(folder, 'nowhere')}.\n`])
  const ofFolder = await tundishAgain(['erasures', 'reapply', folder], env)
  assert.deepEqual([ofFolder.code, ofFolder.stderr], [1, `${folder} cannot be read: it is a folder (EISDIR).\n`])
  await database.drop()
  assert.ok(!existsSync(join(folder, 'nowhere')))
})

test('reapplying wipes what a program of an older version left, because it did not know the column', async () => {
  const database = await freshDatabase()
  const server = await startTestServer(
    { DATABASE_URL: database.url, ERASURE_LEDGER: join(folder, 'older.ndjson') },
    { worker: false },
  )
  try {
    const project = await server.project()
    await insert(server.db, project, people('erased', 'never'))
    assert.equal((await erase(project, 'erased')).status, 200)
    // A column that came later is not in the rule of erased rows.
    await server.db.query('alter table profiles drop constraint profiles_check')
    await server.db.query(`update profiles set phone = '+49 30 1234' where project_id = $1`, [project.id])
    const { code } = await tundishAgain(['erasures', 'reapply', '--json'], server.env)
    assert.equal(code, 0)
    const phoneOf = async (id: string) => (await project.get(`/profiles/${id}`)).body.phone
    assert.deepEqual([await phoneOf('erased'), await phoneOf('never')], [null, '+49 30 1234'])
  } finally {
    await server.stop()
    await database.drop()
  }
})
