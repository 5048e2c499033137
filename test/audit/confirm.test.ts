// An action is confirmed although the commit of its entry cannot be written to the audit log's file of heads.
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { auditHeadsPath } from '../../src/audit/audit.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import { createOperator } from '../../src/tenants/operator-keys.ts'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { insert } from '../support/data.ts'

let billing: Billing
let shop: Organization
let heads: string
let armed = false
before(async () => {
  billing = await startBilling({}, { worker: false }, breaking)
  shop = await billing.organization()
  heads = auditHeadsPath(billing.server.app.config)
})
after(() => billing.stop())

/** Once it is armed, the file is no file any more as soon as an entry was announced in it and committed. */
function breaking(db: Db): Db {
  return {
    ...db,
    async tx(work) {
      let adds = false
      const result = await db.tx((query, commit) =>
        work((statement, params) => {
          adds ||= typeof statement === 'string' && statement.includes('insert into audit_log')
          return query(statement, params)
        }, commit),
      )
      if (armed && adds) breakFile()
      return result
    },
  }
}

function breakFile(): void {
  armed = false
  renameSync(heads, `${heads}.aside`)
  mkdirSync(heads)
}

beforeEach(() => {
  armed = true
})
afterEach(() => {
  assert.equal(armed, false, 'the file was broken')
  rmdirSync(heads)
  renameSync(`${heads}.aside`, heads)
  const told = billing.server
    .logLines()
    .filter((line) => line.includes('A commit could not be written to the audit log'))
  assert.match(told.at(-1) ?? '', /"level":50,.*"sequence":"\d+"/)
})

test('200 for a refund', async () => {
  const user = await shop.customer()
  const { order_id } = (await shop.charge(user)).body
  const answer = await shop.refund(user, order_id)
  assert.deepEqual([answer.status, answer.body.refund_status], [200, 'succeeded'], answer.text)
})

test('200 for an erasure', async () => {
  await insert(
    billing.db,
    { id: shop.projectId, organizationId: shop.id },
    { profiles: [{ id: 'ada', email: 'ada@example.com' }] },
  )
  const answer = await billing.server.api('/profiles/anonymize', {
    key: shop.projectKey,
    method: 'POST',
    body: { profile_ids: ['ada'] },
  })
  assert.deepEqual([answer.status, answer.body], [200, { message: '1 profile anonymized.' }], answer.text)
})

test('200 for a new key, which is shown only once', async () => {
  const { key } = await billing.db.tx((query) => createOperator(query, { name: 'test', scope: 'write' }))
  const answer = await fetch(`${billing.server.adminUrl}/admin/v1/projects/${shop.projectId}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'second' }),
  })
  const body = (await answer.json()) as { secret_key?: string }
  assert.deepEqual([answer.status, typeof body.secret_key], [200, 'string'], JSON.stringify(body))
})
