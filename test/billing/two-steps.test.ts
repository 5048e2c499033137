// Charges at a provider that prepares and confirms: the handle is stored first, and nothing is charged without it.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { oneOffCharge } from '../../src/billing/charge/charge.ts'
import { type Order, ordersInProgress } from '../../src/billing/charge/orders.ts'
import type { BillingContext } from '../../src/billing/context.ts'
import { CHARGE, look } from '../../src/billing/unknown/look.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { chargeOf, contextOf } from '../support/in-process.ts'
import { twoStepProvider } from '../support/two-step-provider.ts'

let billing: Billing
let shop: Organization
let user: string
let there: ReturnType<typeof twoStepProvider>
before(async () => {
  // Only the tests look into what is unknown.
  billing = await startBilling({}, { worker: false })
  shop = await billing.organization()
})
beforeEach(async () => {
  user = await shop.customer()
  there = twoStepProvider()
})
after(() => billing.stop())

const request = (key?: string) => chargeOf(user, '10.50', key)
const context = (more: Partial<BillingContext> = {}) => contextOf(billing.db, there.provider, more)

const charge = (more: Partial<BillingContext> = {}, asked = request()) => oneOffCharge(context(more), shop.id, asked)

const order = async () => {
  const [row] = await billing.db.query(
    `select order_id, status, provider_handle, provider_customer, prepared_at, not_found_at, charge_transaction_id,
       round(extract(epoch from next_look_at - greatest(created_at, begun_at, handed_over_at))) as due_in
     from orders where organization_id = $1 and external_id = $2`,
    [shop.id, user],
  )
  return row
}

/** Takes the user's order, as another process does once its lease has passed. */
async function takeOrder(): Promise<Order> {
  await billing.db.query('update orders set lease_until = null where external_id = $1', [user])
  const found = await ordersInProgress.find(billing.db.query, (await order())!.order_id!)
  return (await ordersInProgress.take(billing.db, found!, 5_000))!
}

/** Looks at the user's order once its lease has passed. */
const lookAgain = async () => look(context(), CHARGE, await takeOrder())

/** A database that fails at statements of this name, once the statement is done or before it. */
function dying(name: string, when: 'before' | 'after'): Db {
  const query = (async (statement, params) => {
    const isIt = typeof statement !== 'string' && statement.name === name
    if (isIt && when === 'before') throw new Error('Connection terminated')
    const rows = await billing.db.query(statement, params)
    // A first claim may only learn which account must be ready.
    if (isIt && rows.some((row) => row['order_id'] !== null)) throw new Error('Connection terminated')
    return rows
  }) as Db['query']
  return { ...billing.db, query }
}

test('prepared, handle stored, confirmed: one charge, with handle and customer kept', async () => {
  assert.equal((await charge()).checkout_status, 'succeeded')
  assert.deepEqual(there.calls, ['prepare', 'confirm'])
  const { provider_handle, provider_customer, prepared_at, charge_transaction_id } = (await order())!
  const [payment] = there.charged()
  assert.deepEqual(
    [provider_handle, provider_customer, charge_transaction_id],
    [payment!.handle, 'cus_1', `ch_${payment!.handle}`],
  )
  assert.notEqual(prepared_at, null)
})

test('the next charge of the card names the provider’s customer', async () => {
  await charge()
  let customer: string | null | undefined
  const prepare = there.provider.prepare!
  there.provider.prepare = (asked) => {
    customer = asked.providerCustomer
    return prepare(asked)
  }
  await charge({}, request('another'))
  assert.equal(customer, 'cus_1')
})

test('the handle is committed before the confirmation is sent', async () => {
  const { confirm } = there.provider
  let stored: string | null | undefined
  there.provider.confirm = async (asked) => {
    stored = (await order())!.provider_handle
    return confirm!(asked)
  }
  await charge()
  assert.equal(stored, there.charged()[0]!.handle)
})

describe('a process that dies', () => {
  test('before it prepared: cancelled without a word to the provider', async () => {
    await charge({ db: dying('claim orders', 'after') }).catch(() => {})
    assert.equal((await lookAgain()).status, 'cancelled')
    assert.deepEqual(there.calls, [])
  })

  for (const when of ['before', 'after'] as const) {
    test(`${when} the handle was stored: nothing is charged, then cancelled`, async () => {
      const db = dying('store handle of prepared payment', when)
      assert.equal((await charge({ db })).checkout_status, 'processing')
      assert.deepEqual(there.calls, ['prepare'])
      assert.equal((await lookAgain()).status, 'cancelled')
      assert.deepEqual(there.charged(), [])
      assert.deepEqual(
        [...there.payments.values()].map(({ state }) => state),
        [when === 'before' ? 'prepared' : 'cancelled'],
      )
    })
  }

  test('after the confirmation, whose answer nobody had: succeeded, charged once', async () => {
    there.faults.set('confirm', 'unheard')
    assert.equal((await charge()).checkout_status, 'processing')
    there.faults.clear()
    assert.equal((await lookAgain()).status, 'succeeded')
    assert.equal(there.charged().length, 1)
    assert.equal((await charge()).idempotent_replay, true)
    assert.deepEqual(there.calls, ['prepare', 'confirm', 'lookUp'])
  })

  test('before the confirmation arrived: cancelled at the provider first', async () => {
    there.faults.set('confirm', 'lost')
    await charge()
    assert.equal((await lookAgain()).status, 'cancelled')
    assert.deepEqual(there.calls, ['prepare', 'confirm', 'lookUp', 'refuse'])
    assert.deepEqual(there.charged(), [])
  })
})

test('another process took the order while the payment was prepared: it is not confirmed', async () => {
  const { prepare } = there.provider
  there.provider.prepare = async (asked) => {
    const prepared = await prepare!(asked)
    assert.equal((await lookAgain()).status, 'cancelled')
    return prepared
  }
  await charge()
  assert.deepEqual(there.calls, ['prepare'])
  assert.equal((await order())!.status, 'cancelled')
})

test('another process took the order and has not settled it yet: it is not confirmed, and its handle is not stored', async () => {
  const { prepare } = there.provider
  let theirs: Order | undefined
  there.provider.prepare = async (asked) => {
    const prepared = await prepare!(asked)
    theirs = await takeOrder()
    return prepared
  }
  assert.equal((await charge()).checkout_status, 'processing')
  assert.deepEqual(there.calls, ['prepare'])
  assert.equal((await order())!.provider_handle, null)
  assert.equal((await look(context(), CHARGE, theirs!)).status, 'cancelled')
  assert.deepEqual(there.charged(), [])
})

test('an order that its process is charging is taken by no other', async () => {
  const { confirm } = there.provider
  let theirs: Order | undefined
  there.provider.confirm = async (asked) => {
    const found = await ordersInProgress.find(billing.db.query, (await order())!.order_id!)
    theirs = await ordersInProgress.take(billing.db, found!, 5_000)
    return confirm!(asked)
  }
  assert.equal((await charge()).checkout_status, 'succeeded')
  assert.equal(theirs, undefined)
})

test('a decline at the confirmation is failed', async () => {
  there.faults.set('confirm', 'declined')
  assert.equal((await charge()).checkout_status, 'failed')
})

test('a payment that the provider rejects for good is failed, and never confirmed', async () => {
  there.faults.set('prepare', 'rejected')
  assert.equal((await charge()).checkout_status, 'failed')
  assert.deepEqual(there.calls, ['prepare'])
})

test('turned away before it began: 503, nothing is kept, and the key is free', async () => {
  there.faults.set('prepare', 'not_begun')
  await assert.rejects(charge(), { status: 503 })
  assert.equal(await order(), undefined)
  there.faults.clear()
  const { checkout_status, idempotent_replay } = await charge()
  assert.deepEqual([checkout_status, idempotent_replay], ['succeeded', false])
})

test('pending is looked at after an hour, six hours, then daily, and settled when the provider has decided', async () => {
  there.faults.set('confirm', 'pending')
  assert.equal((await charge()).checkout_status, 'processing')
  const pauses = [(await order())!.due_in]
  for (const age of ['2 hours', '9 hours']) {
    await billing.db.query(
      `update orders set created_at = db_clock() - $2::interval, begun_at = db_clock() - $2::interval where external_id = $1`,
      [user, age],
    )
    await lookAgain()
    pauses.push((await order())!.due_in)
  }
  assert.deepEqual(pauses.map(Number), [3600, 21600, 86400])
  there.decide('succeeded')
  assert.equal((await lookAgain()).status, 'succeeded')
})

describe('in an organization that was restored', () => {
  beforeEach(() => billing.db.query(`update organizations set restored_from = db_clock() where id = $1`, [shop.id]))
  after(() => billing.db.query('update organizations set restored_from = null where id = $1', [shop.id]))

  test('a charge that the backup forgot is found by its key and not made again', async () => {
    await charge()
    for (const table of ['consumables', 'report_transactions', 'orders'])
      await billing.db.query(
        `delete from ${table} where external_id = $1 ${table === 'report_transactions' ? 'and not imported' : ''}`,
        [user],
      )
    there.calls.length = 0
    assert.equal((await charge()).checkout_status, 'succeeded')
    assert.deepEqual(there.calls, ['findByKey'])
    assert.equal(there.charged().length, 1)
  })

  test('an order whose handle the backup forgot is not cancelled but settled', async () => {
    there.faults.set('confirm', 'unheard')
    await charge()
    await billing.db.query('update orders set provider_handle = null where external_id = $1', [user])
    assert.equal((await lookAgain()).status, 'succeeded')
    assert.equal(there.charged().length, 1)
  })

  test('a new charge asks first and is made', async () => {
    assert.equal((await charge()).checkout_status, 'succeeded')
    assert.deepEqual(there.calls, ['findByKey', 'prepare', 'confirm'])
  })
})

test('an amount that the provider can never charge is a 400 before anything is claimed', async () => {
  there = twoStepProvider({ accepts: () => 'The smallest amount is 0.50 USD.' })
  await assert.rejects(charge(), { status: 400, message: 'The smallest amount is 0.50 USD.' })
  assert.equal(await order(), undefined)
})

test('where nothing can be cancelled: two look-ups that find nothing, minutes apart and past the deadline', async () => {
  const oneStep = { ...there.provider.traits, prepares: false, refuse: 'wait_out' } as const
  there = twoStepProvider({ traits: oneStep, charge: async () => ({ outcome: 'unknown', why: 'no answer' }) })
  const aged = (age: string, notFound?: string) =>
    billing.db.query(
      `update orders set created_at = db_clock() - $2::interval,
         not_found_at = coalesce(db_clock() - $3::interval, not_found_at) where external_id = $1`,
      [user, age, notFound ?? null],
    )
  await charge()
  assert.equal((await lookAgain()).status, 'processing', 'it may still be on its way')
  assert.equal((await order())!.not_found_at, null)
  await aged('1 minute')
  assert.equal((await lookAgain()).status, 'processing', 'found nothing for the first time')
  assert.notEqual((await order())!.not_found_at, null)
  assert.equal((await lookAgain()).status, 'processing', 'too soon after the first time')
  await aged('5 minutes', '4 minutes')
  assert.equal((await lookAgain()).status, 'cancelled')
})
