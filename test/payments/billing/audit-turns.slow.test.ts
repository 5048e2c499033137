// Refunds and erasures take their turns at the audit log, one for all tenants, without the connections that charges need.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openDb } from '../../../src/lib/pg/db.ts'
import { settled, startBilling } from '../../support/billing.ts'
import { untilLocked } from '../../support/database.ts'
import type { ApiResponse } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const billing = await startBilling({ PROVIDER_TIMEOUT_MS: '8000' })
// The server's own connections are what it is about.
const outside = openDb({ url: billing.server.env.DATABASE_URL!, applicationName: 'outside', connections: 2 })
const shop = await billing.organization()
after(async () => {
  await outside.close()
  await billing.stop()
})

const MANY = 20

/** A customer with a charge to pay back. */
async function charged(): Promise<[string, string]> {
  const user = await shop.customer()
  return [user, (await shop.charge(user)).body.order_id]
}

const claimsWaiting = async () => {
  const waiting = await outside.query(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
       and strpos(query, 'audit_head') > 0`,
  )
  return waiting.length
}

test('many refunds of one organization, all of them held up, leave room for the charges of another', async () => {
  const other = await billing.organization()
  const user = await other.customer()
  const orders = await Promise.all(Array.from({ length: MANY }, charged))
  const refunds = await outside.tx(async (query) => {
    await query('select 1 from audit_head for update')
    const asked = orders.map((order) => shop.refund(...order))
    await untilLocked(outside.query, 'audit_head')
    // Without room the charge would wait for the refunds, and the refunds wait for us.
    const response = await other.charge(user)
    assert.equal(response.body.checkout_status, 'succeeded', response.text)
    assert.ok((await claimsWaiting()) <= 1, 'entries of one process are added one after the other')
    return { asked }
  })
  for (const [n, asked] of refunds.asked.entries()) {
    const response = await asked
    // Nothing is begun for one that waited too long, on a busy machine: it is sent again.
    const { body, text } = response.status === 503 ? await shop.refund(...orders[n]!) : response
    assert.equal(body.refund_status, 'succeeded', text)
  }
})

test('a refund that waited longer for its turn than its lease lasts is paid back all the same', async () => {
  const before = await Promise.all(Array.from({ length: 4 }, charged))
  const order = await charged()
  const waited = await outside.tx(async (query) => {
    await query('select 1 from audit_head for update')
    const asked = before.map((one) => shop.refund(...one))
    // One entry waits at the head; the others wait in their process.
    await until('the first to wait', async () => (await claimsWaiting()) === 1)
    const last = shop.refund(...order)
    // A lease has a quarter of the provider's time over, which is two seconds.
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    return { asked, last }
  })
  const response = await waited.last
  assert.equal(response.body.refund_status, 'succeeded', response.text)
  // The one at the head has waited longer than its lease allows too; those behind it may have lost patience.
  const others = await Promise.all(waited.asked)
  for (const { status, body, text } of others) {
    if (status === 200) assert.equal(body.refund_status, 'succeeded', text)
    else assert.equal(status, 503, text)
  }
  assert.ok(others.some(({ status }) => status === 200))
})

test('503 for a refund that waits too long for its turn, and nothing is begun', async () => {
  const orders = await Promise.all(Array.from({ length: 5 }, charged))
  const asked = await outside.tx(async (query) => {
    await query('select 1 from audit_head for update')
    const refunds = orders.map((order) => shop.refund(...order, { idempotency_key: 'k' }))
    const first = await Promise.race(refunds)
    assert.deepEqual([first.status, first.headers['retry-after']], [503, '1'], first.text)
    assert.match(first.body.message, /wait for the audit log: try again/)
    return { refunds }
  })
  const responses = await Promise.all(asked.refunds)
  assert.deepEqual([...new Set(responses.map(({ status }) => status))].sort(), [200, 503])
  const replays: ApiResponse[] = []
  for (const order of orders) replays.push(await settled(() => shop.refund(...order, { idempotency_key: 'k' })))
  // The key of a refused one is free. The others waited longer than their leases allow, and were claimed anew.
  for (const [n, { status, body }] of responses.entries()) {
    const replay = replays[n]!.body
    assert.deepEqual([replay.refund_status, replay.idempotent_replay], ['succeeded', status === 200])
    if (status === 200) assert.equal(replay.refund_id, body.refund_id)
    assert.equal((await billing.ledger(replay.refund_id)).length, 1)
  }
})

test('an erasure that waits for a profile delays no refunds, even with few connections', async () => {
  const small = await startBilling({ PROVIDER_TIMEOUT_MS: '8000', DATABASE_CONNECTIONS: '3' })
  const elsewhere = openDb({ url: small.server.env.DATABASE_URL!, applicationName: 'outside', connections: 2 })
  try {
    const [one, other] = [await small.organization(), await small.organization()]
    await one.customer({ profileId: 'busy' })
    const user = await other.customer()
    const order = (await other.charge(user)).body.order_id
    const erasure = await elsewhere.tx(async (query) => {
      await query(`select 1 from profiles where id = 'busy' for update`)
      const key = one.projectKey
      const asked = small.server.api('/profiles/anonymize', { key, method: 'POST', body: { profile_ids: ['busy'] } })
      await untilLocked(elsewhere.query, 'profiles')
      const response = await other.refund(user, order)
      assert.equal(response.body.refund_status, 'succeeded', response.text)
      return { asked }
    })
    assert.equal((await erasure.asked).status, 200)
  } finally {
    await elsewhere.close()
    await small.stop()
  }
})

test('many erasures of one project, all of them held up, leave room for charges', async () => {
  const user = await shop.customer()
  const profiles = await Promise.all(
    Array.from({ length: MANY }, async (_, n) => {
      await shop.customer({ profileId: `erased-${n}` })
      return `erased-${n}`
    }),
  )
  const erase = (id: string) =>
    billing.server.api('/profiles/anonymize', { key: shop.projectKey, method: 'POST', body: { profile_ids: [id] } })
  const asked = await outside.tx(async (query) => {
    await query('select 1 from audit_head for update')
    const erasures = profiles.map(erase)
    await untilLocked(outside.query, 'audit_head')
    const response = await shop.charge(user)
    assert.equal(response.body.checkout_status, 'succeeded', response.text)
    return { erasures }
  })
  for (const [n, erasure] of asked.erasures.entries()) {
    const response = await erasure
    // Nothing is erased by one that waited too long, on a busy machine: it is sent again.
    const { status, text } = response.status === 503 ? await erase(profiles[n]!) : response
    assert.equal(status, 200, text)
  }
})
