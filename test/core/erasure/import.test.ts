// An import and an erasure of the same people at the same time: whichever is first, nothing personal is left.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { importRecords } from '../../../src/data/ingest/load.ts'
import { insert } from '../../support/data.ts'
import { dump } from '../../support/database.ts'
import { type Project, startTestServer, type TestServer } from '../../support/server.ts'

const ROUNDS = 10
const MARK = 'zyx@marker.example'
const T = '2026-01-02T03:04:05Z'

describe('an import during an erasure', () => {
  let server: TestServer
  let project: Project
  before(async () => {
    server = await startTestServer()
    project = await server.project()
  })
  after(() => server.stop())

  /** A person's data again, under the names of this round. */
  const lines = (id: string, round: number) => {
    const session = `session-${round}`
    return [
      {
        record: 'profile',
        data: { id, created_at: T, email: MARK, phone: MARK, password_hash: MARK, integrations: { MARK } },
      },
      {
        record: 'session',
        data: { id: session, created_at: T, profile_id: id, ip: MARK, user_agent: MARK, query_params: { MARK } },
      },
      {
        record: 'reply',
        data: { session_id: session, element: { id: 'e', type: 'Input' }, screen: { id: 's', index: 0 }, value: MARK },
      },
      { record: 'customer', data: { external_id: `user-${round}`, profile_id: id, email: MARK } },
    ]
  }
  const bring = (id: string, round: number) => {
    const text = lines(id, round)
      .map((line) => JSON.stringify(line))
      .join('\n')
    const source = { name: 'file', stream: () => Readable.from([Buffer.from(text)]) }
    return importRecords(server.app, { projectId: project.id, live: true }, [source])
  }

  test('leaves nothing personal, in either order and in between', async () => {
    const started = performance.now()
    await bring('nobody-yet', ROUNDS)
    await project.post('/profiles/anonymize', { profile_ids: ['nobody-yet'] })
    const importMs = performance.now() - started
    let erasedByImport = 0
    for (let round = 0; round < ROUNDS; round++) {
      const id = `person-${round}`
      await insert(server.db, project, {
        profiles: [{ id, email: 'first@example.com' }],
        sessions: [{ id: `first-session-${round}`, profile_id: id, ip: MARK }],
      })
      const [result, response] = await Promise.all([
        bring(id, round),
        // From before the import's first word to behind its last.
        sleep((round / ROUNDS) * 1.5 * importMs).then(() => project.post('/profiles/anonymize', { profile_ids: [id] })),
      ])
      assert.equal(response.status, 200)
      assert.ok([0, 4].includes(result.erased), 'All of its lines, or none, came after the erasure.')
      if (result.erased > 0) erasedByImport++
    }
    assert.ok(erasedByImport > 0 && erasedByImport < ROUNDS, `${erasedByImport} of ${ROUNDS} imports came second.`)
    const left = (await dump(server.db)).split('\n').filter((line) => /zyx|MARK|first@/.test(line))
    assert.deepEqual(left, [])
  })
})
