// The Stripe adapter beside charging: refunds, disputes, movements, the account, and the erasure of customers.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Movement } from '../../../../src/payments/providers/provider.ts'
import { column, columns } from '../../../support/rows.ts'
import { savedCard } from '../../../support/simulators.ts'
import { assertSettled, chargeRequest, refundRequest } from '../charging.ts'
import { openStripeAccount } from './stripe-account.ts'

const account = await openStripeAccount()
after(() => account.cleanUp())

async function charged(token = 'pm_card_visa') {
  const response = await account.charge(chargeRequest(token))
  assertSettled(response, 'succeeded')
  return response
}

test('a pending refund is pending until Stripe decides', async () => {
  const request = refundRequest(await charged('pm_sim_refund_pending_60000ms'), 500n)
  const pending = await account.provider.refund(request)
  assert.ok(pending.outcome === 'pending' && pending.transactionId?.startsWith('re_'))
  assert.equal((await account.provider.lookUpRefund(request)).outcome, 'pending')
  await account.control('/clock', { advance_ms: 60_000 })
  const response = await account.provider.lookUpRefund(request)
  assertSettled(response, 'succeeded')
  assert.equal(response.amountMinor, 500n)
})

test('a refund that fails after it succeeded is failed with its reason, in the list too', async () => {
  const charge = await charged('pm_sim_refund_fails_after_60000ms')
  const request = refundRequest(charge, 500n)
  assertSettled(await account.provider.refund(request), 'succeeded')
  await account.control('/clock', { advance_ms: 60_000 })
  const response = await account.provider.lookUpRefund(request)
  assertSettled(response, 'failed')
  assert.equal(response.details.psp_reason_code, 'lost_or_stolen_card')
  const chargeTransactionId = charge.details.psp_transaction_id ?? ''
  const listed = await account.provider.refundsOf({ chargeTransactionId })
  assert.ok(Array.isArray(listed))
  assert.deepEqual(
    listed.map(({ key, reference, status, amountMinor }) => ({ key, reference, status, amountMinor })),
    [{ key: request.key, reference: request.reference, status: 'failed', amountMinor: 500n }],
  )
})

test('a refund whose key Stripe has forgotten is found again when nothing is left to refund', async () => {
  const request = refundRequest(await charged(), 1050n)
  assertSettled(await account.provider.refund(request), 'succeeded')
  await account.control('/clock', { advance_ms: 25 * 3_600_000 })
  assertSettled(await account.provider.refund(request), 'succeeded')
  const refunds = (await account.ledger()).filter(({ metadata }) => metadata['tundish_key'] === request.key)
  assert.equal(refunds.length, 1)
})

test('refunds and disputes made elsewhere are listed with their charge', async () => {
  const [refunded, disputed] = [await charged(), await charged()]
  const idOf = ({ details }: typeof refunded) => details.psp_transaction_id ?? ''
  const chargeOf = async (id: string) => (await account.stripe.paymentIntents.retrieve(id)).latest_charge
  await account.control('/refunds', { charge: await chargeOf(idOf(refunded)), amount: 50 })
  const refunds = await account.provider.refundsOf({ chargeTransactionId: idOf(refunded) })
  assert.ok(Array.isArray(refunds))
  assert.deepEqual(columns(refunds, 'key', 'amountMinor'), [[null, 50n]])
  const { id } = await account.control<{ id: string }>('/disputes', { charge: await chargeOf(idOf(disputed)) })
  const disputes = () => account.provider.disputesOf({ chargeTransactionId: idOf(disputed) })
  const open = await disputes()
  assert.ok(Array.isArray(open))
  assert.deepEqual(
    open.map(({ at: _at, ...dispute }) => dispute),
    [
      {
        disputeId: id,
        chargeTransactionId: idOf(disputed),
        status: 'open',
        fundsWithdrawn: true,
        reinstatedMinor: 0n,
        amountMinor: 1050n,
        currencyCode: 'USD',
        reason: 'general',
      },
    ],
  )
  await account.control(`/disputes/${id}/close`, { status: 'won' })
  const won = await disputes()
  assert.ok(Array.isArray(won))
  assert.deepEqual([won[0]?.status, won[0]?.reinstatedMinor], ['won', 1050n])
})

for (const [currencyCode, amountMinor, partMinor] of [
  ['USD', 1050n, 300n],
  ['EUR', 1050n, 333n],
  // The account's currency has other decimals.
  ['ISK', 15_000n, 4_001n],
] as const) {
  test(`a dispute of ${currencyCode} that is lost returns the part that was refunded before, and no more`, async () => {
    const charge = await account.charge(chargeRequest('pm_card_visa', { currencyCode, amountMinor }))
    assertSettled(charge, 'succeeded')
    assertSettled(await account.provider.refund({ ...refundRequest(charge, partMinor), currencyCode }), 'succeeded')
    const chargeTransactionId = charge.details.psp_transaction_id ?? ''
    const { latest_charge } = await account.stripe.paymentIntents.retrieve(chargeTransactionId)
    const { id } = await account.control<{ id: string }>('/disputes', { charge: latest_charge })
    await account.control(`/disputes/${id}/close`, { status: 'lost' })
    const disputes = await account.provider.disputesOf({ chargeTransactionId })
    assert.ok(Array.isArray(disputes))
    const [dispute] = disputes
    assert.deepEqual([dispute?.status, dispute?.amountMinor], ['lost', amountMinor])
    assert.equal(dispute?.reinstatedMinor, partMinor)
  })
}

test('movements come oldest first, over more pages and spans than one, without the payments of others', async () => {
  const days = (n: number) => n * 86_400_000
  const busy = await openStripeAccount({ wallClockMs: () => Date.now() - days(10) })
  const own: string[] = []
  for (let day = 0; day < 9; day++) {
    for (let n = 0; n < (day === 1 ? 120 : 2); n++) {
      const request = chargeRequest('pm_card_visa')
      assertSettled(await busy.charge(request), 'succeeded')
      own.push(request.key)
    }
    const { customer, payment_method } = await savedCard(busy.stripe)
    await busy.stripe.paymentIntents.create({ amount: 500, currency: 'usd', customer, payment_method, confirm: true })
    await busy.control('/clock', { advance_ms: days(1) })
  }
  const listed: Movement[] = []
  for await (const movement of busy.provider.list(new Date(Date.now() - days(10.5)).toISOString()))
    listed.push(movement)
  assert.deepEqual(listed.map(({ key }) => key).sort(), own.sort())
  assert.deepEqual(column(listed, 'at'), listed.map(({ at }) => at).sort())
  const recent: Movement[] = []
  for await (const movement of busy.provider.list(new Date(Date.now() - days(5.5)).toISOString())) recent.push(movement)
  assert.equal(recent.length, 8)
  await busy.cleanUp()
})

test('a payment that was made before the instant to list from and confirmed after it is listed', async () => {
  const request = chargeRequest('pm_card_visa')
  const prepared = await account.provider.prepare(request)
  assert.ok(prepared.outcome === 'prepared')
  const { now_ms } = await account.control<{ now_ms: number }>('/clock', { advance_ms: 20 * 60_000 })
  const since = new Date(now_ms - 60_000).toISOString()
  assertSettled(await account.provider.confirm({ ...request, handle: prepared.handle }), 'succeeded')
  const keys: (string | null)[] = []
  for await (const { key } of account.provider.list(since)) keys.push(key)
  assert.deepEqual(keys, [request.key])
})

test('the account is described with its mode, and a wrong key is reported', async () => {
  const described = await account.provider.describeAccount()
  assert.ok(described.outcome === 'described')
  assert.deepEqual([described.isSandbox, described.country, described.chargesEnabled], [true, 'US', true])
  assert.ok(described.currencies.includes('USD') && !described.currencies.includes('UGX'))
  const wrong = await account.adapter({ secretKey: 'sk_live_0000' }).describeAccount()
  assert.deepEqual(wrong, {
    outcome: 'not_begun',
    why: 'returned status 401 invalid_request_error',
    cause: 'credentials',
  })
  const live = await openStripeAccount({ livemode: true })
  const other = await live.provider.describeAccount()
  assert.ok(other.outcome === 'described' && !other.isSandbox)
  await live.cleanUp()
})

test('a customer is emptied or deleted, its cards detached; repeating it changes nothing', async () => {
  for (const how of ['empty', 'delete'] as const) {
    const { customer, payment_method } = await savedCard(account.stripe)
    await account.stripe.customers.update(customer, { phone: '+1555', address: { line1: '1 Road' } })
    for (let turn = 0; turn < 2; turn++) {
      assert.deepEqual(await account.provider.eraseCustomer(customer, how), { outcome: 'erased' })
    }
    const left = await account.stripe.customers.retrieve(customer)
    if (how === 'delete') assert.ok(left.deleted)
    else assert.ok(!left.deleted && [left.name, left.email, left.phone, left.address].every((field) => field === null))
    const card = await account.provider.savedCard(payment_method)
    assert.deepEqual(card, { customer: null, last4: '4242', network: 'visa', expirationDate: '12/2034' })
    assertSettled(await account.charge(chargeRequest(payment_method)), 'failed')
  }
  assert.equal(await account.provider.savedCard('pm_nowhere'), undefined)
  assert.deepEqual(await account.provider.eraseCustomer('cus_nowhere', 'empty'), { outcome: 'erased' })
})

test('unknown for an erasure that met an error, and done when it is repeated', async () => {
  const { customer } = await savedCard(account.stripe)
  await account.control('/faults', { path: `/v1/customers/${customer}`, method: 'POST', kind: 'error_before' })
  assert.equal((await account.provider.eraseCustomer(customer, 'empty')).outcome, 'unknown')
  assert.equal((await account.provider.eraseCustomer(customer, 'empty')).outcome, 'erased')
})
