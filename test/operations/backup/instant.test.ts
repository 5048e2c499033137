// The instant of a backup lies before its snapshot, and the restore names an earlier one to compare with the provider from.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { untilLocked } from '../../support/database.ts'
import { openInstallations } from './installations.ts'

const { source, target, file } = await openInstallations('instant.backup')

test('what was committed while the backup waited is in it, though it came after its instant', async () => {
  const { query, release } = await source.db.connect()
  await query('begin')
  await query('lock table funnels')
  const making = source.json('backup', file, '--format', 'tundish')
  await untilLocked(source.db.query)
  const [clock] = await query('select db_clock() as now')
  await query(`update funnels set title = 'While it waited'`)
  await query('commit')
  release()
  const { made_at } = await making
  assert.ok(Date.parse(String(made_at)) < Date.parse(clock!.now!), String(made_at))

  const { code, stdout, stderr } = await target.run('restore', file, '--without-erasures')
  assert.equal(code, 0, stderr)
  assert.deepEqual(await target.db.query('select distinct title from funnels'), [{ title: 'While it waited' }])
  const [, since] = stdout.match(/tundish reconcile --since (\S+)/)!
  assert.equal(Date.parse(since!), Date.parse(String(made_at)) - 3_600_000)
})
