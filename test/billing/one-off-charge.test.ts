// Custom charges through HTTP: every check in its order, exactness, replay, reuse, and what a success writes.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'

let billing: Billing
let shop: Organization
before(async () => {
  billing = await startBilling()
  shop = await billing.organization()
})
after(() => billing.stop())

test('a charge succeeds, once', async () => {
  const user = await shop.customer()
  const answer = await shop.charge(user, { idempotency_key: 'k' })
  assert.equal(answer.status, 200, answer.text)
  const { order_id, ...rest } = answer.body
  assert.deepEqual(rest, {
    action_required_token: '',
    checkout_status: 'succeeded',
    failed_message_for_user: '',
    idempotent_replay: false,
  })
  const again = await shop.charge(user, { idempotency_key: 'k' })
  assert.deepEqual(again.body, { ...answer.body, idempotent_replay: true })
  assert.equal((await billing.ledger(order_id)).length, 1)
})
