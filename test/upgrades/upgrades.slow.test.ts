// This program starts on the database of each earlier version, and everything in it is as it was.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { tundish } from '../support/cli.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startTestServer } from '../support/server.ts'
import { keptOf, loadVersion, MASTER_KEY, VERSIONS } from './kept.ts'

test('the database of 1.0.0 is there', () => assert.ok(VERSIONS.includes('1.0.0')))

for (const version of VERSIONS)
  test(`starts on the database of ${version}: every record, keys, charges, erasures`, async () => {
    const kept = keptOf(version)
    const database = await loadVersion(version)
    const server = await startTestServer({ DATABASE_URL: database.url, MASTER_KEY })
    try {
      for (const [list, total] of Object.entries(kept.totals)) {
        const { status, body } = await server.api(`/${list}?limit=1`, { key: kept.projectKey })
        assert.deepEqual([status, body.pagination.total], [200, total], list)
      }
      const post = (path: string, body: object) =>
        server.call(`/acme/v1/${path}`, { method: 'POST', headers: ['service-secret-key', kept.organizationKey], body })
      const replay = await post('payment/one_off_charge', kept.charge)
      assert.deepEqual(
        [replay.body.order_id, replay.body.checkout_status, replay.body.idempotent_replay],
        [kept.orderId, 'succeeded', true],
      )
      const { body } = await post('transaction_report', { last_transaction_date: '2000-01-01T00:00:00Z', limit: 500 })
      assert.equal(body.transactions.length, kept.rows)
      const { body: assets } = await post('my_assets', { external_id: kept.charge.external_id })
      assert.equal(assets.consumables[0].is_active, true)
      const { body: erased } = await server.api(`/profiles/${kept.erased}`, { key: kept.projectKey })
      assert.deepEqual([erased.email, typeof erased.anonymized_at], [null, 'string'])
      const doctor = await tundish(['doctor', '--json'], server.env)
      const { findings } = JSON.parse(doctor.stdout)
      assert.deepEqual(
        findings.filter(({ level }: { level: string }) => level === 'failed'),
        [],
      )
    } finally {
      await server.stop()
      await database.drop()
    }
  })

for (const version of VERSIONS)
  test(`a backup of ${version} is restored over the database that was upgraded`, async () => {
    const database = await loadVersion(version)
    try {
      const folder = temporaryFolder()
      const env = { DATABASE_URL: database.url, MASTER_KEY, DATA_DIR: folder }
      const run = async (...words: string[]) => {
        const { code, stdout, stderr } = await tundish([...words, '--json'], env)
        assert.equal(code, 0, `${words[0]}: ${stderr}`)
        return JSON.parse(stdout)
      }
      const file = join(folder, 'before.backup')
      const saved = await run('backup', file)
      await run('migrate')
      const restored = await run('restore', file, '--replace', '--without-erasures', '--accounts', 'none')
      assert.deepEqual(restored.rows, saved.rows)
      const orders = await run('order', 'list', '--org', 'acme')
      assert.ok(JSON.stringify(orders).includes(keptOf(version).orderId))
    } finally {
      await database.drop()
    }
  })
