// A command that is frozen while it erases holds up other erasures of these people for seconds only.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { freezeAtLock } from '../../support/cli.ts'
import { insert } from '../../support/data.ts'
import { holding } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { ok, startTestServer } from '../../support/server.ts'
import { people } from './ledgers.ts'

const server = await startTestServer()
const folder = temporaryFolder()
after(() => server.stop())

test('a frozen reapply of a ledger', async () => {
  const { id, organizationId, post } = await server.project()
  await insert(server.db, { id, organizationId }, people('before', 'again'))
  assert.equal((await post('/profiles/anonymize', { profile_ids: ['before'] })).status, 200)
  const ledger = join(folder, 'ledger.ndjson')
  await writeFile(ledger, `{"project_id":"${id}","profile_id":"again","erased_at":"2026-01-01T00:00:00Z"}\n`)
  // Every erasure of the project needs this row last, when it has locked the people.
  const release = await holding(server.db, 'select from erasure_marks where project_id = $1 for update', [id])
  const thaw = await freezeAtLock(server.db, ['erasures', 'reapply', ledger], server.env, 'erasure_marks')
  await release()
  await ok(post('/profiles/anonymize', { profile_ids: ['again'] }))
  assert.equal((await thaw()).code, 1)
})
