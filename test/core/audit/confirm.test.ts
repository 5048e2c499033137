// An action is confirmed although the commit of its entry cannot be written to the audit log's file of heads.
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { afterEach, beforeEach, test } from 'node:test'
import { auditHeadsPath } from '../../../src/core/audit/audit.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { startShop } from '../../support/billing.ts'
import { insert } from '../../support/data.ts'

let isArmed = false
const { billing, shop } = await startShop({}, { worker: false }, breaking)
const heads = auditHeadsPath(billing.server.app.config)

/** While armed, replaces the file by a folder as soon as an entry was announced in it and committed. */
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
      if (isArmed && adds) breakFile()
      return result
    },
  }
}

function breakFile(): void {
  isArmed = false
  renameSync(heads, `${heads}.aside`)
  mkdirSync(heads)
}

beforeEach(() => {
  isArmed = true
})
afterEach(() => {
  assert.equal(isArmed, false, 'the file was broken')
  rmdirSync(heads)
  renameSync(`${heads}.aside`, heads)
  const errors = billing.server
    .logLines()
    .filter((line) => line.includes('A commit could not be written to the audit log'))
  assert.match(errors.at(-1) ?? '', /"level":50,.*"sequence":"\d+"/)
})

test('200 for a refund', async () => {
  const user = await shop.customer()
  const { order_id } = (await shop.charge(user)).body
  const response = await shop.refund(user, order_id)
  assert.deepEqual([response.status, response.body.refund_status], [200, 'succeeded'], response.text)
})

test('200 for an erasure', async () => {
  await insert(
    billing.db,
    { id: shop.projectId, organizationId: shop.id },
    { profiles: [{ id: 'ada', email: 'ada@example.com' }] },
  )
  const response = await billing.server.api('/profiles/anonymize', {
    key: shop.projectKey,
    method: 'POST',
    body: { profile_ids: ['ada'] },
  })
  assert.deepEqual([response.status, response.body], [200, { message: '1 profile anonymized.' }], response.text)
})

test('200 for a new key, which is shown only once', async () => {
  const path = `/projects/${shop.projectId}/keys`
  const { status, body, text } = await billing.server.admin(path, { method: 'POST', body: { name: 'second' } })
  assert.deepEqual([status, typeof body.secret_key], [200, 'string'], text)
})
