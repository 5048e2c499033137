// Charges at a provider that prepares and confirms, later: while they are pending, without their handle, and where none can be cancelled.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { twoStepProvider } from './two-step-provider.ts'
import { setUpTwoSteps } from './two-steps.ts'

const setup = setUpTwoSteps()
const { charge, lookAgain, order } = setup

test('pending is looked at after an hour, six hours, then daily, and settled when the provider has decided', async () => {
  setup.there.faults.set('confirm', 'pending')
  assert.equal((await charge()).checkout_status, 'processing')
  const pauses = [(await order())!.due_in]
  const { pending_since } = (await order())!
  assert.ok(pending_since)
  for (const age of ['2 hours', '9 hours']) {
    await setup.db.query(
      `update orders set created_at = db_clock() - $2::interval, begun_at = db_clock() - $2::interval where external_id = $1`,
      [setup.user, age],
    )
    await lookAgain()
    pauses.push((await order())!.due_in)
  }
  assert.deepEqual(pauses.map(Number), [3600, 21600, 86400])
  assert.equal((await order())!.pending_since, pending_since)
  setup.there.decide('succeeded')
  assert.equal((await lookAgain()).status, 'succeeded')
})

test('an order whose handle a failover has just lost is not cancelled but settled', async () => {
  setup.there.faults.set('confirm', 'no_response')
  await charge()
  await setup.db.query('update orders set provider_handle = null where external_id = $1', [setup.user])
  assert.equal((await lookAgain()).status, 'succeeded')
  assert.equal(setup.there.charged().length, 1)
})

test('a new charge makes two calls', async () => {
  assert.equal((await charge()).checkout_status, 'succeeded')
  assert.deepEqual(setup.there.calls, ['prepare', 'confirm'])
})

test('where nothing can be cancelled: two look-ups that find nothing, minutes apart and past the deadline', async () => {
  const oneStep = { ...setup.there.provider.traits, prepares: false, refuse: 'wait_out' } as const
  setup.there = twoStepProvider({ traits: oneStep, charge: async () => ({ outcome: 'unknown', why: 'no response' }) })
  const aged = (age: string, notFound?: string) =>
    setup.db.query(
      `update orders set created_at = db_clock() - $2::interval,
         not_found_at = coalesce(db_clock() - $3::interval, not_found_at) where external_id = $1`,
      [setup.user, age, notFound ?? null],
    )
  // So long that it does not pass on a busy machine, and with its margin less than a minute.
  const look = () => lookAgain({ providerTimeoutMs: 30_000 })
  await charge()
  assert.equal((await look()).status, 'processing', 'it may still be on its way')
  assert.equal((await order())!.not_found_at, null)
  await aged('1 minute')
  assert.equal((await look()).status, 'processing', 'found nothing for the first time')
  assert.notEqual((await order())!.not_found_at, null)
  assert.equal((await look()).status, 'processing', 'too soon after the first time')
  await aged('5 minutes', '4 minutes')
  assert.equal((await look()).status, 'cancelled')
})
