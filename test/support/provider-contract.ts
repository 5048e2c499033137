// The contract of payment providers as tests: every adapter runs them against its provider.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../src/lib/clock.ts'
import type { Movement, Provider, Settled } from '../../src/providers/provider.ts'
import { type Charging, charging } from './charging.ts'
import { HandClock } from './hand-clock.ts'
import { assertSettled, chargeRequest, refundRequest } from './payments.ts'

/** A provider that can be switched off and on, and adapters for it. */
export interface Rig {
  provider(limits: { clock: Clock; deadlineMs?: number; circuit?: { failures: number; restMs: number } }): Provider
  stop(): Promise<void>
  start(): Promise<void>
  cleanUp(): Promise<void>
}

/** Cards of the provider's test mode, by what they do. */
export interface Cards {
  good: string
  /** The most that one charge may be, in minor units. */
  mostMinor: bigint
  /** Card → the reason code it is declined with, each its own. */
  declined: Record<string, string>
  /** Absent for a provider that cannot be made to fail: then only what works is tested. */
  faults?: Faults
}

/** Cards that make the way to the provider, or the provider itself, fail. */
export interface Faults {
  chargeThenDrop: string
  dropNoCharge: string
  /** Breaks the connection and charges about 300 ms later. */
  late: string
  /** Charges, and answers after three seconds. */
  slow: string
  /** Charges well; breaks the connection on a refund, done or not. */
  refundThenDrop: string
  refundDropped: string
}

/** Declares the contract's tests; `open` makes a rig whose provider runs. */
export function providerContract(name: string, open: () => Promise<Rig>, cards: Cards): void {
  describe(`${name} keeps the provider contract`, () => {
    let rig: Rig
    let provider: Provider
    let driver: Charging
    before(async () => {
      rig = await open()
      provider = rig.provider({ clock: new HandClock() })
      driver = charging(provider)
    })
    after(async () => {
      provider.close()
      await rig.cleanUp()
    })
    const movements = async (reference: string) => {
      const found: Movement[] = []
      for await (const movement of provider.list('2000-01-01T00:00:00Z')) {
        if (movement.reference === reference) found.push(movement)
      }
      return found
    }

    chargingTests(() => driver, movements, cards)
    refundTests(() => driver, movements, cards)
    const { faults } = cards
    if (!faults) return
    unknownOutcomeTests(() => driver, movements, cards.good, faults)
    lostRefundTests(() => driver, movements, faults)
    outageTests(() => rig, cards.good, faults)
  })
}

type Movements = (reference: string) => Promise<Movement[]>

function chargingTests(driver: () => Charging, movements: Movements, cards: Cards): void {
  test('a good card is charged, and what was charged is told back', async () => {
    const request = chargeRequest(cards.good, { amountMinor: cards.mostMinor })
    const answer = await driver().charge(request)
    assertSettled(answer, 'succeeded')
    assert.equal(answer.reference, request.reference)
    assert.equal(answer.amountMinor, cards.mostMinor)
    assert.equal(answer.currencyCode, 'USD')
    assert.equal(answer.details.psp_transaction_type, 'sale')
    assert.match(answer.details.pm_data_last4 ?? '', /^[0-9]{4}$/)
    assert.equal(answer.details.psp_reason_code, null)
    const [movement, ...others] = await movements(request.reference)
    assert.equal(others.length, 0)
    assert.deepEqual(
      { type: movement?.type, key: movement?.key, amountMinor: movement?.amountMinor, id: movement?.transactionId },
      { type: 'charge', key: request.key, amountMinor: request.amountMinor, id: answer.details.psp_transaction_id },
    )
  })

  test('one key is charged once, in turn and at the same time', async () => {
    const request = chargeRequest(cards.good)
    const answers: object[] = await Promise.all(Array.from({ length: 20 }, () => driver().charge(request)))
    answers.push(await driver().charge(request))
    for (const answer of answers) assert.deepEqual(answer, answers[0])
    assertSettled(answers[0] as Settled, 'succeeded')
    assert.equal((await movements(request.reference)).length, 1)
  })

  test('a known key under a new reference tells of the first charge', async () => {
    const first = chargeRequest(cards.good)
    await driver().charge(first)
    const answer = await driver().charge({ ...first, reference: randomUUID() })
    assertSettled(answer, 'succeeded')
    assert.equal(answer.reference, first.reference)
  })

  test('conflict for a known key with another amount or currency, and nothing is charged', async () => {
    const request = chargeRequest(cards.good)
    await driver().charge(request)
    assert.deepEqual(await driver().charge({ ...request, amountMinor: 1051n }), { outcome: 'conflict' })
    assert.deepEqual(await driver().charge({ ...request, currencyCode: 'EUR' }), { outcome: 'conflict' })
    assert.equal((await movements(request.reference)).length, 1)
  })

  for (const [card, code] of Object.entries(cards.declined)) {
    test(`${card} fails with the reason ${code}`, async () => {
      const request = chargeRequest(card)
      const answer = await driver().charge(request)
      assertSettled(answer, 'failed')
      assert.equal(answer.details.psp_reason_code, code)
      assert.ok(answer.details.psp_reason_message && answer.details.psp_reason_type)
      assert.match(answer.details.psp_reason_decline_type ?? '', /^(soft|hard)$/)
      assert.deepEqual(await driver().charge(request), answer)
      assert.deepEqual(await driver().lookUp(request), answer)
      assert.deepEqual(await movements(request.reference), [])
    })
  }
}

function unknownOutcomeTests(driver: () => Charging, movements: Movements, good: string, cards: Faults): void {
  test('charged but not heard is unknown, and a look-up finds it', async () => {
    const request = chargeRequest(cards.chargeThenDrop)
    assert.equal((await driver().charge(request)).outcome, 'unknown')
    assertSettled(await driver().lookUp(request), 'succeeded')
    assertSettled(await driver().refuse(request), 'succeeded')
    assert.equal((await movements(request.reference)).length, 1)
  })

  /** What a look-up returns of a payment that was never charged: with two steps it exists all the same. */
  const nothingYet = () => ({ outcome: driver().provider.traits.prepares ? 'unconfirmed' : 'not_found' })

  test('not charged and not heard is unknown, is not found, and after a refusal can never be charged', async () => {
    const request = chargeRequest(cards.dropNoCharge)
    assert.equal((await driver().charge(request)).outcome, 'unknown')
    assert.deepEqual(await driver().lookUp(request), nothingYet())
    assert.deepEqual(await driver().refuse(request), { outcome: 'refused' })
    assert.deepEqual(await driver().refuse(request), { outcome: 'refused' })
    assert.deepEqual(await driver().lookUp(request), { outcome: 'refused' })
    assert.deepEqual(await driver().charge({ ...request, token: good }), { outcome: 'refused' })
    assert.deepEqual(await movements(request.reference), [])
  })

  test('a late charge comes, unless its key was refused meanwhile', async () => {
    const coming = chargeRequest(cards.late)
    const refused = chargeRequest(cards.late)
    assert.equal((await driver().charge(coming)).outcome, 'unknown')
    assert.equal((await driver().charge(refused)).outcome, 'unknown')
    assert.deepEqual(await driver().lookUp(coming), nothingYet())
    assert.deepEqual(await driver().refuse(refused), { outcome: 'refused' })
    await eventually(async () => assertSettled(await driver().lookUp(coming), 'succeeded'))
    await sleep(100)
    assert.deepEqual(await driver().lookUp(refused), { outcome: 'refused' })
    assert.deepEqual(await movements(refused.reference), [])
  })

  test('a call given up by its caller is unknown', async () => {
    const answer = await driver().charge(chargeRequest(cards.slow), AbortSignal.timeout(100))
    assert.deepEqual(answer, { outcome: 'unknown', why: 'the call was given up' })
  })
}

function refundTests(driver: () => Charging, movements: Movements, cards: Cards): void {
  test('a refund pays back once for its key, and never more than was charged', async () => {
    const charge = await charged(driver(), cards.good)
    const part = refundRequest(charge, 1_000n)
    const [one, two] = await Promise.all([driver().provider.refund(part), driver().provider.refund(part)])
    assertSettled(one, 'succeeded')
    assert.equal(one.details.psp_transaction_type, 'refund')
    assert.deepEqual(two, one)
    assert.equal((await movements(part.reference)).length, 1)
    assertSettled(await driver().provider.refund(refundRequest(charge, 51n)), 'failed')
    assertSettled(await driver().provider.refund(refundRequest(charge, 50n)), 'succeeded')
    assertSettled(await driver().provider.refund(refundRequest(charge, 1n)), 'failed')
  })

  test('the refunds of a charge are listed with their keys, and those of another charge are not', async () => {
    const charge = await charged(driver(), cards.good)
    const first = refundRequest(charge, 1_000n)
    const second = refundRequest(charge, 50n)
    await driver().provider.refund(first)
    await driver().provider.refund(second)
    await driver().provider.refund(refundRequest(await charged(driver(), cards.good), 7n))
    const found = await driver().provider.refundsOf(first)
    assert.ok(Array.isArray(found))
    assert.deepEqual(
      found.map(({ key, reference, status, amountMinor, currencyCode }) => [
        key,
        reference,
        status,
        amountMinor,
        currencyCode,
      ]),
      [
        [first.key, first.reference, 'succeeded', 1_000n, 'USD'],
        [second.key, second.reference, 'succeeded', 50n, 'USD'],
      ],
    )
    assert.equal((await movements(first.reference))[0]?.chargeTransactionId, first.chargeTransactionId)
  })

  test('refunds racing for the rest: one gets it', async () => {
    const charge = await charged(driver(), cards.good)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => driver().provider.refund(refundRequest(charge, 600n))),
    )
    assert.equal(answers.filter(({ outcome }) => outcome === 'succeeded').length, 1)
  })

  test('a refund of an unknown charge or in another currency fails; a known key for another amount conflicts', async () => {
    const charge = await charged(driver(), cards.good)
    const lost = refundRequest(charge, 10n, { chargeTransactionId: 'nobody-knows' })
    assertSettled(await driver().provider.refund(lost), 'failed')
    assertSettled(await driver().provider.refund(refundRequest(charge, 10n, { currencyCode: 'EUR' })), 'failed')
    const good = refundRequest(charge, 10n)
    assertSettled(await driver().provider.refund(good), 'succeeded')
    assert.deepEqual(await driver().provider.refund({ ...good, amountMinor: 11n }), { outcome: 'conflict' })
  })
}

async function charged(driver: Charging, token: string): Promise<Settled> {
  const answer = await driver.charge(chargeRequest(token))
  assertSettled(answer, 'succeeded')
  return answer
}

function lostRefundTests(driver: () => Charging, movements: Movements, cards: Faults): void {
  test('refunds not heard of are looked up and refused as charges are, under keys of their own', async () => {
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

function outageTests(rig: () => Rig, good: string, cards: Faults): void {
  test('past the deadline is unknown, not failed', async () => {
    const { provider, charge, lookUp } = charging(rig().provider({ clock: new HandClock(), deadlineMs: 1_000 }))
    const request = chargeRequest(cards.slow)
    const begun = performance.now()
    assert.deepEqual(await charge(request), { outcome: 'unknown', why: 'no answer within 1000 ms' })
    assert.ok(performance.now() - begun < 2_900)
    await eventually(async () => assertSettled(await lookUp(request), 'succeeded'))
    provider.close()
  })

  test('a provider that is down is unknown, opens the circuit, and recovers with what it knew', async () => {
    const clock = new HandClock()
    const { provider, charge, lookUp } = charging(rig().provider({ clock, circuit: { failures: 3, restMs: 5_000 } }))
    const { prepares } = provider.traits
    const request = chargeRequest(good)
    assertSettled(await charge(request), 'succeeded')
    await rig().stop()
    for (let i = 0; i < 3; i++) {
      assert.equal(provider.admits(), true)
      assert.equal((await charge(chargeRequest(good))).outcome, prepares ? 'not_begun' : 'unknown')
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

async function eventually(check: () => Promise<void>): Promise<void> {
  for (let tries = 0; tries < 50; tries++) {
    const isFine = await check().then(
      () => true,
      () => false,
    )
    if (isFine) return
    await sleep(50)
  }
  await check()
}
