// The settings of signing in with OpenID Connect: what they mean, and one sentence for each mistake.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../../src/config.ts'
import { accessByGroups } from '../../../src/core/tenants/group-access.ts'

const ROLES = {
  admins: 'owner',
  helpdesk: { role: 'support', organizations: ['acme'], refund_limits: ['50 USD', '45.50 EUR'] },
  shop: { role: 'developer', projects: ['shop'] },
}
const GOOD = {
  OIDC_ISSUER: 'https://login.example.com/realms/acme',
  OIDC_CLIENT_ID: 'tundish',
  OIDC_CLIENT_SECRET: 'secret',
  OIDC_ROLES: JSON.stringify(ROLES),
}

test('a group gives a role with a reach and limits; of several groups the first of the setting counts', () => {
  const { oidc } = readConfig(GOOD)
  assert.deepEqual([oidc!.claim, oidc!.scope, readConfig({}).oidc], ['groups', undefined, undefined])
  const of = (claim: unknown) => accessByGroups(oidc!.roles, claim)
  assert.deepEqual(of(['shop', 'helpdesk', 'staff']), {
    role: 'support',
    reach: { organizations: ['acme'], projects: [] },
    refundLimits: { USD: '50', EUR: '45.50' },
  })
  assert.deepEqual(of('admins'), { role: 'owner', reach: null, refundLimits: null })
  for (const claim of [[], 'staff', undefined, null, { admins: true }, [['admins']], 7, 'constructor'])
    assert.equal(of(claim), undefined, JSON.stringify(claim))
})

test('groups whose names are numbers keep their place in the setting', () => {
  const text =
    '{"admins": "owner", "helpdesk": {"role": "support", "projects": ["9"]}, "20 \\"b\\"": "read", "20" : "finance", "10": "read"}'
  const { roles } = readConfig({ ...GOOD, OIDC_ROLES: text }).oidc!
  assert.deepEqual(
    roles.map(([group, { role }]) => `${group} ${role}`),
    ['admins owner', 'helpdesk support', '20 "b" read', '20 finance', '10 read'],
  )
  assert.equal(accessByGroups(roles, ['10', '20', 'admins'])!.role, 'owner')
})

test('groups of a claim may be numbers, and the names of an object that says for each role who gives it, as ZITADEL sends', () => {
  const { roles } = readConfig({ ...GOOD, OIDC_ROLES: '{"admins": "owner", "1001": "read"}' }).oidc!
  const role = (claim: unknown) => accessByGroups(roles, claim)?.role
  assert.deepEqual([role([7, 1001]), role(1001)], ['read', 'read'])
  assert.equal(role({ staff: {}, admins: { '201982826478953724': 'acme.zitadel.cloud' } }), 'owner')
  for (const claim of [{ admins: false }, { admins: null }, { admins: ['staff'] }, [{ admins: {} }]])
    assert.equal(role(claim), undefined, JSON.stringify(claim))
})

test('the names of clients in the object that Keycloak sends for them are no groups', () => {
  const { roles } = readConfig({ ...GOOD, OIDC_ROLES: '{"admins": "owner"}' }).oidc!
  const access = [{ roles: ['view-profile'] }, { roles: [], verify_caller: true }, { verify_caller: true }]
  for (const claim of access.map((admins) => ({ admins })))
    assert.equal(accessByGroups(roles, claim), undefined, JSON.stringify(claim))
})

test('mistakes are named, and no secret is repeated', () => {
  const roles = (value: unknown) => ({ ...GOOD, OIDC_ROLES: JSON.stringify(value) })
  const cases: [env: Record<string, string>, sentence: RegExp][] = [
    [{ ...GOOD, OIDC_CLIENT_SECRET: '', OIDC_ROLES: '' }, /needs OIDC_CLIENT_SECRET too\.\n.*needs OIDC_ROLES too/],
    [{ OIDC_CLIENT_SECRET: 'hunter2' }, /^OIDC_CLIENT_SECRET without OIDC_ISSUER/],
    [{ ...GOOD, OIDC_ISSUER: 'http://login.example.com' }, /OIDC_ISSUER must be the https:\/\/ address/],
    [{ ...GOOD, OIDC_ISSUER: 'login' }, /OIDC_ISSUER must be/],
    [{ ...GOOD, OIDC_PROMPT: 'none' }, /OIDC_PROMPT must be one or more of consent, login, select_account/],
    [{ ...GOOD, OIDC_SCOPE: 'profile' }, /OIDC_SCOPE must be scopes .* with openid/],
    [{ ...GOOD, OIDC_ROLES: 'admins=owner' }, /OIDC_ROLES must be groups with their roles as JSON/],
    [roles({}), /OIDC_ROLES must be groups/],
    [{ ...GOOD, OIDC_ROLES: '{"a": "read", "b": "read", "a": "owner"}' }, /^OIDC_ROLES must be groups .* "a"/],
    [roles({ a: 'boss' }), /group "a": the role must be one of owner, developer/],
    [roles({ a: null }), /group "a": the role must be/],
    [roles({ a: { role: 'read', orgs: [] } }), /group "a": "orgs" is not known/],
    [roles({ a: { role: 'read', projects: [] } }), /organizations and projects are empty/],
    [roles({ a: { role: 'read', projects: 'shop' } }), /projects must be a list of texts/],
    [roles({ a: { role: 'read', refund_limits: ['1 USD'] } }), /refund_limits are for the role support/],
    [roles({ a: { role: 'support', refund_limits: ['1 XXQ'] } }), /"XXQ" is not a currency/],
  ]
  for (const [env, sentence] of cases)
    assert.throws(
      () => readConfig(env),
      (error: Error) => {
        assert.match(error.message, sentence)
        assert.doesNotMatch(error.message, /hunter2/)
        return true
      },
    )
})
