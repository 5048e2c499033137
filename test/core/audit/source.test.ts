// The audit log names the address of the caller, not of a proxy that was trusted to name it.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { startBilling } from '../../support/billing.ts'
import { insert } from '../../support/data.ts'

const CALLER = '192.0.2.7'

const billing = await startBilling({ TRUST_PROXY: '127.0.0.1' }, { worker: false })
after(() => billing.stop())
const { server } = billing

const sourceOf = async (action: string) =>
  (await server.db.query('select source from audit_log where action = $1', [action])).map(({ source }) => source)

test('an erasure has the address of the caller', async () => {
  const project = await server.project()
  await insert(server.db, project, { profiles: [{ id: 'a' }] })
  const { status } = await server.api('/profiles/anonymize', {
    key: project.key,
    method: 'POST',
    headers: ['X-Forwarded-For', CALLER],
    body: { profile_ids: ['a'] },
  })
  assert.deepEqual([status, await sourceOf('profiles.erased')], [200, [CALLER]])
})

test('a refund has the address of the caller', async () => {
  const organization = await billing.organization()
  const user = await organization.customer()
  const { order_id } = (await organization.charge(user)).body
  const { status } = await billing.server.call(`/${organization.id}/v1/payment/refund`, {
    method: 'POST',
    headers: ['service-secret-key', organization.key, 'X-Forwarded-For', CALLER],
    body: { external_id: user, order_id },
  })
  assert.deepEqual([status, await sourceOf('refund.begun')], [200, [CALLER]])
})

test('an operation has the address of the operator', async () => {
  const { key } = await server.db.tx((query) => createOperator(query, { name: 'test', scope: 'write' }))
  const { status } = await fetch(`${server.adminUrl}/admin/v1/organizations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-forwarded-for': CALLER },
    body: JSON.stringify({ id: 'acme' }),
  })
  assert.deepEqual([status, await sourceOf('organization.created')], [200, [CALLER]])
})
