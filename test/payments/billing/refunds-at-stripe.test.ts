// Refunds that Stripe and this database know differently: made there, without our metadata, beside soft ones, failed later.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { adoptRefundsOfCharge } from '../../../src/payments/billing/refund/adopt-of-charge.ts'
import { REFUND } from '../../../src/payments/billing/refund/check.ts'
import { refundsInProgress } from '../../../src/payments/billing/refund/row.ts'
import { tundishAgain } from '../../support/resident.ts'
import { MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'

// Each look is made by the test.
const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
const shop = await billing.shop()

const context = billingContext(billing.server.app)

const compare = () => reconcile(context, new Date(Date.now() - 3_600_000).toISOString())

/** A charge of 10.50 USD. */
async function charged(card?: string) {
  const { external_id } = await shop.customerWithCard(card)
  const body = { external_id, idempotency_key: 'k', amount: '10.50', currency_code: 'USD' }
  const { order_id } = (await shop.post('/payment/one_off_charge', body)).body
  const [order] = await billing.db.query('select charge_transaction_id from orders where order_id = $1', [order_id])
  const payment = order!.charge_transaction_id!
  const ask = async (more: object) => (await shop.refund(external_id, order_id, more)).body
  return {
    external_id,
    order_id,
    payment,
    refund: ask,
    /** What a notification about the charge does. */
    async notified() {
      const provider = await billing.server.app.providers.of(shop.id, 'stripe', MERCHANT)
      return adoptRefundsOfCharge(
        context,
        provider!,
        { psp: 'stripe', merchantId: MERCHANT, organizationId: shop.id },
        payment,
      )
    },
    madeThere: (amount: number) => billing.client.refunds.create({ payment_intent: payment, amount }),
    /** Origin, status and amount of each refund, in the order in which they came. */
    refunds: async () =>
      (
        await billing.db.query(
          'select origin, status, amount::text as amount, soft_refund from refunds where order_id = $1 order by created_at',
          [order_id],
        )
      ).map(
        ({ origin, status, amount, soft_refund }) => `${soft_refund === 't' ? 'soft' : origin} ${status} ${amount}`,
      ),
    sums: async () => {
      const [sums] = await billing.db.query(
        'select amount_refunded, amount_refunded_hard from orders where order_id = $1',
        [order_id],
      )
      return [sums!.amount_refunded, sums!.amount_refunded_hard].map(Number)
    },
    report: async () =>
      (await shop.report({ order_id }))
        .slice(1)
        .map((row) => `${row.psp_transaction_type} ${row.status} ${row.amount}`)
        .sort(),
    isActive: async () => (await shop.consumables(external_id))[0].is_active as boolean,
  }
}

/** Removes what we wrote into the metadata of the last refund, as a user of Stripe's dashboard may. */
async function removeMetadata(payment: string): Promise<string> {
  const [last] = (await billing.client.refunds.list({ payment_intent: payment })).data
  await billing.client.refunds.update(last!.id, { metadata: '' })
  return last!.id
}

/** A look at a refund by a process, `minutes` after the one before. */
async function lookAt(refundId: string, minutes = 5): Promise<string> {
  await billing.db.query(
    `update refunds set lease_until = null, begun_at = coalesce(begun_at, created_at) - make_interval(mins => $2),
       not_found_at = not_found_at - make_interval(mins => $2) where refund_id = $1`,
    [refundId, minutes],
  )
  const found = await refundsInProgress.find(billing.db.query, refundId)
  const taken = await refundsInProgress.take(billing.db, found!, 5_000)
  return (await checkStatus(context, REFUND, taken!)).status
}

const advance = (ms: number) => billing.stripe.control('/clock', { advance_ms: ms })

describe('a refund made at Stripe while ours is pending', () => {
  test('is in progress at once, and both succeed', async () => {
    const charge = await charged('pm_sim_refund_pending_60000ms')
    const own = await charge.refund({ amount: '4', idempotency_key: 'r' })
    assert.equal(own.refund_status, 'processing')
    await charge.madeThere(250)
    assert.deepEqual(await charge.notified(), ['in_progress', 'adopted'])
    assert.deepEqual(await charge.refunds(), ['tundish processing 4.00', 'provider processing 2.50'])
    assert.deepEqual(await charge.notified(), ['in_progress', 'in_progress'])
    const another = await charge.refund({ amount: '1', idempotency_key: 's' })
    assert.equal(another.message, 'Another refund of this order is in progress.')
    await advance(120_000)
    await charge.notified()
    assert.deepEqual(await charge.refunds(), ['tundish succeeded 4.00', 'provider succeeded 2.50'])
    assert.deepEqual(await charge.sums(), [6.5, 6.5])
    assert.deepEqual(await charge.report(), ['refund refunded 2.5', 'refund refunded 4'])
  })

  test('takes what ours can no longer have, and the sum stays the amount', async () => {
    const charge = await charged('pm_sim_refund_pending_60000ms')
    await billing.stripe.control('/faults', { method: 'POST', path: '/v1/refunds', kind: 'drop_before' })
    const own = await charge.refund({})
    assert.equal(own.refund_status, 'processing')
    await charge.madeThere(1000)
    await charge.notified()
    await advance(120_000)
    await charge.notified()
    await lookAt(own.refund_id)
    assert.equal(await lookAt(own.refund_id), 'failed')
    assert.deepEqual(await charge.refunds(), ['tundish failed 10.50', 'provider succeeded 10.00'])
    assert.deepEqual(await charge.sums(), [10, 10])
  })
})

describe('a refund of ours without its metadata at Stripe', () => {
  test('is found by its id', async () => {
    const charge = await charged('pm_sim_refund_pending_60000ms')
    const own = await charge.refund({ amount: '4', idempotency_key: 'r' })
    await removeMetadata(charge.payment)
    await lookAt(own.refund_id)
    assert.equal(await lookAt(own.refund_id), 'processing')
    await charge.notified()
    await advance(120_000)
    await charge.notified()
    assert.deepEqual(await charge.refunds(), ['tundish succeeded 4.00'])
  })

  test('and whose response was lost, is found by its amount, and not taken for another one', async () => {
    const charge = await charged()
    await billing.stripe.control('/faults', { method: 'POST', path: '/v1/refunds', kind: 'drop_after' })
    const own = await charge.refund({ amount: '4', idempotency_key: 'r' })
    assert.equal(own.refund_status, 'processing')
    const id = await removeMetadata(charge.payment)
    assert.deepEqual(await charge.notified(), ['may_be_ours'])
    await lookAt(own.refund_id)
    assert.equal(await lookAt(own.refund_id), 'succeeded')
    assert.deepEqual(await charge.notified(), ['known'])
    const [row] = await billing.db.query('select provider_transaction_id from refunds where order_id = $1', [
      charge.order_id,
    ])
    assert.equal(row!.provider_transaction_id, id)
    assert.deepEqual(await charge.refunds(), ['tundish succeeded 4.00'])
    assert.deepEqual(await charge.sums(), [4, 4])
  })

  test('that is there, with one of the same amount made at Stripe: they are two', async () => {
    const charge = await charged()
    await billing.stripe.control('/faults', { method: 'POST', path: '/v1/refunds', kind: 'drop_after' })
    await charge.refund({ amount: '4', idempotency_key: 'r' })
    await charge.madeThere(400)
    await charge.notified()
    assert.deepEqual(await charge.refunds(), ['tundish succeeded 4.00', 'provider succeeded 4.00'])
  })

  test('is not one that was made before it', async () => {
    const charge = await charged()
    await charge.madeThere(400)
    await billing.stripe.control('/faults', { method: 'POST', path: '/v1/refunds', kind: 'drop_before' })
    const own = await charge.refund({ amount: '4', idempotency_key: 'r' })
    // Stripe's clock is ahead of ours by what the tests before have advanced it.
    await billing.db.query(
      `update refunds set created_at = created_at + interval '1 day', begun_at = created_at where refund_id = $1`,
      [own.refund_id],
    )
    assert.deepEqual(await charge.notified(), ['adopted'])
    await lookAt(own.refund_id)
    assert.equal(await lookAt(own.refund_id), 'failed')
    assert.deepEqual((await charge.refunds()).sort(), ['provider succeeded 4.00', 'tundish failed 4.00'])
  })
})

describe('a refund made at Stripe after a soft one', () => {
  test('of all counts as the money that moved, and revokes the consumable', async () => {
    const charge = await charged()
    await charge.refund({ soft_refund: true })
    await charge.madeThere(1050)
    const { adopted, findings } = await compare()
    assert.deepEqual([adopted, findings], [1, []])
    assert.deepEqual(await charge.refunds(), ['soft succeeded 10.50', 'provider succeeded 10.50'])
    assert.deepEqual([...(await charge.sums()), await charge.isActive()], [10.5, 10.5, false])
    assert.deepEqual(await charge.report(), ['refund refunded 10.5', 'soft_refund refunded 10.5'])
    assert.deepEqual((await compare()).findings, [])
  })

  test('that fails leaves the soft one', async () => {
    const charge = await charged()
    await charge.refund({ soft_refund: true, amount: '4', idempotency_key: 's' })
    const { id } = await charge.madeThere(1050)
    await charge.notified()
    assert.deepEqual([...(await charge.sums()), await charge.isActive()], [10.5, 10.5, false])
    await billing.stripe.control(`/refunds/${id}/fail`)
    await charge.notified()
    assert.deepEqual([...(await charge.sums()), await charge.isActive()], [4, 0, true])
    const rest = await charge.refund({})
    assert.deepEqual([rest.amount, rest.amount_refunded], [6.5, 10.5])
  })

  test('and together with one of ours leaves neither unsettled', async () => {
    const charge = await charged('pm_sim_refund_pending_60000ms')
    await charge.refund({ soft_refund: true, amount: '5', idempotency_key: 's' })
    await charge.refund({ amount: '5', idempotency_key: 'r' })
    await charge.madeThere(550)
    await charge.notified()
    await advance(120_000)
    await charge.notified()
    assert.deepEqual(await charge.refunds(), [
      'soft succeeded 5.00',
      'tundish succeeded 5.00',
      'provider succeeded 5.50',
    ])
    assert.deepEqual([...(await charge.sums()), await charge.isActive()], [10.5, 10.5, false])
  })
})

describe('without a notification', () => {
  test('a refund that fails after it succeeded is undone by a reconciliation', async () => {
    const charge = await charged()
    assert.equal((await charge.refund({})).refund_status, 'succeeded')
    const [last] = (await billing.client.refunds.list({ payment_intent: charge.payment })).data
    await billing.stripe.control(`/refunds/${last!.id}/fail`)
    const { adopted, findings } = await compare()
    assert.deepEqual([adopted, findings], [1, []])
    assert.deepEqual([...(await charge.sums()), await charge.isActive()], [0, 0, true])
    assert.deepEqual(await charge.report(), ['refund failed 10.5', 'refund refunded 10.5'])
  })

  test('a refund that was ended as failed and that Stripe has made is recorded, once', async () => {
    const charge = await charged()
    await billing.stripe.control('/faults', { method: 'POST', path: '/v1/refunds', kind: 'drop_before' })
    const own = await charge.refund({ amount: '4', idempotency_key: 'r' })
    await lookAt(own.refund_id)
    assert.equal(await lookAt(own.refund_id), 'failed')
    // As when the request was on its way for longer than anyone waits.
    const [row] = await billing.db.query('select provider_key from refunds where refund_id = $1', [own.refund_id])
    const metadata = { tundish_refund: own.refund_id, tundish_key: row!.provider_key! }
    await billing.client.refunds.create({ payment_intent: charge.payment, amount: 400, metadata })
    const { adopted, findings } = await compare()
    assert.deepEqual([adopted, findings], [1, []])
    assert.deepEqual(await charge.refunds(), ['tundish failed 4.00', 'tundish succeeded 4.00'])
    assert.deepEqual(await charge.sums(), [4, 4])
    assert.deepEqual((await compare()).findings, [])
    assert.equal((await charge.refund({ amount: '4', idempotency_key: 'r' })).refund_status, 'failed')
  })
})

test('400 for an amount that Stripe cannot pay back, and nothing begins', async () => {
  const { external_id } = await shop.customerWithCard()
  const body = { external_id, idempotency_key: 'k', amount: '20', currency_code: 'MGA' }
  const { order_id, checkout_status } = (await shop.post('/payment/one_off_charge', body)).body
  assert.equal(checkout_status, 'succeeded')
  const half = await shop.refund(external_id, order_id, { amount: '0.5', idempotency_key: 'r' })
  assert.deepEqual(
    [half.status, half.body.message],
    [400, "amount must be a multiple of 1.00 MGA, which is Stripe's smallest step."],
  )
  assert.deepEqual(await billing.db.query('select 1 from refunds where order_id = $1', [order_id]), [])
  const rest = await shop.refund(external_id, order_id, { amount: '5', idempotency_key: 'r' })
  assert.deepEqual([rest.body.refund_status, rest.body.amount_refunded], ['succeeded', 5])
})

test('a dispute of another program’s payment in a currency that cannot be converted does not stop a reconciliation', async () => {
  const { payment, isActive } = await charged()
  const { customer, payment_method } = await shop.customerWithCard()
  const foreign = await billing.client.paymentIntents.create({
    ...{ amount: 500_000, currency: 'ugx', customer, payment_method, confirm: true },
  })
  const { latest_charge } = await billing.client.paymentIntents.retrieve(payment)
  await billing.stripe.control('/disputes', { charge: latest_charge })
  await billing.stripe.control('/disputes', { charge: foreign.latest_charge })
  const { findings } = await compare()
  assert.deepEqual([findings, await isActive()], [[], false])
})

test('a refund that an operator ended as failed and that Stripe makes is recorded', async () => {
  const charge = await charged('pm_sim_refund_pending_60000ms')
  const own = await charge.refund({ amount: '4', idempotency_key: 'r' })
  const { code } = await tundishAgain(
    ['charges', 'resolve', own.refund_id, '--as', 'failed', '--because', 'the bank said so'],
    billing.server.env,
  )
  assert.equal(code, 0)
  await advance(120_000)
  assert.deepEqual(await charge.notified(), ['adopted'])
  assert.deepEqual(await charge.notified(), ['known'])
  assert.deepEqual(await charge.refunds(), ['tundish failed 4.00', 'tundish succeeded 4.00'])
  assert.deepEqual(await charge.sums(), [4, 4])
})
