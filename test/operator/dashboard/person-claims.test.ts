// Which claim of an identity provider has the groups.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimOf } from '../../../src/operator/dashboard/person-claims.ts'

test('a claim is found by its name or a path, also where names have dots', () => {
  const claims = {
    groups: ['staff'],
    realm_access: { roles: ['offline_access'] },
    resource_access: { 'tundish.example.com': { roles: ['admins'] }, tundish: { roles: ['helpdesk'] } },
    'https://acme.example/groups': ['shop'],
    'https://acme.example/app': { roles: ['finance'] },
    none: null,
  }
  for (const [name, found] of [
    ['groups', ['staff']],
    ['realm_access.roles', ['offline_access']],
    ['resource_access.tundish.roles', ['helpdesk']],
    ['resource_access.tundish.example.com.roles', ['admins']],
    ['https://acme.example/groups', ['shop']],
    ['https://acme.example/app.roles', ['finance']],
    ['none', null],
    ['none.roles', undefined],
    ['resource_access.other.roles', undefined],
    ['constructor.name', undefined],
  ] as const)
    assert.deepEqual(claimOf(claims, name), found, name)
})
