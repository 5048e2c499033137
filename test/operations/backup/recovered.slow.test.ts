// A database that is recovered to a moment with the commands of the guide, as they are written there: nothing is charged twice, the erased
// stay erased, everyone is signed out, keys are to be checked, and readers of changes are told what is void.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { migrate } from '../../../src/lib/pg/migrate.ts'
import { startBilling } from '../../support/billing.ts'
import { openCluster } from '../../support/cluster.ts'
import { dashboardOf, visitorOf } from '../../support/dashboard.ts'
import { insert } from '../../support/data.ts'
import { copyCluster } from '../../support/replica.ts'
import { startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** The groups of a pattern in the guide. */
function guide(pattern: RegExp): string[] {
  return pattern.exec(readFileSync(join(ROOT, 'docs/backup.md'), 'utf8'))?.slice(1) ?? assert.fail(`${pattern}`)
}

test('after a recovery to a moment', { timeout: 300_000 }, async (t) => {
  const lost = await openCluster()
  t.after(() => lost.remove())
  // Of PostgreSQL's account, which the folder of the run is not for.
  const archive = mkdtempSync(join(tmpdir(), 'tundish-archive-'))
  t.after(() => execFileSync('rm', ['-r', archive]))
  chmodSync(archive, 0o777)
  await lost.stop()
  const [settings] = guide(/\n(wal_level = replica\n[\s\S]*?)archive_timeout/)
  const here = (text: string) => text.replaceAll('/archive/', `${archive}/`)
  appendFileSync(join(lost.data, 'postgresql.auto.conf'), `${here(settings!)}max_wal_senders = 1\n`)
  await lost.start()
  await migrate(lost.url)
  const billing = await startBilling({ DATABASE_URL: lost.url })
  t.after(() => billing.simulator.cleanUp())
  const { server } = billing
  const shop = await billing.organization('shop')
  const data = { key: shop.projectKey }
  const changes = async (since: string, { api } = server) => {
    const { headers } = await api(`/profiles?${new URLSearchParams({ 'filter[updated_at.from]': since })}`, data)
    return { horizon: String(headers['x-sync-horizon']), voidFrom: headers['x-void-from'] }
  }
  const project = { id: shop.projectId, organizationId: shop.id }
  await insert(server.db, project, { profiles: [{ id: 'ada', email: 'ada@example.com' }] })
  const [customer, other] = [await shop.customer(), await shop.customer()]

  const base = mkdtempSync(join(tmpdir(), 'tundish-recovered-'))
  const cluster = await copyCluster(lost, base)
  const first = await shop.charge(customer, { idempotency_key: 'before' })
  const { visit, signInAs } = dashboardOf(server)
  const cookie = await signInAs('read')
  const { horizon: early } = await changes('2020-01-01T00:00:00Z')
  const beat = async () => Number((await server.db.query('select number from commit_beat'))[0]?.['number'] ?? -1)
  const heard = await beat()
  await until('a heartbeat', async () => (await beat()) > heard)
  const [{ target }] = (await lost.query('select clock_timestamp()::text as target')) as [{ target: string }]

  const second = await shop.charge(other, { idempotency_key: 'after' })
  assert.deepEqual([first.body.checkout_status, second.body.checkout_status], ['succeeded', 'succeeded'])
  const erasing = await server.api('/profiles/anonymize', { ...data, method: 'POST', body: { profile_ids: ['ada'] } })
  assert.equal(erasing.status, 200)
  assert.equal((await visit('/sign-out', { cookie, form: {} })).status, 303)
  let late = early
  await until('a later horizon', async () => {
    late = (await changes(early)).horizon
    return late > early
  })
  await server.stop()
  const [segment] = await lost.query('select pg_walfile_name(pg_switch_wal()) as name')
  const archived = async () => (await lost.query('select last_archived_wal as name from pg_stat_archiver'))[0]!['name']!
  await until('the archive', async () => (await archived()) >= segment!['name']!)
  await lost.stop('SIGQUIT')

  const [recovery] = guide(/main\/postgresql\.conf <<'END'\n([\s\S]*?)END\n/)
  const aimed = here(recovery!).replace(/(?<=recovery_target_time = ').*(?=')/, target)
  appendFileSync(join(cluster, 'postgresql.auto.conf'), aimed)
  execFileSync('cp', ['-a', join(cluster, 'backup_label'), join(cluster, 'recovery.signal')])
  const recovered = await openCluster(base)
  t.after(() => recovered.remove())
  const isOver = async () => (await recovered.query('select pg_is_in_recovery() as is'))[0]!['is'] as unknown
  await until('the end of the recovery', async () => (await isOver()) === false)
  const env = { ...server.env, DATABASE_URL: recovered.url }
  const steps = guide(
    /Before any Tundish serves that database\*\*[\s\S]*?```sh\n([\s\S]*?)psql .*\n([\s\S]*?)END\n([\s\S]*?)```/,
  )
  const [begin, sql, end] = steps.map((step) =>
    step
      .replaceAll('DATA_DIR', server.env['DATA_DIR']!)
      .replaceAll('2026-01-31T23:59:00Z', target)
      .replace('erasures.ndjson machine-*.ndjson', '')
      .replace('2026-01-31T22:59:00Z', new Date(Date.now() - 7_200_000).toISOString()),
  )
  const PATH = `${join(ROOT, 'bin')}:${process.env['PATH']}`
  // A finding of the last command is no failure.
  const run = (script: string) =>
    new Promise<string>((resolve) => {
      execFile('sh', ['-c', script], { env: { ...env, PATH } }, (_error, stdout, stderr) => resolve(stderr + stdout))
    })
  assert.equal(await run(begin!), 'The database is up to date.\n')
  await recovered.query(sql!)
  const said = await run(end!)
  assert.match(said, /^Profiles erased: 1\./m)
  assert.match(said, /^warning +failover +A failover may have lost commits/m)
  assert.match(said, /^warning +restore .* keys that were revoked since are valid again\.$/m)
  assert.match(said, /^ok +audit /m)
  assert.match(said, /^missing_here: simulator charge/m)
  assert.match(said, /^1 match, .* 1 missing_here/m)

  const again = await startTestServer(env)
  t.after(() => again.stop())
  const dashboard = visitorOf(again.adminUrl)
  assert.match(String((await dashboard.visit('/', { cookie })).headers.get('location')), /sign-in/)
  assert.equal((await again.api('/profiles/ada', data)).body.email, null)
  const voidFrom = String((await changes(late, again)).voidFrom)
  assert.ok(early <= voidFrom && voidFrom < late, `${early} ${voidFrom} ${late}`)
  assert.equal((await changes(early, again)).voidFrom, undefined)
  for (const [external_id, idempotency_key] of [
    [customer, 'before'],
    [other, 'after'],
    [other, 'new'],
  ]) {
    const body = { external_id, idempotency_key, amount: '10.50', currency_code: 'USD' }
    const headers = ['service-secret-key', shop.key]
    const charge = await again.call('/shop/v1/payment/one_off_charge', { method: 'POST', headers, body })
    assert.deepEqual(
      [charge.body.checkout_status, charge.body.idempotent_replay],
      ['succeeded', idempotency_key !== 'new'],
    )
  }
  assert.equal((await billing.ledger()).length, 3)
})
