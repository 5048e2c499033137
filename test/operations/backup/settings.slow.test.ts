// A restore names keys that were revoked since the backup, and settings that were changed, until an operator confirms it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Difference } from '../../../src/core/tenants/restored.ts'
import { openInstallations } from './installations.ts'

const { source, target, file } = await openInstallations('settings.backup')
const { db } = source

type Made = { id: string; secret_key: string }
const key = async (owner: string, id: string, name: string, ...more: string[]) =>
  (await source.json('keys', 'create', owner, id, '--name', name, ...more)) as unknown as Made
const restore = (...more: string[]) =>
  source.run('restore', file, '--without-erasures', '--replace', '--accounts', 'none', ...more)
const warnings = async (of = source) => {
  const { findings } = JSON.parse((await of.run('doctor', '--json')).stdout) as {
    findings: { check: string; level: string; message: string; fix: string }[]
  }
  return findings.filter(({ check, level }) => check === 'restore' && level === 'warning')
}
const changeEach = async (statements: string[]) => {
  for (const statement of statements) await db.query(statement)
}
const ENDPOINT = '01900000-0000-7000-8000-000000000003'
const OPERATOR = '01900000-0000-7000-8000-000000000002'

// What operators set besides keys; and two customers with a top-up.
const MORE_SETTINGS = [
  `insert into sign_in_links values (decode(repeat('ab', 32), 'hex'), '${OPERATOR}', now() + interval '1 hour')`,
  `insert into dashboard_sessions values (decode(repeat('ab', 32), 'hex'), '${OPERATOR}', now(), now() + interval '1 hour')`,
  `insert into merchant_accounts (organization_id, psp, psp_merchant_id, currencies, is_sandbox, credentials, credentials_last4,
     webhook_secrets, connected_at, created_at, updated_at)
   values ('shop', 'stripe', 'eu', '[]', true, '\\x00', 'AAAA', '\\x01', now(), now(), now())`,
  `insert into provider_payouts (organization_id, psp, psp_merchant_id, payout_id, amount, currency_code, status, is_automatic,
     arrives_on, created_at)
   values ('shop', 'stripe', 'eu', 'po_1', 5, 'EUR', 'paid', true, '2026-01-02', now())`,
  `insert into stripe_imports (organization_id, project_id, psp_merchant_id, options, background, status, step, events_since, tally,
     started_at, updated_at)
   values ('shop', 'app', 'eu', '{"follow": true}', true, 'following', 'events', now(), '{}', now(), now())`,
  `insert into alert_settings (project_id, digest_hour, next_check_at) values ('app', 7, now() + interval '1 day')`,
  `insert into alert_rules (project_id, id, metric, condition, threshold, today, from_hour, created_at, updated_at)
   values ('app', 'sales', 'sales', 'below', 10, false, 0, now(), now())`,
  `insert into credit_units (organization_id, unit, name, created_at) values ('shop', 'tokens', 'Tokens', now())`,
  `insert into credit_rules (organization_id, currency_code, charged, unit, amount, created_at)
   values ('shop', 'USD', 10, 'tokens', 100, now()), ('shop', 'USD', 20, 'tokens', 300, now())`,
  `insert into customers (organization_id, external_id, project_id, created_at, updated_at)
   select 'shop', 'other', 'app', now(), now()`,
  `insert into credit_accounts (organization_id, external_id, unit, account_id, created_at, updated_at)
   select 'shop', id, 'tokens', gen_random_uuid(), now(), now() from unnest(array['user', 'other']) id`,
  `insert into credit_top_ups (organization_id, external_id, unit, top_up_id, status, below, amount, currency_code, grants,
     most_per_day, most_per_month, created_at, updated_at)
   values ('shop', 'user', 'tokens', gen_random_uuid(), 'on', 1, 5, 'USD', 50, 1, 1, now(), now())`,
]
const CHANGES = [
  // Used since the backup.
  'delete from sign_in_links',
  `update merchant_accounts set currencies = '["USD"]', credentials_last4 = 'BBBB', webhook_secrets = '\\x02' where psp = 'stripe'`,
  `update alert_settings set digest_hour = null`,
  `update provider_payouts set bank_day = '2026-01-03', bank_amount = 5, bank_reference = 'line 7', matched_at = now()`,
  `update stripe_imports set status = 'stopped'`,
  `insert into finance_months (organization_id, month, closed_at) values ('shop', '2025-12-01', now())`,
  `update alert_rules set threshold = 20, checked_day = '2026-01-01'`,
  `update credit_units set low_below = 5`,
  `update credit_rules set amount = 50 where charged = 10`,
  `delete from credit_rules where charged = 20`,
  `update credit_top_ups set status = 'removed'`,
  `insert into credit_top_ups select (jsonb_populate_record(t, '{"external_id": "other", "status": "on"}')).* from credit_top_ups t`,
]

const revoked = await key('--project', 'app', 'leaked')
const scoped = await key('--org', 'shop', 'reader', '--scope', 'report')
const rotated = await key('--org', 'shop', 'rotated')
await changeEach(MORE_SETTINGS)
await source.json('backup', file)
await changeEach(CHANGES)
await source.json('keys', 'revoke', revoked.id, '--project', 'app')
await source.json('keys', 'revoke', scoped.id, '--org', 'shop')
await source.json('keys', 'rotate', rotated.id, '--org', 'shop', '--overlap', '7d')
const gone = await key('--project', 'app', 'new')
await db.query('delete from dashboard_sessions')
await db.query('delete from operator_keys where id = $1', [OPERATOR])
await source.json('webhook', 'set', ENDPOINT, '--project', 'app', '--enabled', 'false')
await source.json('webhook', 'create', '--project', 'app', '--url', 'https://example.com/new')
await source.json('org', 'set', 'shop', '--one-off-charge', 'on')

test('a restore over the database names what was revoked, made and changed since the backup, without a secret', async () => {
  const { code, stdout, stderr } = await restore('--json')
  assert.equal(code, 0, stderr)
  const { differences } = JSON.parse(stdout) as { differences: Difference[] }
  const found = differences.map(({ kind, change, name, setting }) => [kind, change, setting ?? name].join(' '))
  assert.deepEqual(found.sort(), [
    'alert rule changed threshold',
    'alert setting changed digest_hour',
    'bank line gone ',
    'closed month gone ',
    'credit rule back ',
    'credit rule changed amount',
    'credit unit changed low_below',
    'followed account back ',
    'merchant account changed currencies',
    'merchant account changed key_last4',
    'merchant account changed webhook_secrets',
    'operator key back Ada',
    'organization changed one_off_charge_enabled',
    'organization key back reader',
    'organization key changed expires_at',
    'organization key gone rotated',
    'project key back leaked',
    'project key gone new',
    'top-up back ',
    'webhook endpoint changed enabled',
    'webhook endpoint gone https://example.com/new',
  ])
  const leaked = differences.find(({ name }) => name === 'leaked')!
  assert.deepEqual([leaked.id, leaked.last_four], [revoked.id, revoked.secret_key.slice(-4)])
  const charges = differences.find(({ setting }) => setting === 'one_off_charge_enabled')!
  assert.deepEqual([charges.organization_id, charges.before, charges.after], ['shop', true, false])

  const [entry] = await db.query(`select after from audit_log where action = 'backup.restored'`)
  assert.deepEqual(JSON.parse(entry!.after!).differences, differences)
  const signIns = 'select 1 from sign_in_links union all select 1 from dashboard_sessions'
  assert.deepEqual(await db.query(signIns), [])
  for (const { secret_key } of [revoked, scoped, rotated, gone])
    assert.ok(!`${stdout}${entry!.after}`.includes(secret_key.slice(0, -4)))
})

test('the doctor warns of them, also after the same backup was restored once more', async () => {
  const { stdout } = await restore()
  assert.doesNotMatch(stdout, /Not as in the replaced database/)
  const [{ level, message, fix } = assert.fail('no warning'), ...others] = await warnings()
  assert.deepEqual([level, others], ['warning', []])
  assert.match(
    message,
    /The project key "leaked" \(.*\) of project app was revoked after the backup and is valid again\./,
  )
  assert.match(message, /one_off_charge_enabled of organization shop is false again; before the restore it was true\./)
  assert.match(
    message,
    /The project key "new" .* was created after the backup and is gone: programs that use it get 401\./,
  )
  assert.match(fix, /tundish keys confirm$/)
})

test('a key that is revoked, and one whose owner gets a new one, are named no more', async () => {
  await source.json('keys', 'regenerate', '--project', 'app', '--yes')
  await source.json('keys', 'revoke', scoped.id, '--org', 'shop')
  const [{ message } = assert.fail('no warning')] = await warnings()
  assert.doesNotMatch(message, /"leaked"|"new"|"reader"/)
  assert.match(message, /operator key "Ada"/)
})

test('a confirmation ends the warning and is in the audit log; there is none without a restore', async () => {
  const { restored_at } = (await source.json('keys', 'confirm')) as { restored_at: string[] }
  assert.equal(restored_at.length, 1)
  assert.deepEqual(await warnings(), [])
  const entries = await db.query(`select 1 from audit_log where action = 'keys.confirmed'`)
  assert.equal(entries.length, 1)
  const again = await source.run('keys', 'confirm')
  assert.deepEqual([again.code, again.stderr.trim()], [1, 'There is no restore to confirm.'])
})

test('a restore into an empty database says that revoked keys are valid again, until all old keys are revoked', async () => {
  const { code, stdout, stderr } = await target.run('restore', file, '--without-erasures', '--accounts', 'none')
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^Keys that were revoked since the backup are valid again/m)
  const [{ message } = assert.fail('no warning')] = await warnings(target)
  assert.match(message, /keys that were revoked since are valid again/)
  await target.json('keys', 'regenerate', '--project', 'app', '--yes')
  await target.json('keys', 'regenerate', '--org', 'shop', '--yes')
  assert.equal((await warnings(target)).length, 1)
  await target.json('operator', 'revoke', OPERATOR)
  assert.deepEqual(await warnings(target), [])
})
