// Charges and refunds at any size: none of their statements reads a growing table as a whole.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '../../../src/lib/pg/db.ts'
import { startShop } from '../../support/billing.ts'
import { type Caught, explain, type Node, watched } from '../../support/plans.ts'

// All that grows with charges; what one organization has few of may be read at once.
const GROWING = [
  'customers',
  'profiles',
  'orders',
  'refunds',
  'consumables',
  'report_transactions',
  'transactions',
  'events',
  'order_log',
]
const CUSTOMERS = 8_000

let caught: Caught[] = []
const view = (db: Db) => watched(db, (one) => caught.push(one))
const { billing, shop } = await startShop({}, { worker: false }, view)
await fill(billing.db)

async function fill(db: Db): Promise<void> {
  const people = `from generate_series(1, ${CUSTOMERS}) n`
  await db.query(`
    insert into profiles (project_id, id, created_at, updated_at)
    select '${shop.projectId}', 'pro_old_' || n, db_clock(), db_clock() ${people}`)
  await db.query(`
    insert into customers (organization_id, external_id, project_id, profile_id, created_at, updated_at)
    select '${shop.id}', 'old ' || n, '${shop.projectId}', 'pro_old_' || n, db_clock(), db_clock() ${people}`)
  await db.query(`
    insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, status,
      psp, payment_method_token, source_trx_id, provider_key, created_at, settled_at)
    select organization_id, gen_random_uuid(), external_id, project_id, 'k', 10, 'USD', 'succeeded', 'simulator', 'gone',
      gen_random_uuid(), gen_random_uuid()::text, db_clock(), db_clock() from customers`)
  await db.query(`
    insert into consumables (organization_id, consumable_id, order_id, external_id, amount, currency_code, granted_at,
      updated_at)
    select organization_id, gen_random_uuid(), order_id, external_id, amount, currency_code, settled_at, settled_at
    from orders`)
  await db.query(`
    insert into refunds (organization_id, refund_id, order_id, external_id, amount, currency_code, status, provider_key,
      created_at, settled_at, updated_at)
    select organization_id, gen_random_uuid(), order_id, external_id, 1, currency_code, 'failed',
      gen_random_uuid()::text, created_at, settled_at, settled_at from orders`)
  await db.query(`
    insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
      amount, currency_code, status, psp, psp_transaction_type, payment_method_token)
    select organization_id, external_id, true, settled_at, order_id, gen_random_uuid(),
      timestamptz '2026-01-01' + row_number() over () * interval '1 second', 10, 'USD', 'succeeded', 'simulator', 'sale', 'gone'
    from orders`)
  await db.query(`
    insert into transactions (project_id, id, created_at, updated_at, profile_id, currency, price, sandbox)
    select project_id, 'trn_' || id, created_at, updated_at, id, 'USD', 1000, true from profiles`)
  await db.query(`
    insert into events (project_id, id, type, object_id, sequence, created_at, data, pending)
    select project_id, gen_random_uuid(), 'charge.succeeded', order_id, 1, settled_at, '{}', false from orders`)
  await db.query(`
    insert into order_log (organization_id, order_id, call, outcome, duration_ms, at)
    select organization_id, order_id, 'charge', 'succeeded', 1, settled_at from orders`)
  await db.query('analyze')
}

/** An index that is read without a condition is read as a whole, such as the one of all orders in progress. */
const isWhole = (node: Node) =>
  node['Node Type'] === 'Seq Scan' || (/^Index/.test(node['Node Type']) && node['Index Cond'] === undefined)

test('no statement of a charge, its replay, a decline or a refund reads a whole table or index', async () => {
  const user = await shop.customer({ profileId: 'pro_1' })
  const declined = await shop.customer({ token: 'pm_card_chargeDeclined' })
  caught = []
  const body = { idempotency_key: 'k', client_metadata: { some: 'thing' } }
  const { order_id } = (await shop.charge(user, body)).body
  assert.equal((await shop.charge(user, body)).body.idempotent_replay, true)
  assert.equal((await shop.charge(declined)).body.checkout_status, 'failed')
  assert.equal((await shop.refund(user, order_id)).body.refund_status, 'succeeded')
  const statements = new Map(caught.map((one) => [one.text, one]))
  assert.ok(statements.size >= 15, `${statements.size} statements were caught`)
  const faults: string[] = []
  for (const statement of statements.values()) {
    if (!/^\s*(with|select|insert|update)/.test(statement.text)) continue
    const read = (await explain(billing.db, statement)).filter(isWhole)
    for (const node of read.filter((one) => GROWING.includes(one['Relation Name']!))) {
      faults.push(
        `${node['Index Name'] ?? node['Relation Name']} is read by ${statement.text.trim().replaceAll(/\s+/g, ' ').slice(0, 100)}`,
      )
    }
  }
  assert.deepEqual(faults, [])
})
