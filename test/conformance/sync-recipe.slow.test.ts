// Runs the sync recipe of docs/data-api.md unchanged: first everything, then the changes, then nothing.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { BASICS, insert } from '../support/data.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startTestServer } from '../support/server.ts'

const run = promisify(execFile)
const PAGE = readFileSync(join(import.meta.dirname, '../../docs/data-api.md'), 'utf8')

const server = await startTestServer()
const project = await server.project()
const folder = temporaryFolder()
writeFileSync(join(folder, 'sync.mjs'), /```js\n([\s\S]+?)```/.exec(PAGE)![1]!)
after(() => server.stop())

test('the recipe brings everything once, then each change once', async () => {
  const profiles = Array.from({ length: 1100 }, (_, n) => ({ id: `profile-${n}` }))
  await insert(server.db, project, { ...BASICS, subscriptions: [{ id: 'sub' }] })
  await insert(server.db, project, { profiles })
  const first = await sync()
  assert.deepEqual(new Set(first).size, first.length)
  const expected = [
    'profiles profile',
    ...profiles.map(({ id }) => `profiles ${id}`),
    'sessions session',
    'subscriptions sub',
  ]
  assert.deepEqual([...first].sort(), expected.sort())
  const { status } = await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
  assert.equal(status, 200)
  assert.deepEqual(await sync(), ['profiles profile', 'subscriptions sub'])
  assert.deepEqual(await sync(), [])
})

/** The output of the recipe; the horizon may lag by a second. */
async function sync(): Promise<string[]> {
  await sleep(1_100)
  const env = { PATH: process.env['PATH'], API: `${server.url}/public/v1`, KEY: project.key }
  const { stdout } = await run(process.execPath, ['sync.mjs'], { cwd: folder, env, timeout: 30_000 })
  return stdout.split('\n').filter(Boolean)
}
