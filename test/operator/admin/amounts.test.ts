// Amounts that an operator sends are judged on their text, as those of the billing API are.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startShop } from '../../support/billing.ts'
import { addUnit } from '../../support/credits.ts'
import { column } from '../../support/rows.ts'

const { billing, shop } = await startShop()

/** The body is sent as it is written: a number in it has digits that no double holds. */
const send = (method: string, path: string, body: string) =>
  billing.server.admin(`/organizations/${shop.id}${path}`, {
    method,
    body,
    headers: ['Content-Type', 'application/json'],
  })

test('400 for a refund of 9.999999999999999999 USD, which is not 10', async () => {
  const user = await shop.customer()
  const { order_id } = (await shop.charge(user)).body
  const refund = (amount: string) =>
    send('POST', `/orders/${order_id}/refund`, `{"amount": ${amount}, "idempotency_key": "r"}`)
  const refused = await refund('9.999999999999999999')
  assert.deepEqual(
    [refused.status, refused.body.message],
    [400, 'amount must have at most 2 decimal places in USD, got 9.999999999999999999.'],
  )
  const made = await refund('9.990')
  assert.deepEqual([made.status, made.body.amount, made.body.refund_status], [200, 9.99, 'succeeded'])
})

test('400 for a maximum with more decimals than the currency', async () => {
  const refused = await send('PATCH', '', '{"one_off_charge_max_amount": {"USD": 99.999999999999999999}}')
  assert.equal(refused.status, 400)
  assert.match(String(refused.body.message), /got "USD=99\.999999999999999999"/)
  const set = await send('PATCH', '', '{"one_off_charge_max_amount": {"USD": 99.90}}')
  assert.deepEqual([set.status, set.body.one_off_charge_max_amount], [200, { '*': '1000', USD: '99.90' }])
})

test('200 for credits of 10.0 and a correction of -2.0, which the audit log has as they were sent', async () => {
  const external_id = await shop.customer()
  await addUnit(billing.db, shop.id, 'tokens')
  const about = `"external_id": "${external_id}", "unit": "tokens"`
  const granted = await send('POST', '/credits/grant', `{${about}, "amount": 10.0, "idempotency_key": "g"}`)
  const corrected = await send(
    'POST',
    '/credits/adjust',
    `{${about}, "amount": -2.0, "reason": "outage", "idempotency_key": "c"}`,
  )
  assert.deepEqual([granted.body.balance, corrected.body.balance], [10, 8])
  const entries = await billing.db.query(
    "select after ->> 'amount' as amount from audit_log where action like 'credits.%' order by sequence",
  )
  assert.deepEqual(column(entries, 'amount'), ['10.0', '-2.0'])
})
