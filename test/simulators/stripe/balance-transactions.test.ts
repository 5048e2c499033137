// Balance transactions of the Stripe dialect, through Stripe's own client: fees, exchange, and what a charge that waits tells.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { columns } from '../../support/rows.ts'
import { openStripeSimulator, savedCard } from '../../support/simulators.ts'
import { until } from '../../support/time.ts'

const simulator = await openStripeSimulator()
after(() => simulator.cleanUp())
const stripe = simulator.client()

/** A charge of a card, with its balance transaction expanded. */
async function charged(amount: number, currency: string, token?: string): Promise<Stripe.Charge> {
  const paid = { ...(await savedCard(stripe, token)), confirm: true, off_session: true }
  const expand = ['latest_charge.balance_transaction']
  const { latest_charge } = await stripe.paymentIntents.create({ ...paid, amount, currency, expand })
  return latest_charge as Stripe.Charge
}

const sums = ({ amount, fee, net, currency, exchange_rate, type }: Stripe.BalanceTransaction) => [
  ...[type, amount, fee, net, currency, exchange_rate],
]

test('a charge pays 2.9 % and 30 cents, and another currency is exchanged first', async () => {
  const [usd, eur, jpy] = [await charged(1050, 'usd'), await charged(1000, 'eur'), await charged(1000, 'jpy')]
  const posted = [usd, eur, jpy].map((charge) => charge.balance_transaction as Stripe.BalanceTransaction)
  assert.deepEqual(posted.map(sums), [
    ['charge', 1050, 60, 990, 'usd', null],
    ['charge', 1080, 64, 1016, 'usd', 1.08],
    ['charge', 670, 40, 630, 'usd', 0.0067],
  ])
  assert.deepEqual(columns(posted[1]!.fee_details, 'amount', 'currency', 'type'), [[64, 'usd', 'stripe_fee']])
  const found = await stripe.balanceTransactions.retrieve(posted[1]!.id, { expand: ['source'] })
  assert.deepEqual([found.id, (found.source as Stripe.Charge).payment_intent], [posted[1]!.id, eur.payment_intent])
})

test('a refund keeps the fee, one that fails is given back, and a won dispute gives its fee back', async () => {
  const charge = await charged(2000, 'eur')
  const refund = await stripe.refunds.create({ charge: charge.id, amount: 500 })
  await simulator.control(`/refunds/${refund.id}/fail`)
  const listed = await stripe.balanceTransactions.list({ source: refund.id })
  assert.deepEqual(listed.data.map(sums), [
    ['refund_failure', 540, 0, 540, 'usd', 1.08],
    ['refund', -540, 0, -540, 'usd', 1.08],
  ])
  const { failure_balance_transaction } = await stripe.refunds.retrieve(refund.id)
  assert.equal(failure_balance_transaction, listed.data[0]!.id)
  const dispute = await simulator.control<{ id: string }>('/disputes', { charge: charge.id })
  await simulator.control(`/disputes/${dispute.id}/close`, { status: 'won' })
  const { balance_transactions } = await stripe.disputes.retrieve(dispute.id)
  assert.deepEqual(balance_transactions.map(sums), [
    ['adjustment', -2160, 1500, -3660, 'usd', 1.08],
    ['adjustment', 2160, -1500, 3660, 'usd', 1.08],
  ])
})

test('a charge may enter the balance after it succeeded, with an event', async () => {
  const charge = await charged(1000, 'usd', 'pm_sim_balance_after_60000ms')
  assert.deepEqual([charge.status, charge.balance_transaction], ['succeeded', null])
  await simulator.control('/clock', { advance_ms: 60_000 })
  const updates = () => stripe.events.list({ type: 'charge.updated' })
  await until('the event', async () => (await updates()).data.length === 1)
  const { object, previous_attributes } = (await updates()).data[0]!.data as Stripe.ChargeUpdatedEvent.Data
  assert.deepEqual([object.id, previous_attributes], [charge.id, { balance_transaction: null }])
  const [posted] = (await stripe.balanceTransactions.list({ source: charge.id })).data
  assert.deepEqual([posted!.id, posted!.fee], [object.balance_transaction, 59])
})

test('the balance is the sum of what entered it; a failed charge does not', async () => {
  const before = (await stripe.balanceTransactions.list({ limit: 100 })).data
  await assert.rejects(charged(1000, 'usd', 'pm_card_chargeDeclined'), { code: 'card_declined' })
  const after = (await stripe.balanceTransactions.list({ limit: 100 })).data
  assert.equal(after.length, before.length)
  const { available } = await stripe.balance.retrieve()
  assert.equal(
    available[0]!.amount,
    after.reduce((sum, { net }) => sum + net, 0),
  )
  await assert.rejects(stripe.balanceTransactions.retrieve('txn_unknown'), { statusCode: 404 })
})
