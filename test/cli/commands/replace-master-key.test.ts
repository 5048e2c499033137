// The master key of a server's settings is replaced: what it sealed opens with the new one, and nothing else changes.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { type App, openApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config.ts'
import { audited } from '../../../src/core/audit/audit.ts'
import { openAddress, sealAddress } from '../../../src/core/events/alert-addresses.ts'
import { signingKeys } from '../../../src/core/events/signing-keys.ts'
import { openLog } from '../../../src/lib/log.ts'
import { openSeal } from '../../../src/lib/secrets.ts'
import type { Finding } from '../../../src/operator/doctor/finding.ts'
import {
  credentialsOf,
  findAccount,
  findWebhookSecrets,
  webhookSecretsOf,
} from '../../../src/payments/providers/account.ts'
import { tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column } from '../../support/rows.ts'

const ACCOUNT = { organizationId: 'acme', psp: 'stripe', merchantId: 'main' }
const [FIRST, SECOND, THIRD] = [1, 2, 3].map(() => randomBytes(32).toString('base64')) as [string, string, string]

const settings = (masterKey: string) => ({ DATABASE_URL: database.url, DATA_DIR: folder, MASTER_KEY: masterKey })
const run = (masterKey: string, args: string[], input = '') =>
  input ? tundish(args, settings(masterKey), input) : tundishAgain(args, settings(masterKey))
const sealOf = (masterKey: string) => openSeal(Buffer.from(masterKey, 'base64'))
const database = await freshDatabase()
const folder = temporaryFolder()
await run(FIRST, ['org', 'create', 'acme'])
await run(FIRST, ['project', 'create', 'shop', '--org', 'acme'])
after(() => database.drop())

/** What the database holds sealed, opened with this key. */
async function secretsOf({ db }: App, masterKey: string) {
  const seal = sealOf(masterKey)
  const [chat] = await db.query('select address from alert_destinations where project_id = $1', ['shop'])
  return {
    signing: await signingKeys({ db, seal }, new Set(['shop'])),
    provider: (await findAccount(db, seal, ACCOUNT))?.secretKey,
    notifications: await findWebhookSecrets(db, seal, ACCOUNT),
    chat: chat && openAddress(seal, 'shop', 'team', chat.address!),
  }
}

const addEntry = (app: App) =>
  audited(app, { kind: 'tundish', id: 'test', source: 'test' }, async () => ({
    entry: { action: 'test.done', target: 'test' },
    result: undefined,
  }))

test('2 without a new key, with an invalid one, and with the current one', async () => {
  for (const [args, input, sentence] of [
    [[], '', /^MASTER_KEY is set: give the new key with --to FILE/],
    [['--to', '-'], 'c2hvcnQ=\n', /^--to must hold 32 bytes in base64 and nothing else/],
    [['--to', '-'], `${FIRST}\n`, /^The new master key is the current one\.$/m],
  ] as const) {
    const { code, stderr } = await run(FIRST, ['master-key', 'replace', ...args], input)
    assert.equal(code, 2)
    assert.match(stderr, sentence)
  }
})

test('refused while another process runs; then everything is decrypted with the new key, and a process with the old one adds no audit entry', async (t) => {
  const app = await openApp(readConfig(settings(FIRST)), { log: openLog('silent') })
  t.after(() => app.close())
  await app.db.query(
    `insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, credentials, credentials_last4,
       webhook_secrets, connected_at, created_at, updated_at)
     values ('acme', 'stripe', 'main', true, $1, 'cret', $2, db_clock(), db_clock(), db_clock())`,
    [
      app.seal.seal('sk_test_secret', credentialsOf(ACCOUNT)),
      app.seal.seal(JSON.stringify(['whsec_one', 'whsec_two']), webhookSecretsOf(ACCOUNT)),
    ],
  )
  await app.db.query(
    `insert into alert_destinations (project_id, id, kind, address, shown, created_at, updated_at)
     values ('shop', 'team', 'slack', $1, '', db_clock(), db_clock())`,
    [sealAddress(app.seal, 'shop', 'team', 'https://chat.example.com/secret')],
  )
  const before = await secretsOf(app, FIRST)
  assert.equal(before.provider, 'sk_test_secret')
  assert.equal(before.chat, 'https://chat.example.com/secret')

  const refused = await run(FIRST, ['master-key', 'replace', '--to', '-'], SECOND)
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /connections to the database are of other Tundish processes, which have the old key/)
  await addEntry(app)
  assert.deepEqual(await secretsOf(app, FIRST), before)

  const replaced = await run(FIRST, ['master-key', 'replace', '--to', '-', '--others-are-stopped', '--json'], SECOND)
  assert.deepEqual([replaced.code, replaced.stderr], [0, ''])
  assert.deepEqual(JSON.parse(replaced.stdout), { secret_keys: 2, merchant_accounts: 1, alert_destinations: 1 })
  assert.deepEqual(await secretsOf(app, SECOND), before)
  await assert.rejects(secretsOf(app, FIRST))
  await assert.rejects(addEntry(app), { code: 'master_key_replaced', status: 503 })
})

test('2 with the old key; the audit log is whole with the new one, also after a second replacement', async () => {
  const old = await run(FIRST, ['org', 'list'])
  assert.equal(old.code, 2)
  assert.match(old.stderr, /is not the one this database was set up with/)
  assert.equal((await run(SECOND, ['audit', 'verify'])).stdout, 'All 4 entries are intact.\n')
  assert.equal((await run(SECOND, ['master-key', 'replace', '--to', '-'], THIRD)).code, 0)
  assert.equal((await run(THIRD, ['audit', 'verify'])).stdout, 'All 5 entries are intact.\n')
  const { findings } = JSON.parse((await run(THIRD, ['doctor', '--json'])).stdout) as { findings: Finding[] }
  const sealed = findings.filter(({ check }) => ['master key', 'audit'].includes(check))
  assert.deepEqual(column(sealed, 'level'), ['ok', 'ok'])
})

test('a changed entry from before a replacement is reported', async (t) => {
  const app = await openApp(readConfig(settings(THIRD)), { log: openLog('silent') })
  t.after(() => app.close())
  await app.db.query(`update audit_log set target = 'project another' where sequence = 2`)
  const { code, stdout } = await run(THIRD, ['audit', 'verify'])
  assert.equal(code, 1)
  assert.match(stdout, /^Entry 2 was changed or inserted/)
})
