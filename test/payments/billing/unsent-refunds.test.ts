// A refund whose first call was never accepted: it is sent again with pauses, ends, and is no refund that another program made.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { BillingContext } from '../../../src/payments/billing/context.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { REFUND } from '../../../src/payments/billing/refund/check.ts'
import { noDetails, type Provider } from '../../../src/payments/providers/provider.ts'
import { contextOf, never, setUpCharges, tooSlow } from './in-process.ts'
import { scriptedProvider } from './scripted-provider.ts'
import { twoSteps } from './two-step-provider.ts'

const setup = setUpCharges()

/** A refund that its process gave up before it called the provider, this long ago. */
async function unsent(age: string) {
  const { db, shop, user } = setup
  const { order_id } = (await shop.charge(user)).body
  const id = randomUUID()
  await db.query(
    `insert into refunds (organization_id, refund_id, order_id, external_id, amount, amount_given, currency_code, provider_key,
       created_at, next_look_at, is_unsent, not_found_at)
     values ($1, $2::uuid, $3, $4, 4, true, 'USD', $2::uuid::text, db_clock() - $5::interval, db_clock(), true, db_clock() - interval '4 minutes')`,
    [shop.id, id, order_id, user, age],
  )
  return id
}

async function lookAt(id: string, script: Partial<Provider>, more: Partial<BillingContext> = {}) {
  const { db } = setup
  const provider = scriptedProvider({ traits: twoSteps, refuseRefund: undefined as never, ...script })
  const found = await REFUND.rows.find(db.query, id)
  const taken = (await REFUND.rows.take(db, found!, 60_000))!
  await checkStatus(contextOf(db, provider, more), REFUND, taken)
  const [row] = await db.query(
    `select status, is_unsent, lease_until is null and next_look_at > handed_over_at + interval '1 second' as waits
     from refunds where refund_id = $1`,
    [id],
  )
  return row!
}

test('a conflict for a refund that was never sent makes one call a look, and the next one waits', async () => {
  const id = await unsent('1 minute')
  let calls = 0
  const refund = async () => {
    // Without a pause the calls would go on: the test ends them.
    if (++calls > 3) throw new Error('asked again without a pause')
    return { outcome: 'conflict' } as const
  }
  assert.deepEqual(await lookAt(id, { refund }), { status: 'processing', is_unsent: 't', waits: 't' })
  assert.equal(calls, 1)
})

test('a refund that was never sent is not sent by a look whose lease is nearly over', async () => {
  const id = await unsent('1 minute')
  assert.deepEqual(await lookAt(id, { refund: never }, tooSlow(setup.db)), {
    status: 'processing',
    is_unsent: 't',
    waits: 't',
  })
})

test('a refund that was never sent fails after the life of its key, although the dashboard made one of the same amount', async () => {
  const id = await unsent('2 days')
  const money = { amountMinor: 400n, currencyCode: 'USD', details: noDetails }
  const at = new Date().toISOString()
  const script = {
    lookUpRefund: async () => ({ outcome: 'not_found' }) as const,
    refundsOf: async () => [
      { key: null, reference: null, transactionId: 're_1', status: 'succeeded', at, ...money } as const,
    ],
  }
  assert.equal((await lookAt(id, script)).status, 'failed')
})
