// The ledgers of erasures: the file is never behind the database. Erasing again by them: reapply.test.ts.
import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { insert } from '../../support/data.ts'
import { differences, dump } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { openProxy } from '../../support/proxy.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column } from '../../support/rows.ts'
import { type Project, startTestServer, type TestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { type Entry, emailOf, erase, people, read } from './ledgers.ts'

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

describe('the ledgers of erasures', () => {
  let folder: string
  before(() => {
    folder = temporaryFolder()
  })

  describe('of a server', () => {
    let server: TestServer
    let project: Project
    before(async () => {
      server = await startTestServer({ ERASURE_LEDGER: join(folder, 'deep', 'ledger.ndjson') })
      project = await server.project()
      await insert(server.db, project, people('a', 'b', 'c', ...Array.from({ length: 30 }, (_, n) => `p-${n}`)))
    })
    after(() => server.stop())

    test('are compared with each other by an operation, anew when either has changed', async () => {
      const own = await startTestServer({ ERASURE_LEDGER: join(folder, 'compared', 'ledger.ndjson') })
      try {
        const { key } = await own.db.tx((query) => createOperator(query, { name: 'ada', scope: 'read' }))
        const compared = async () => {
          const headers = { authorization: `Bearer ${key}` }
          const response = await fetch(`${own.adminUrl}/admin/v1/erasures/ledgers`, { headers })
          return Object.values((await response.json()) as object)
        }
        const shop = await own.project()
        await insert(own.db, shop, people('a', 'b'))
        assert.deepEqual(await compared(), [0, 0, 0, 0])
        await erase(shop, 'a')
        assert.deepEqual(await compared(), [1, 1, 0, 0])
        await erase(shop, 'b')
        assert.deepEqual(await compared(), [2, 2, 0, 0])
        // Not even counted while no erasure and no change of the file has happened.
        await own.db.query(`delete from erasures where profile_id = 'b'`)
        assert.deepEqual(await compared(), [2, 2, 0, 0])
        await own.db.query('insert into erasures (project_id, profile_id) values ($1, $2)', [shop.id, 'b'])
        const [line] = readFileSync(own.ledger, 'utf8').split('\n')
        appendFileSync(own.ledger, `${line!.replace('"a"', '"elsewhere"')}\n`)
        assert.deepEqual(await compared(), [2, 3, 1, 0])
        writeFileSync(own.ledger, `${line}\n`)
        assert.deepEqual(await compared(), [2, 1, 0, 1])
      } finally {
        await own.stop()
      }
    })

    test('get one line for each erased profile, without personal data, readable by their owner alone', async () => {
      await erase(project, 'b', 'a', 'b')
      await erase(project, 'b')
      const lines = read(server.ledger)
      assert.deepEqual(
        lines.map((line) => [Object.keys(line), line.project_id, line.profile_id]),
        ['b', 'a'].map((id) => [['project_id', 'profile_id', 'erased_at'], project.id, id]),
      )
      const { anonymized_at } = (await project.get('/profiles/a')).body
      assert.deepEqual(new Set(lines.map(({ erased_at }) => erased_at)), new Set([anonymized_at]))
      assert.match(anonymized_at, INSTANT)
      assert.equal(statSync(server.ledger).mode & 0o777, 0o600)
    })

    test('get whole lines from erasures at the same time, and behind a line that a crash cut off', async () => {
      appendFileSync(server.ledger, '{"project_id":"project-1","profi')
      await Promise.all(Array.from({ length: 30 }, (_, n) => eraseInTurn(`p-${n}`)))
      const [torn, ...others] = readFileSync(server.ledger, 'utf8').split('\n').slice(2, -1)
      assert.equal(torn, '{"project_id":"project-1","profi')
      const ids = others.filter(Boolean).map((line) => JSON.parse(line).profile_id)
      assert.deepEqual(ids.sort(), Array.from({ length: 30 }, (_, n) => `p-${n}`).sort())
    })

    /** Sends it again after a 503: on a busy machine the last of many may wait too long for the audit log. */
    const eraseInTurn = (id: string) =>
      until('the erasure', async () => {
        const { status, text } = await erase(project, id)
        assert.ok([200, 503].includes(status), text)
        return status === 200
      })

    test('get a line for a profile that was imported as erased, too', async () => {
      await insert(server.db, project, { profiles: [{ id: 'history', anonymized_at: '2020-01-01T00:00:00Z' }] })
      assert.equal((await erase(project, 'history')).status, 200)
      assert.match(readFileSync(server.ledger, 'utf8'), /"profile_id":"history"/)
    })

    test('`erasures export` prints the database’s, oldest first', async () => {
      const { code, stdout } = await tundishAgain(['erasures', 'export'], server.env)
      const lines = stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Entry)
      assert.equal(code, 0)
      assert.equal(lines.length, 33)
      assert.deepEqual(column(lines, 'erased_at'), lines.map(({ erased_at }) => erased_at).sort())
      const { stdout: json } = await tundishAgain(['erasures', 'export', '--json'], server.env)
      assert.deepEqual(JSON.parse(json), lines)
    })
  })

  for (const [what, name, response] of [
    ['500 for a folder', 'a-folder', [500, 'internal_error', 'Internal error.']],
    ['503 on a full disk', 'full', [503, 'database_unavailable', 'The disk of the server is full: try again.']],
  ] as const) {
    test(`${what} in the place of the file, and no profile is erased`, async () => {
      const ledger = join(folder, name)
      if (name === 'full') symlinkSync('/dev/full', ledger)
      else mkdirSync(ledger)
      // Without background work, which adds up counts between the two dumps.
      const server = await startTestServer({ ERASURE_LEDGER: ledger }, { worker: false })
      try {
        const project = await server.project()
        await insert(server.db, project, people('a'))
        const before = await dump(server.db)
        const { status, headers, body } = await erase(project, 'a')
        assert.deepEqual([status, headers['x-error-code'], body.message], response)
        assert.deepEqual(differences(before, await dump(server.db)), [])
      } finally {
        await server.stop()
      }
    })
  }

  test('the file has the line when the connection breaks at the commit, and the database has nothing', async () => {
    const database = await freshDatabase()
    const cutAt: { pattern: RegExp | undefined } = { pattern: undefined }
    const proxy = await openProxy(database.url, cutAt)
    const server = await startTestServer(
      { DATABASE_URL: proxy.url, ERASURE_LEDGER: join(folder, 'cut.ndjson') },
      { worker: false },
    )
    try {
      const project = await server.project()
      await insert(server.db, project, people('a'))
      cutAt.pattern = /commit/
      assert.equal((await erase(project, 'a')).status, 503)
      cutAt.pattern = undefined
      assert.deepEqual(column(read(server.ledger), 'profile_id'), ['a'])
      assert.equal(await emailOf(project, 'a'), 'a@example.com')
      assert.equal((await erase(project, 'a')).status, 200)
      assert.equal(read(server.ledger).length, 2)
    } finally {
      await server.stop()
      await proxy.cut()
      await database.drop()
    }
  })
})
