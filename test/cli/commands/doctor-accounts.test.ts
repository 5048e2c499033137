// What the doctor says of merchant accounts, of tenants in OIDC_ROLES, of erasures at their providers, and of ids that are e-mail addresses.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startShop } from '../../support/billing.ts'
import { addRow } from '../../support/data.ts'
import { tundishAgain } from '../../support/resident.ts'

const { billing, shop } = await startShop({}, { worker: false })
await billing.db.query(
  `insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, credentials, credentials_last4,
     connected_at, created_at, updated_at)
   select $1, psp, 'm1', true, 'sealed', '0000', db_clock() - interval '1 day', db_clock(), db_clock()
   from unnest('{other,primer}'::text[]) psp`,
  [shop.id],
)

const examine = async () => {
  const { stdout } = await tundishAgain(['doctor'], billing.server.env)
  return stdout
}

test('warns of accounts without a secret for notifications, by what the provider lists', async () => {
  const said = await examine()
  assert.match(said, /^warning +providers +1 other merchant account without a webhook secret: .* minutes later/m)
  assert.match(said, /^warning +providers +1 Primer merchant account without a webhook secret: .* disputes never/m)
})

test('fails for an account without notifications of charges for an hour, and for an erasure that is not done', async () => {
  const user = await shop.customer()
  await shop.charge(user)
  await billing.db.query(`update merchant_accounts set webhook_secrets = 'sealed'`)
  await billing.db.query(`update orders set psp = 'other', psp_merchant_id = 'm1'`)
  await billing.db.query(
    `insert into provider_erasures (organization_id, psp, psp_merchant_id, target, project_id, profile_id, how, created_at,
       next_attempt_at)
     values ($1, 'other', 'm1', 'cus_1', $2, 'ada', 'empty', db_clock() - interval '2 hours', db_clock())`,
    [shop.id, shop.projectId],
  )
  const said = await examine()
  assert.match(said, /^FAILED +providers +1 merchant account without any notification/m)
  assert.match(said, /^FAILED +erasures +1 erasure at payment providers is not done/m)
})

test('fails for credentials that the master key does not open', async () => {
  await billing.db.query(`delete from merchant_accounts where psp = 'primer'`)
  await billing.db.query(`update merchant_accounts set psp = 'stripe'`)
  assert.match(await examine(), /^FAILED +providers +The credentials of merchant account stripe m1 of/m)
  await billing.db.query(`update merchant_accounts set psp = 'other'`)
})

test('warns of external_ids that look like e-mail addresses', async () => {
  const names = { organization_id: shop.id, project_id: shop.projectId, external_id: 'ada@example.com' }
  await addRow(billing.db, 'customers', names)
  assert.match(await examine(), /^warning +erasures +At least 1 external_id looks like an e-mail address, which/m)
})

test('warns of tenants in OIDC_ROLES that do not exist', async () => {
  const reach = { organizations: [shop.id, 'nowhere'], projects: [shop.projectId, 'nothing'] }
  const { stdout } = await tundishAgain(['doctor'], {
    ...billing.server.env,
    OIDC_ISSUER: 'https://people.example.com',
    OIDC_CLIENT_ID: 'tundish',
    OIDC_CLIENT_SECRET: 'secret',
    OIDC_ROLES: JSON.stringify({ admins: 'owner', helpdesk: { role: 'support', ...reach } }),
  })
  const said = stdout.split('\n').filter((line) => line.includes('OIDC_ROLES gives'))
  assert.equal(said.length, 2)
  assert.match(
    said[0]!,
    /^warning +sign-in +OIDC_ROLES gives the group "helpdesk" the organization "nowhere", which does not/,
  )
  assert.match(
    said[1]!,
    /^warning +sign-in +OIDC_ROLES gives the group "helpdesk" the project "nothing", which does not/,
  )
})
