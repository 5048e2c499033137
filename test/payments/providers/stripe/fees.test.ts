// Fees as Stripe may tell them and its simulator does not: kinds that are no payment, and currencies that ISO 4217 has not.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { StripeProvider } from '../../../../src/payments/providers/stripe/stripe.ts'
import { TEST_KEY } from '../../../support/simulators.ts'
import { HandClock } from '../../../support/time.ts'

const charge = { id: 'py_1', object: 'charge', payment_intent: null }
const dispute = { id: 'du_1', object: 'dispute', payment_intent: 'pi_1' }
const entry = {
  id: 'txn_1',
  type: 'payment',
  amount: 1000,
  fee: 59,
  net: 941,
  currency: 'usd',
  created: 1,
  source: charge,
}

let returned: object
const server = createServer((_request, response) =>
  response.setHeader('content-type', 'application/json').end(JSON.stringify(returned)),
)
await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const account = { secretKey: TEST_KEY, merchantId: 'acct_1', isSandbox: true }
const provider = new StripeProvider({ ...account, apiUrl, clock: new HandClock() })
after(() => {
  provider.close()
  server.close()
})

async function read(more: object) {
  returned = { ...entry, ...more }
  const fee = await provider.feeOf('txn_1')
  if (fee !== undefined && 'outcome' in fee) assert.fail(fee.why)
  return fee && [fee.move, fee.transactionIds.join(), `${fee.amountMinor} ${fee.currencyCode}`]
}

test('a payment without a PaymentIntent is named by its charge alone', async () => {
  assert.deepEqual(await read({}), ['sale', 'py_1', '59 USD'])
})

test('amounts are in units of ISO 4217: 2.00 ISK of Stripe are 2', async () => {
  assert.deepEqual(await read({ currency: 'isk', fee: 200 }), ['sale', 'py_1', '2 ISK'])
})

test('an entry with only a fee is a chargeback if the fee was taken, a reversal if it was returned', async () => {
  const alone = { type: 'adjustment', amount: 0, source: dispute }
  assert.deepEqual(await read({ ...alone, fee: 1500, net: -1500 }), ['chargeback', 'du_1', '1500 USD'])
  assert.deepEqual(await read({ ...alone, fee: -1500, net: 1500 }), ['chargeback_reversal', 'du_1', '-1500 USD'])
})

test('no fee of a payment: a payout, a failed debit, a fee of the account, a currency that is unknown', async () => {
  assert.equal(await read({ type: 'payout', source: { id: 'po_1', object: 'payout' } }), undefined)
  assert.equal(await read({ type: 'payment_failure_refund', amount: -1000 }), undefined)
  assert.equal(await read({ type: 'stripe_fee', source: null }), undefined)
  assert.equal(await read({ currency: 'usdc' }), undefined)
})
