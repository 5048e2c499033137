// tundish import api --follow: what changes at the source changes here within seconds, until Ctrl-C; then both are equal.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { jsonOf, spawnTundish, tundish } from '../../../support/cli.ts'
import type { Project } from '../../../support/server.ts'
import { until } from '../../../support/time.ts'
import { checkCopied, importLines, openShop, openTarget } from './api-imports.ts'

const shop = await openShop(20)
after(() => shop.stop())

test('changes, new records and erasures at the source are followed until Ctrl-C, and then nothing differs', async () => {
  const target = await openTarget(shop, 'followed')
  const { from, keyFile, billingFrom, billingKeyFile, server, source } = shop
  const billing = ['--billing-from', billingFrom, '--billing-key-file', billingKeyFile]
  const args = ['import', 'api', '--json', '--from', from, '--key-file', keyFile, '--project', target.id, ...billing]
  const { child, output, ended, isFollowing } = follow(args, target)
  await until('the first pass to be complete', isFollowing)

  const [changed, erased] = (await source.get('/profiles', { limit: '2' })).body.data.map(
    ({ id }: { id: string }) => id,
  )
  await server.db.tx(async (query) => {
    await query('select begin_write($1)', [source.id])
    await query(
      `update profiles set country = 'NZ', updated_at = greatest(db_clock(), updated_at + interval '1 microsecond')
       where project_id = $1 and id = $2`,
      [source.id, changed],
    )
  })
  const profile = { id: 'late', created_at: new Date().toISOString(), country: 'NO' }
  await importLines(server, source.id, [{ record: 'profile', data: profile }], '?live=true')
  const erase = { key: source.key, method: 'POST', body: { profile_ids: [erased] } }
  assert.equal((await server.api('/profiles/anonymize', erase)).status, 200)

  const here = async (id: string) => (await target.get(`/profiles/${id}`)).body
  await until('the change', async () => (await here(changed)).country === 'NZ')
  await until('the new profile', async () => (await here('late')).country === 'NO')
  await until('the erasure', async () => (await here(erased)).anonymized_at != null)
  assert.ok(await isFollowing())

  child.kill('SIGINT')
  const [code] = await ended
  assert.equal(code, 0, output.stderr)
  const { status, differences } = JSON.parse(output.stdout)
  assert.deepEqual([status, differences], ['following', []])
  // A later run continues, and finds nothing that is missing.
  assert.deepEqual((await jsonOf(tundish(args, server.env))).differences, [])
  await checkCopied(shop, target, { without: ['updated_at', 'anonymized_at'] })
})

test('1 and a sentence when the key is revoked between two passes, and a run with another key continues', async () => {
  const target = await openTarget(shop, 'revoked')
  const { from, folder, server, source } = shop
  const keys = `/projects/${source.id}/keys`
  const keyFile = join(folder, 'key-of-follower')
  const makeKey = async () => {
    const { body } = await server.admin(keys, { method: 'POST', body: { name: randomUUID(), scope: ['read'] } })
    writeFileSync(keyFile, body.secret_key)
    return body.id
  }
  const args = ['import', 'api', '--json', '--from', from, '--key-file', keyFile, '--project', target.id]
  const id = await makeKey()
  const { child, output, ended, isFollowing } = follow(args, target)
  await until('the first pass to be complete', isFollowing)
  assert.equal((await server.admin(`${keys}/${id}`, { method: 'DELETE' })).status, 200)
  await until('the import to end', () => child.exitCode !== null)
  await ended
  assert.deepEqual([child.exitCode, output.stdout], [1, ''])
  assert.match(output.stderr, /^http.+\/export rejects the key \(401\)\. It says: Unauthorized: .+\n$/)
  await makeKey()
  const { repeated, differences } = await jsonOf(tundish(args, server.env))
  assert.deepEqual([repeated, differences], [0, []])
  await checkCopied(shop, target, { without: ['updated_at', 'anonymized_at'], payments: false })
})

/** Starts an import that follows. */
function follow(args: string[], target: Project) {
  const child = spawnTundish([...args, '--follow'], shop.server.env, ['ignore', 'pipe', 'pipe'])
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) child[name]!.on('data', (text) => (output[name] += text))
  const isFollowing = async () => {
    assert.equal(child.exitCode, null, output.stderr)
    const [row] = await shop.server.db.query('select status from api_imports where project_id = $1', [target.id])
    return row?.status === 'following'
  }
  return { child, output, ended: once(child, 'close'), isFollowing }
}
