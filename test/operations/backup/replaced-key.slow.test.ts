// A backup that was made under a master key that was replaced since: the restore says so, and names no secret that is as it was.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { openSeal } from '../../../src/lib/secrets.ts'
import { credentialsOf, webhookSecretsOf } from '../../../src/payments/providers/account.ts'
import { tundish } from '../../support/cli.ts'
import { MASTER_KEY, openInstallations } from './installations.ts'

const { source, file } = await openInstallations('replaced-key.backup')
const ACCOUNT = { organizationId: 'shop', psp: 'stripe', merchantId: 'eu' }

test('a restore under the former master key says that it was replaced, and not that webhook secrets differ; and names a month that is open again', async () => {
  const seal = openSeal(Buffer.from(MASTER_KEY, 'base64'))
  await source.db.query(
    `insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, credentials, credentials_last4,
       webhook_secrets, connected_at, created_at, updated_at)
     values ('shop', 'stripe', 'eu', true, $1, 'cret', $2, now(), now(), now())`,
    [
      seal.seal('sk_test_secret', credentialsOf(ACCOUNT)),
      seal.seal(JSON.stringify(['whsec_one']), webhookSecretsOf(ACCOUNT)),
    ],
  )
  await source.json('backup', file)
  await source.db.query(
    `insert into finance_months (organization_id, month, closed_at) values ('shop', '2025-12-01', now())`,
  )
  const key = randomBytes(32).toString('base64')
  const words = ['master-key', 'replace', '--to', '-', '--others-are-stopped']
  const replaced = await tundish(words, source.env, `${key}\n`)
  assert.equal(replaced.code, 0, replaced.stderr)

  const again = ['restore', file, '--without-erasures', '--replace', '--accounts', 'none']
  const { code, stdout, stderr } = await source.run(...again)
  assert.equal(code, 0, stderr)
  const [, differences] = /^Not as in the replaced database:\n((?:- .*\n)*)/m.exec(stdout) ?? assert.fail(stdout)
  const [first, second, ...others] = differences!.trim().split('\n')
  assert.match(first!, /^- The master key was replaced after the backup, and the earlier one is in use again: /)
  assert.match(second!, /^- The month 2025-12 of organization shop was closed after the backup and is open again: /)
  assert.deepEqual(others, [])
  assert.match((await source.run('doctor')).stdout, /The master key was replaced after the backup/)
})
