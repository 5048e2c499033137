// A refund pays back the charge that was made here, whatever an import says of its order.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { startShop } from '../../support/billing.ts'
import { importLines, line } from '../../support/imports.ts'

const { billing, shop } = await startShop()

const importPayment = (given: object) =>
  importLines(billing.server.app, shop.projectId, [line.payment({ trx_id: randomUUID(), ...given })], { live: true })

test('an imported payment of an order of ours is skipped and counted', async () => {
  const user = await shop.customer()
  const { order_id } = (await shop.charge(user)).body
  const before = await shop.report({ order_id })
  const { read, written, skipped } = await importPayment({ external_id: user, order_id })
  assert.deepEqual({ read, written, skipped }, { read: 1, written: 0, skipped: 1 })
  assert.deepEqual(await shop.report({ order_id }), before)
})

test('an imported payment that names another customer with an order of ours is a bad line', async () => {
  const { order_id } = (await shop.charge(await shop.customer())).body
  const { rejected, rejects } = await importPayment({ external_id: await shop.customer(), order_id })
  assert.equal(rejected, 1)
  assert.match(JSON.stringify(rejects), /order_id is an order of another customer, which was charged here/)
})

test('a row that an older version imported under an order of ours does not decide what is paid back', async () => {
  const [one, two] = [await shop.customer(), await shop.customer()]
  const first = (await shop.charge(one)).body.order_id
  const second = (await shop.charge(two)).body.order_id
  // What an import could write before it looked at orders: the charge of another customer, and none at all.
  await billing.db.query(
    `insert into report_transactions select (json_populate_record(t, json_build_object('order_id', $2::text,
       'external_id', $3::text, 'trx_id', gen_random_uuid(), 'imported', true, 'trx_created_at', '2001-01-01'))).*
     from report_transactions t where order_id = $1`,
    [first, second, two],
  )
  await billing.db.query(
    `insert into report_transactions select (json_populate_record(t, json_build_object('trx_id', gen_random_uuid(),
       'imported', true, 'trx_created_at', '2001-01-02', 'psp_transaction_id', null))).*
     from report_transactions t where order_id = $1 and imported`,
    [second],
  )
  const { refund_status, refund_id } = (await shop.refund(two, second)).body
  assert.equal(refund_status, 'succeeded')
  const listed = (await (await fetch(`${billing.simulator.url}/ledger`)).json()) as Record<string, string>[]
  const charge = listed.find(({ reference }) => reference === second)
  const refund = listed.find(({ reference }) => reference === refund_id)
  assert.equal(refund!.charge_transaction_id, charge!.psp_transaction_id)
  assert.equal((await shop.consumables(one))[0].is_active, true)
  assert.equal((await shop.consumables(two))[0].is_active, false)
})
