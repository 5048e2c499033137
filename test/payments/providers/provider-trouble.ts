// The contract of payment providers during failures: lost responses, late charges, deadlines, outages.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChargeRequest } from '../../../src/payments/providers/provider.ts'
import { HandClock, until } from '../../support/time.ts'
import { assertSettled, type Charging, charged, chargeRequest, charging, refundRequest } from './charging.ts'
import type { Cards, Movements, Rig } from './provider-contract.ts'

/** Cards that make the connection to the provider, or the provider itself, fail. */
export interface Faults {
  chargeThenDrop: string
  dropNoCharge: string
  /** Breaks the connection and charges about 300 ms later. */
  late: string
  /** Charges, and responds after three seconds. */
  slow: string
  /** Charges normally; breaks the connection on a refund, whether or not it is made. */
  refundThenDrop: string
  refundDropped: string
}

/** The shared setup of the tests. */
export interface Contract {
  rig(): Rig
  driver(): Charging
  movements: Movements
}

export function troubleTests({ rig, driver, movements }: Contract, cards: Cards, faults: Faults): void {
  unknownOutcomeTests(driver, movements, cards.good, faults)
  lostRefundTests(driver, movements, faults)
  outageTests(rig, cards, faults)
}

function unknownOutcomeTests(driver: () => Charging, movements: Movements, good: string, cards: Faults): void {
  test('a charge whose response is lost is unknown, and a look-up finds it', async () => {
    const request = chargeRequest(cards.chargeThenDrop)
    assert.equal((await driver().charge(request)).outcome, 'unknown')
    assertSettled(await driver().lookUp(request), 'succeeded')
    assertSettled(await driver().refuse(request), 'succeeded')
    assert.equal((await movements(request.reference)).length, 1)
  })

  /** The outcome of a look-up of a payment that was never charged: with two steps the payment exists nevertheless. */
  const nothingYet = () => ({ outcome: driver().provider.traits.prepares ? 'unconfirmed' : 'not_found' })

  test('a charge whose request is lost is unknown, is not found, and cannot be made once it was refused', async () => {
    const request = chargeRequest(cards.dropNoCharge)
    assert.equal((await driver().charge(request)).outcome, 'unknown')
    assert.deepEqual(await driver().lookUp(request), nothingYet())
    if (driver().provider.traits.refuse === 'wait_out') {
      // Nothing is there to cancel, and the request may still come.
      assert.equal((await driver().refuse(request)).outcome, 'unknown')
      return assert.deepEqual(await movements(request.reference), [])
    }
    assert.deepEqual(await driver().refuse(request), { outcome: 'refused' })
    assert.deepEqual(await driver().refuse(request), { outcome: 'refused' })
    assert.deepEqual(await driver().lookUp(request), { outcome: 'refused' })
    assert.deepEqual(await driver().charge({ ...request, token: good }), { outcome: 'refused' })
    assert.deepEqual(await movements(request.reference), [])
  })

  test('a delayed request charges, unless its key was refused in between', async () => {
    if (driver().provider.traits.refuse === 'wait_out') {
      const request = chargeRequest(cards.late)
      assert.equal((await driver().charge(request)).outcome, 'unknown')
      await untilCharged(driver(), request)
      return assert.equal((await movements(request.reference)).length, 1)
    }
    const [coming, refused] = await beginLate()
    assert.deepEqual(await driver().lookUp(refused), { outcome: 'refused' })
    await untilCharged(driver(), coming)
    await sleep(100)
    assert.deepEqual(await driver().lookUp(refused), { outcome: 'refused' })
    assert.deepEqual(await movements(refused.reference), [])
  })

  /** Two late charges, of which the second is refused in time; on a busy machine it takes more than one attempt. */
  async function beginLate(): Promise<[coming: ChargeRequest, refused: ChargeRequest]> {
    for (;;) {
      const [coming, refused] = [chargeRequest(cards.late), chargeRequest(cards.late)]
      assert.equal((await driver().charge(coming)).outcome, 'unknown')
      assert.equal((await driver().charge(refused)).outcome, 'unknown')
      const early = await driver().lookUp(coming)
      const refusal = await driver().refuse(refused)
      if (early.outcome === 'succeeded' || refusal.outcome === 'succeeded') continue
      assert.deepEqual([early, refusal], [nothingYet(), { outcome: 'refused' }])
      return [coming, refused]
    }
  }

  test('a call given up by its caller is unknown', async () => {
    const response = await driver().charge(chargeRequest(cards.slow), () => AbortSignal.timeout(100))
    assert.deepEqual(response, { outcome: 'unknown', why: 'the call was given up' })
  })
}

function lostRefundTests(driver: () => Charging, movements: Movements, cards: Faults): void {
  test('refunds without a response are looked up and refused like charges, under their own keys', async () => {
    const done = refundRequest(await charged(driver(), cards.refundThenDrop), 100n)
    assert.equal((await driver().provider.refund(done)).outcome, 'unknown')
    assertSettled(await driver().provider.lookUpRefund(done), 'succeeded')
    assert.deepEqual(await driver().lookUp(done), { outcome: 'not_found' })
    const lost = refundRequest(await charged(driver(), cards.refundDropped), 100n)
    assert.equal((await driver().provider.refund(lost)).outcome, 'unknown')
    assert.deepEqual(await driver().provider.lookUpRefund(lost), { outcome: 'not_found' })
    const { provider } = driver()
    assert.equal(provider.refuseRefund === undefined, provider.traits.refuseRefund === 'wait_out')
    if (provider.refuseRefund) {
      assert.deepEqual(await provider.refuseRefund(lost), { outcome: 'refused' })
      assert.deepEqual(await provider.refund(lost), { outcome: 'refused' })
    }
    assert.deepEqual(await movements(lost.reference), [])
  })
}

function outageTests(rig: () => Rig, { good, whenDown }: Cards, cards: Faults): void {
  test('past the deadline is unknown, not failed', async () => {
    const driver = charging(rig().provider({ clock: new HandClock(), deadlineMs: 1_000 }))
    const { provider, charge } = driver
    let request: ChargeRequest
    // On a busy machine preparing the payment may take that long too: then once more.
    do {
      request = chargeRequest(cards.slow)
      assert.deepEqual(await charge(request), { outcome: 'unknown', why: 'no response within 1000 ms' })
    } while (provider.traits.prepares && driver.withHandle(request).handle === null)
    await untilCharged(driver, request)
    provider.close()
  })

  test('a provider that is down is unknown, opens the circuit, and recovers with what it knew', async () => {
    const clock = new HandClock()
    const { provider, charge, lookUp } = charging(rig().provider({ clock, circuit: { failures: 3, restMs: 5_000 } }))
    const { prepares } = provider.traits
    const request = chargeRequest(good)
    assertSettled(await charge(request), 'succeeded')
    await rig().stop()
    const down = whenDown ?? (prepares ? 'not_begun' : 'unknown')
    // The first call may use a connection whose end has not arrived yet: then nothing is known of it.
    for (const expected of [[down, 'unknown'], [down], [down]]) {
      assert.equal(provider.admits(), true)
      const { outcome } = await charge(chargeRequest(good))
      assert.ok(expected.includes(outcome), outcome)
    }
    assert.equal(provider.admits(), false)
    assert.equal(provider.circuitIsOpen(), true)
    assert.equal(await provider.isReachable(), false)
    await rig().start()
    clock.advance(5_000)
    assert.equal(provider.admits(), true)
    assertSettled(await lookUp(request), 'succeeded')
    assert.equal(await provider.isReachable(), true)
    assert.equal(provider.circuitIsOpen(), true, 'what moves no money proves nothing of what does')
    assertSettled(await charge(chargeRequest(good)), 'succeeded')
    assert.equal(provider.circuitIsOpen(), false)
    provider.close()
  })
}

async function untilCharged(driver: Charging, request: ChargeRequest): Promise<void> {
  await until('the charge', async () => (await driver.lookUp(request)).outcome === 'succeeded')
  assertSettled(await driver.lookUp(request), 'succeeded')
}
