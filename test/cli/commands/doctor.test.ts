// The doctor finds what was broken on purpose, says what to do, and corrects the counters when asked.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { appendFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type App, openApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config.ts'
import { createOrganization, createProject } from '../../../src/core/tenants/tenants.ts'
import { openLog } from '../../../src/lib/log.ts'
import type { Finding } from '../../../src/operator/doctor/doctor.ts'
import { jsonOf } from '../../support/cli.ts'
import { BASICS, insert } from '../../support/data.ts'
import { setUpEnv } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column } from '../../support/rows.ts'

describe('doctor', () => {
  const folder = temporaryFolder()
  const env = setUpEnv({ DATA_DIR: folder })
  let app: App
  before(async () => {
    app = await openApp(readConfig(env), { log: openLog('silent') })
    await createOrganization(app.db, app.seal, { id: 'acme' })
    await createProject(app.db, app.seal, { id: 'shop', organization: 'acme' })
    await insert(app.db, { id: 'shop', organizationId: 'acme' }, BASICS)
  })
  after(() => app.close())

  async function examine(more: Record<string, string> = {}, ...args: string[]) {
    const { code, stdout, stderr } = await tundishAgain(['doctor', '--json', ...args], { ...env, ...more })
    assert.equal(stderr, '')
    const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] }
    assert.equal(code, ok ? 0 : 1)
    const of = (check: string) => findings.filter((finding) => finding.check === check)
    return { ok, of, failed: findings.filter(({ level }) => level === 'failed').map(({ check }) => check) }
  }

  test('a project whose webhooks have no key that signs them, or soon have none', async () => {
    const run = (...args: string[]) => jsonOf(tundishAgain([...args, '--project', 'signed', '--json'], env))
    await createProject(app.db, app.seal, { id: 'signed', organization: 'acme' })
    const { data } = await run('keys', 'list')
    const revoke = ({ id }: { id: string }) => run('keys', 'revoke', id)
    const { id: endpoint } = await run('webhook', 'create', '--url', 'https://example.com/hook')
    assert.deepEqual((await examine()).of('webhooks'), [])
    const next = await run('keys', 'create', '--name', 'next', '--expires', '1d')
    await run('keys', 'create', '--name', 'quiz', '--scope', 'write')
    assert.deepEqual((await examine()).of('webhooks'), [])
    await revoke(data[0])
    const [soon] = (await examine()).of('webhooks')
    assert.equal(soon!.level, 'warning')
    assert.match(soon!.message, /^The last full key of project signed ends at \d{4}-\d\d-\d\d \d\d:\d\d UTC:/)
    await revoke(next)
    const { of, failed } = await examine()
    assert.deepEqual(failed, ['webhooks'])
    assert.match(of('webhooks')[0]!.message, /^Project signed has no full key, so its webhooks cannot be signed:/)
    assert.match(of('webhooks')[0]!.fix!, /tundish keys create --project signed, without --scope$/)
    await run('webhook', 'remove', endpoint)
    assert.deepEqual((await examine()).of('webhooks'), [])
  })

  test('a schema that a newer version has migrated: fine, unless this version does not start on it', async () => {
    const migrate = (version: number, breaking: boolean) =>
      app.db.query(`insert into schema_migrations (version, name, breaking) values ($1, 'newer', $2)`, [
        String(version),
        String(breaking),
      ])
    try {
      await migrate(9998, false)
      const { of, failed } = await examine()
      assert.deepEqual(failed, [])
      assert.equal(
        of('migrations')[0]!.message,
        'A newer Tundish has migrated the database (9998). This version works on it.',
      )
      await migrate(9999, true)
      const refused = await examine()
      assert.deepEqual(refused.failed, ['migrations'])
      assert.match(refused.of('migrations')[0]!.message, /\(9998, 9999\), and this version does not start on it/)
    } finally {
      await app.db.query('delete from schema_migrations where version > 9000')
    }
  })

  test('0 for a sound installation, in words and as JSON', async () => {
    assert.deepEqual((await examine()).failed, [])
    const { code, stdout } = await tundishAgain(['doctor'], env)
    assert.equal(code, 0)
    for (const check of [
      'settings',
      'disk',
      'database',
      'migrations',
      'clock',
      'sync',
      'master key',
      'counts',
      'erasures',
      'providers',
      'charges',
    ]) {
      assert.match(stdout, new RegExp(`^ok +${check} `, 'm'))
    }
  })

  test('1 for a counter that is wrong, and --fix-counts corrects it', async () => {
    await app.db.query(`update counts set n = n + 3 where list = 'sessions'`)
    await app.db.query(`insert into counts values ('shop', 'subscriptions', 'status', 'active', 1)`)
    const { of } = await examine()
    const [finding, ...others] = of('counts')
    assert.equal(others.length, 0)
    assert.match(finding!.message, /2 counters of project shop differ/)
    assert.equal(finding!.fix, 'Run: tundish doctor --fix-counts')
    assert.deepEqual((await examine({}, '--fix-counts')).failed, [])
    assert.deepEqual((await examine()).failed, [])
  })

  test('1 for files of DATA_DIR that cannot be written', async () => {
    // A file where the folder should be.
    const { failed, of } = await examine({ DATA_DIR: import.meta.filename })
    assert.deepEqual([...new Set(failed)], ['files'])
    assert.match(of('files')[0]!.message, /erasures\.ndjson cannot be written \(ENOTDIR\)/)
    assert.equal(of('files').length, 2)
  })

  test('1 for another master key', async () => {
    const { failed } = await examine({ MASTER_KEY: randomBytes(32).toString('base64') })
    assert.deepEqual(failed, ['master key'])
  })

  test('1 for a key whose hash was replaced by that of another', async () => {
    const hash = async (value: Buffer, where: Buffer) =>
      app.db.query('update secret_keys set hash = $1 where hash = $2', [value, where])
    const [row] = await app.db.query('select hash from secret_keys limit 1')
    const own = Buffer.from(row!.hash!.slice(2), 'hex')
    const theirs = randomBytes(32)
    await hash(theirs, own)
    const { of, failed } = await examine()
    assert.deepEqual(failed, ['master key'])
    assert.match(of('master key')[0]!.message, /^1 secret key with a hash that does not match the key/)
    await hash(own, theirs)
    assert.deepEqual((await examine()).failed, [])
  })

  test('1 for an erasure that a restored backup has forgotten, a warning for one that the file lacks', async () => {
    const ledger = join(folder, 'erasures.ndjson')
    const line = (project_id: string) =>
      `${JSON.stringify({ project_id, profile_id: 'profile', erased_at: '2026-01-01T00:00:00Z' })}\n`
    await writeFile(ledger, line('shop'))
    await appendFile(ledger, line('project-of-another-database'))
    const forgotten = await examine()
    assert.deepEqual(forgotten.failed, ['erasures'])
    assert.match(forgotten.of('erasures')[0]!.fix!, /erasures reapply/)
    assert.equal((await tundishAgain(['erasures', 'reapply'], env)).code, 0)
    assert.deepEqual((await examine()).failed, [])
    await rm(ledger)
    const [finding] = (await examine()).of('erasures')
    assert.deepEqual([finding!.level, /lacks 1 erasure/.test(finding!.message)], ['warning', true])
    await writeFile(ledger, `${line('shop')}{"project_id":"sh`)
    assert.match((await examine()).of('erasures')[0]!.message, /1 line .* cannot be read, and would end a restore/)
  })

  test('0 for an erasure of a profile whose id JSON has to escape', async () => {
    const id = 'say-"hi"-\\'
    await insert(app.db, { id: 'shop', organizationId: 'acme' }, { profiles: [{ id }] })
    const erasure = { project_id: 'shop', profile_id: id, erased_at: '2026-01-01T00:00:00Z' }
    const ledger = join(folder, 'escaped.ndjson')
    await writeFile(ledger, `${JSON.stringify(erasure)}\n`)
    assert.equal((await tundishAgain(['erasures', 'reapply', ledger], env)).code, 0)
    const { failed, of } = await examine()
    assert.deepEqual(failed, [])
    assert.doesNotMatch(
      of('erasures')
        .map(({ message }) => message)
        .join(),
      /database lacks/,
    )
  })

  test('1 for a charge in progress for too long', async () => {
    const order = { order_id: '01900000-0000-7000-8000-00000000000a', external_id: 'ada', status: 'processing' }
    const when = { created_at: '2026-01-01T00:00:00Z', settled_at: null, next_look_at: '2036-01-01T00:00:00Z' }
    await insert(
      app.db,
      { id: 'shop', organizationId: 'acme' },
      { customers: [{ external_id: 'ada' }], orders: [{ ...order, ...when }] },
    )
    const { of, failed } = await examine()
    assert.deepEqual(failed, ['charges'])
    assert.match(of('charges')[0]!.message, /the oldest since 2026-01-01/)
    await app.db.query('delete from orders')
  })

  test('0 for a charge that the provider decides later, with a warning after ten days', async () => {
    const order = { order_id: '01900000-0000-7000-8000-00000000000b', external_id: 'grace', status: 'processing' }
    const when = { created_at: '2026-01-01T00:00:00Z', settled_at: null, next_look_at: '2036-01-01T00:00:00Z' }
    const pending_since = new Date(Date.now() - 9 * 86_400_000).toISOString()
    await insert(
      app.db,
      { id: 'shop', organizationId: 'acme' },
      { customers: [{ external_id: 'grace' }], orders: [{ ...order, ...when, pending_since }] },
    )
    const { of, failed } = await examine()
    assert.deepEqual(failed, [])
    assert.deepEqual(
      of('charges').map(({ level, message }) => [level, message.replace(/since .*/, 'since')]),
      [['ok', '1 charge or refund is pending at the provider, the oldest since']],
    )
    await app.db.query(`update orders set pending_since = pending_since - interval '2 days'`)
    const later = await examine()
    assert.deepEqual(later.failed, [])
    assert.deepEqual(column(later.of('charges'), 'level'), ['warning'])
    await app.db.query('delete from orders')
  })

  test('1 for a SIMULATOR_URL that does not respond', async () => {
    assert.deepEqual((await examine({ SIMULATOR_URL: 'http://127.0.0.1:9' })).failed, ['providers'])
  })

  test('1 for a database without tables, and it makes none', async () => {
    const empty = Object.assign(new URL(env['DATABASE_URL']!), { pathname: '/postgres' }).href
    const { failed, of } = await examine({ DATABASE_URL: empty })
    assert.deepEqual(failed, ['migrations'])
    assert.equal(of('migrations')[0]!.fix, 'Run: tundish migrate')
    assert.deepEqual((await examine({ DATABASE_URL: empty })).failed, ['migrations'])
  })

  test('1 for a database that does not respond, without its password', async () => {
    const { code, stdout } = await tundishAgain(['doctor'], {
      ...env,
      DATABASE_URL: 'postgresql://u:hunter2@127.0.0.1:1/db',
    })
    assert.equal(code, 1)
    assert.match(stdout, /^FAILED +database .*ECONNREFUSED/m)
    assert.doesNotMatch(stdout, /hunter2/)
  })

  test('1 for a data folder without a database, and it makes none', async () => {
    const { code, stdout } = await tundishAgain(['doctor'], { DATA_DIR: join(folder, 'none') })
    assert.equal(code, 1)
    assert.match(stdout, /^FAILED +database +There is no database/m)
  })
})
