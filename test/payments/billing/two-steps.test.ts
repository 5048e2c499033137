// Charges at a provider that prepares and confirms: the handle is stored first, and nothing is charged without it.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Order, ordersInProgress } from '../../../src/payments/billing/charge/row.ts'
import { CHARGE } from '../../../src/payments/billing/kinds.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { column } from '../../support/rows.ts'
import { LONG_LEASE_MS } from './in-process.ts'
import { setUpTwoSteps } from './two-steps.ts'

const setup = setUpTwoSteps()
const { charge, context, dying, lookAgain, order, request, takeOrder } = setup

test('prepared, handle stored, confirmed: one charge, with handle and customer kept', async () => {
  assert.equal((await charge()).checkout_status, 'succeeded')
  assert.deepEqual(setup.there.calls, ['prepare', 'confirm'])
  const { provider_handle, provider_customer, prepared_at, charge_transaction_id } = (await order())!
  const [payment] = setup.there.charged()
  assert.deepEqual(
    [provider_handle, provider_customer, charge_transaction_id],
    [payment!.handle, 'cus_1', payment!.handle],
  )
  assert.notEqual(prepared_at, null)
})

test('the next charge of the card names the provider’s customer', async () => {
  await charge()
  let customer: string | null | undefined
  const prepare = setup.there.provider.prepare!
  setup.there.provider.prepare = (asked) => {
    customer = asked.providerCustomer
    return prepare(asked)
  }
  await charge({}, request('another'))
  assert.equal(customer, 'cus_1')
})

test('the handle is committed before the confirmation is sent', async () => {
  const { confirm } = setup.there.provider
  let stored: string | null | undefined
  setup.there.provider.confirm = async (asked) => {
    stored = (await order())!.provider_handle
    return confirm!(asked)
  }
  await charge()
  assert.equal(stored, setup.there.charged()[0]!.handle)
})

describe('a process that dies', () => {
  test('before it prepared: cancelled, for the provider does not know the key', async () => {
    await charge({ db: dying('claim orders', 'after') }).catch(() => {})
    assert.equal((await lookAgain()).status, 'cancelled')
    assert.deepEqual(setup.there.calls, ['findByKey'])
  })

  for (const when of ['before', 'after'] as const) {
    test(`${when} the handle was stored: nothing is charged, then cancelled`, async () => {
      const db = dying('store handle of prepared payment', when)
      assert.equal((await charge({ db })).checkout_status, 'processing')
      assert.deepEqual(setup.there.calls, ['prepare'])
      assert.equal((await lookAgain()).status, 'cancelled')
      assert.deepEqual(setup.there.charged(), [])
      assert.deepEqual(column([...setup.there.payments.values()], 'state'), ['cancelled'])
    })
  }

  test('after the confirmation, whose response was lost: succeeded, charged once', async () => {
    setup.there.faults.set('confirm', 'no_response')
    assert.equal((await charge()).checkout_status, 'processing')
    setup.there.faults.clear()
    assert.equal((await lookAgain()).status, 'succeeded')
    assert.equal(setup.there.charged().length, 1)
    assert.equal((await charge()).idempotent_replay, true)
    assert.deepEqual(setup.there.calls, ['prepare', 'confirm', 'lookUp'])
  })

  test('before the confirmation arrived: cancelled at the provider first', async () => {
    setup.there.faults.set('confirm', 'lost')
    await charge()
    assert.equal((await lookAgain()).status, 'cancelled')
    assert.deepEqual(setup.there.calls, ['prepare', 'confirm', 'lookUp', 'refuse'])
    assert.deepEqual(setup.there.charged(), [])
  })
})

test('another process took the order while the payment was prepared: it is not confirmed', async () => {
  const { prepare } = setup.there.provider
  setup.there.provider.prepare = async (asked) => {
    const prepared = await prepare!(asked)
    assert.equal((await lookAgain()).status, 'cancelled')
    return prepared
  }
  await charge()
  assert.deepEqual(setup.there.calls, ['prepare', 'findByKey', 'refuse'])
  assert.equal((await order())!.status, 'cancelled')
})

test('another process took the order and has not settled it yet: it is not confirmed, and its handle is not stored', async () => {
  const { prepare } = setup.there.provider
  let theirs: Order | undefined
  setup.there.provider.prepare = async (asked) => {
    const prepared = await prepare!(asked)
    theirs = await takeOrder()
    return prepared
  }
  assert.equal((await charge()).checkout_status, 'processing')
  assert.deepEqual(setup.there.calls, ['prepare'])
  assert.equal((await order())!.provider_handle, null)
  assert.equal((await checkStatus(context(), CHARGE, theirs!)).status, 'cancelled')
  assert.deepEqual(setup.there.charged(), [])
})

test('an order that its process is charging is taken by no other', async () => {
  const { confirm } = setup.there.provider
  let theirs: Order | undefined
  setup.there.provider.confirm = async (asked) => {
    const found = await ordersInProgress.find(setup.db.query, (await order())!.order_id!)
    theirs = await ordersInProgress.take(setup.db, found!, 5_000)
    return confirm!(asked)
  }
  assert.equal((await charge({ providerTimeoutMs: LONG_LEASE_MS })).checkout_status, 'succeeded')
  assert.equal(theirs, undefined)
})

test('a payment that the provider rejects for good is failed, and never confirmed', async () => {
  setup.there.faults.set('prepare', 'rejected')
  assert.equal((await charge()).checkout_status, 'failed')
  assert.deepEqual(setup.there.calls, ['prepare'])
})
