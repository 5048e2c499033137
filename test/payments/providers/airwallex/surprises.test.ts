// What surprised at other providers, checked for the Airwallex adapter.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { AirwallexProvider } from '../../../../src/payments/providers/airwallex/airwallex.ts'
import { HandClock } from '../../../support/time.ts'
import { assertSettled, charged, chargeRequest, charging, refundRequest } from '../charging.ts'
import { providerSurprises } from '../provider-surprises.ts'
import { openAirwallex } from './dialect.ts'

const server = await openAirwallex()
const account = { secretKey: 'client:key', apiUrl: server.url, merchantId: 'airwallex-1', isSandbox: true }
const provider = new AirwallexProvider({ ...account, clock: new HandClock() })
const driver = charging(provider)
after(() => {
  provider.close()
  return server.cleanUp()
})

/** A charge that was made, and its payment there, which `change` alters. */
async function changed(change: object, consent = 'cst_good') {
  const request = chargeRequest(consent)
  await driver.charge(request)
  const [id, intent] = [...server.intents].find(([, { merchant_order_id }]) => merchant_order_id === request.key)!
  server.intents.set(id, { ...intent, ...change })
  return { request, lookUp: () => driver.lookUp(request) }
}

providerSurprises('Airwallex', {
  async withheld() {
    const request = chargeRequest('cst_good')
    assertSettled(await driver.charge(request), 'succeeded')
    assertSettled(await driver.charge(request), 'succeeded')
    assert.equal([...server.intents.values()].filter((one) => one['merchant_order_id'] === request.key).length, 1)
  },
  async forgotten() {
    const request = chargeRequest('cst_good')
    assertSettled(await driver.charge(request), 'succeeded')
    server.forgetKeys()
    // A stored handle is confirmed at most once, whether or not the key is known.
    const handle = driver.withHandle(request).handle!
    assertSettled(await provider.confirm({ ...request, handle }), 'succeeded')
  },
  late: 'Payments are looked up by their id; only an order that a backup lost is searched in the list.',
  async twice() {
    const request = chargeRequest('cst_good')
    await driver.charge(request)
    server.forgetKeys()
    assert.equal((await provider.prepare(request)).outcome, 'prepared')
    assertSettled(await provider.findByKey(request, { since: '2020-01-01T00:00:00Z' }), 'succeeded')
  },
  async reopened() {
    const { request } = await changed({}, 'cst_insufficient_funds')
    const intent = server.intents.get(driver.withHandle(request).handle!)
    assert.equal(intent!['status'], 'CANCELLED')
  },
  async authentication() {
    const { request, lookUp } = await changed({}, 'cst_authentication_required')
    assert.equal(server.intents.get(driver.withHandle(request).handle!)!['status'], 'CANCELLED')
    const found = await lookUp()
    assertSettled(found, 'failed')
    assert.equal(found.details.psp_reason_code, 'authentication_required')
  },
  async authorized() {
    const { lookUp } = await changed({ status: 'REQUIRES_CAPTURE', captured_amount: 0 })
    assert.equal((await lookUp()).outcome, 'unknown')
  },
  async partial() {
    const { lookUp } = await changed({ captured_amount: 4.5 })
    const found = await lookUp()
    assertSettled(found, 'succeeded')
    assert.deepEqual([found.amountMinor, found.askedMinor], [450n, 1050n])
  },
  attempts: 'The adapter confirms once; attempts at other processors inside one payment do not exist.',
  async units() {
    for (const [currencyCode, amountMinor, sent] of [
      ['JPY', 2980n, 2980],
      ['USD', 2980n, 29.8],
      ['KWD', 2980n, 2.98],
    ] as const) {
      const request = chargeRequest('cst_good', { currencyCode, amountMinor })
      const found = await driver.charge(request)
      assertSettled(found, 'succeeded')
      assert.deepEqual([found.amountMinor, found.currencyCode], [amountMinor, currencyCode])
      assert.equal(server.intents.get(driver.withHandle(request).handle!)!['amount'], sent)
    }
  },
  async newState() {
    assert.equal((await (await changed({ status: 'DISPUTED' })).lookUp()).outcome, 'unknown')
  },
  async refundFails() {
    const refund = refundRequest(await charged(driver, 'cst_good'), 100n)
    assertSettled(await driver.refund(refund), 'succeeded')
    Object.assign(server.refunds.at(-1)!, { status: 'FAILED' })
    assertSettled(await provider.lookUpRefund(refund), 'failed')
  },
  async refundUnnamed() {
    const charge = await charged(driver, 'cst_good')
    await driver.refund(refundRequest(charge, 100n))
    Object.assign(server.refunds.at(-1)!, { metadata: undefined })
    const found = await provider.refundsOf({ chargeTransactionId: charge.details.psp_transaction_id! })
    assert.ok(Array.isArray(found))
    assert.deepEqual([found[0]!.key, found[0]!.amountMinor], [null, 100n])
  },
  async cleared() {
    const { request, lookUp } = await changed({ metadata: {} })
    const found = await lookUp()
    assertSettled(found, 'succeeded')
    assert.equal(found.reference, request.reference)
  },
  async otherAccount() {
    const { outcome } = await provider.lookUp(chargeRequest('cst_good', { handle: 'int_elsewhere' }))
    assert.equal(outcome, 'unknown')
  },
  async longIds() {
    // The server rejects a request_id of more than 64 characters; a key has 64.
    assertSettled(await driver.charge(chargeRequest('cst_good', { key: 'f'.repeat(64) })), 'succeeded')
  },
  async oddBody() {
    for (const change of [{ amount: 'many' }, { currency: 'QQQ' }, { status: 7 }])
      assert.equal((await (await changed(change)).lookUp()).outcome, 'unknown')
  },
})
