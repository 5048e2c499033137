// The contract of payment providers as tests, which every adapter runs against its provider.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { Clock } from '../../../src/lib/clock.ts'
import type { Settled } from '../../../src/payments/providers/outcomes.ts'
import type { Movement, Provider } from '../../../src/payments/providers/provider.ts'
import { HandClock } from '../../support/time.ts'
import { assertSettled, type Charging, charged, chargeRequest, charging, refundRequest } from './charging.ts'
import { type Faults, troubleTests } from './provider-trouble.ts'

/** A provider that can be switched off and on, and adapters for it. */
export interface Rig {
  provider(limits: { clock: Clock; deadlineMs?: number; circuit?: { failures: number; restMs: number } }): Provider
  stop(): Promise<void>
  start(): Promise<void>
  cleanUp(): Promise<void>
  /** Makes the provider forget idempotency keys, as it does after some time. */
  forgetKeys?(): unknown
}

/** Cards of the provider's test mode, by what they do. */
export interface Cards {
  good: string
  /** The maximum of one charge in minor units. */
  mostMinor: bigint
  /** The reason code of each declined card; all differ. */
  declined: Record<string, string>
  /** The outcome of a charge when the provider is down; `not_begun` if the adapter knows that nothing was sent. */
  whenDown?: 'unknown' | 'not_begun'
  /** Whether its payments are found by our key, with `findByKey`; then the rig can make it forget keys. */
  isFoundByKey?: boolean
  /** Undefined for a provider that cannot be made to fail; its failures are not tested. */
  faults?: Faults
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
    if (cards.isFoundByKey) keyTests({ rig: () => rig, driver: () => driver, movements }, cards)
    refundTests(() => driver, movements, cards)
    if (cards.faults) troubleTests({ rig: () => rig, driver: () => driver, movements }, cards, cards.faults)
  })
}

/** Tests for providers whose payments are found by our key. */
function keyTests(
  { rig, driver, movements }: { rig(): Rig; driver(): Charging; movements: Movements },
  { good }: Cards,
): void {
  test('of two payments of a key one is found, and the other can never be confirmed', async () => {
    const { provider } = driver()
    const request = chargeRequest(good)
    const prepare = async () => {
      const prepared = await provider.prepare!(request)
      assert.ok(prepared.outcome === 'prepared')
      return prepared.handle
    }
    const handles = [await prepare()]
    await rig().forgetKeys!()
    handles.push(await prepare())
    assert.notEqual(handles[0], handles[1], 'the key is forgotten')
    const since = new Date(Date.now() - 3_600_000).toISOString()
    const found = await provider.findByKey!({ ...request, cards: [request] }, { since })
    assert.ok(found.outcome === 'prepared')
    const other = handles.find((handle) => handle !== found.handle)!
    assert.deepEqual(await provider.lookUp({ ...request, handle: other }), { outcome: 'refused' })
    assertSettled(await provider.confirm!({ ...request, handle: found.handle }), 'succeeded')
    assert.equal((await movements(request.reference)).length, 1)
  })
}

export type Movements = (reference: string) => Promise<Movement[]>

function chargingTests(driver: () => Charging, movements: Movements, cards: Cards): void {
  test('a good card is charged, and the charged amount is returned', async () => {
    const request = chargeRequest(cards.good, { amountMinor: cards.mostMinor })
    const response = await driver().charge(request)
    assertSettled(response, 'succeeded')
    assert.equal(response.reference, request.reference)
    assert.equal(response.amountMinor, cards.mostMinor)
    assert.equal(response.currencyCode, 'USD')
    assert.equal(response.details.psp_transaction_type, 'sale')
    assert.match(response.details.pm_data_last4 ?? '', /^[0-9]{4}$/)
    assert.equal(response.details.psp_reason_code, null)
    const [movement, ...others] = await movements(request.reference)
    assert.equal(others.length, 0)
    assert.deepEqual(
      { type: movement?.type, key: movement?.key, amountMinor: movement?.amountMinor, id: movement?.transactionId },
      { type: 'charge', key: request.key, amountMinor: request.amountMinor, id: response.details.psp_transaction_id },
    )
  })

  test('one key is charged once, in turn and at the same time', async () => {
    const request = chargeRequest(cards.good)
    const responses: object[] = await Promise.all(Array.from({ length: 20 }, () => driver().charge(request)))
    responses.push(await driver().charge(request))
    for (const response of responses) assert.deepEqual(response, responses[0])
    assertSettled(responses[0] as Settled, 'succeeded')
    assert.equal((await movements(request.reference)).length, 1)
  })

  test('a known key under a new reference returns the first charge', async () => {
    const first = chargeRequest(cards.good)
    await driver().charge(first)
    const response = await driver().charge({ ...first, reference: randomUUID() })
    assertSettled(response, 'succeeded')
    assert.equal(response.reference, first.reference)
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
      const response = await driver().charge(request)
      assertSettled(response, 'failed')
      assert.equal(response.details.psp_reason_code, code)
      assert.ok(response.details.psp_reason_message && response.details.psp_reason_type)
      assert.match(response.details.psp_reason_decline_type ?? '', /^(soft|hard)$/)
      assert.deepEqual(await driver().charge(request), response)
      assert.deepEqual(await driver().lookUp(request), response)
      // A provider may list what failed, too.
      assert.deepEqual(
        (await movements(request.reference)).filter(({ hasFailed }) => !hasFailed),
        [],
      )
    })
  }
}

function refundTests(driver: () => Charging, movements: Movements, cards: Cards): void {
  test('a refund pays back once for its key, and never more than was charged', async () => {
    const charge = await charged(driver(), cards.good)
    const part = refundRequest(charge, 1_000n)
    const [one, two] = await Promise.all([driver().refund(part), driver().refund(part)])
    assertSettled(one, 'succeeded')
    assert.equal(one.details.psp_transaction_type, 'refund')
    assert.deepEqual(two, one)
    assert.equal((await movements(part.reference)).length, 1)
    assertSettled(await driver().refund(refundRequest(charge, 51n)), 'failed')
    assertSettled(await driver().refund(refundRequest(charge, 50n)), 'succeeded')
    assertSettled(await driver().refund(refundRequest(charge, 1n)), 'failed')
  })

  test('the refunds of a charge are listed with their keys, and those of another charge are not', async () => {
    const charge = await charged(driver(), cards.good)
    const first = refundRequest(charge, 1_000n)
    const second = refundRequest(charge, 50n)
    await driver().refund(first)
    await driver().refund(second)
    await driver().refund(refundRequest(await charged(driver(), cards.good), 7n))
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
    const responses = await Promise.all(Array.from({ length: 5 }, () => driver().refund(refundRequest(charge, 600n))))
    assert.equal(responses.filter(({ outcome }) => outcome === 'succeeded').length, 1)
  })

  test('a refund of an unknown charge or in another currency fails; a known key for another amount conflicts', async () => {
    const charge = await charged(driver(), cards.good)
    const lost = refundRequest(charge, 10n, { chargeTransactionId: 'nobody-knows' })
    assertSettled(await driver().refund(lost), 'failed')
    assertSettled(await driver().refund(refundRequest(charge, 10n, { currencyCode: 'EUR' })), 'failed')
    const good = refundRequest(charge, 10n)
    assertSettled(await driver().refund(good), 'succeeded')
    assert.deepEqual(await driver().refund({ ...good, amountMinor: 11n }), { outcome: 'conflict' })
  })
}
