// What a charge does when its outcome is unknown, or the database is lost after the provider was called.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { ApiError } from '../../../src/lib/errors.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { lookInto, never, setUpCharges } from './in-process.ts'
import { unknown, verdict } from './scripted-provider.ts'

const setup = setUpCharges()
const { context, order, request, take } = setup

describe('nothing is begun', () => {
  test('503 while the circuit is open, and the key stays free', async () => {
    const closed = context({ admits: () => false, charge: never })
    await assert.rejects(oneOffCharge(closed, setup.shop.id, request()), (error) => {
      assert.ok(error instanceof ApiError)
      assert.deepEqual([error.status, error.headers['retry-after']], [503, '5'])
      return true
    })
    assert.equal(await order(), undefined)
  })

  test('the trial of an open circuit is not spent on a request that breaks a rule', async () => {
    let asked = 0
    const counting = context({ circuitIsOpen: () => true, admits: () => ++asked > 0, charge: never })
    await assert.rejects(oneOffCharge(counting, setup.shop.id, request('0')))
    assert.equal(asked, 0)
  })

  test('the trial of an open circuit is not spent on a customer with a charge in progress', async () => {
    await oneOffCharge(context({}), setup.shop.id, request())
    let asked = 0
    const counting = context({ circuitIsOpen: () => true, admits: () => ++asked > 0, charge: never })
    const another = { ...request(), idempotencyKey: randomUUID() }
    await assert.rejects(oneOffCharge(counting, setup.shop.id, another), { status: 503 })
    assert.equal(asked, 0)
  })
})

describe('an unknown outcome', () => {
  test('is handed over at once, and looked at after 1 s, 5 s, 15 s, 1 min, 5 min, then every 15 min', async () => {
    const lost = context({})
    const response = await oneOffCharge(lost, setup.shop.id, request())
    assert.equal(response.checkout_status, 'processing')
    const pauses: number[] = []
    for (let look = 0; look < 8; look++) {
      const { due_in, lease_until } = (await order())!
      assert.equal(lease_until, null)
      pauses.push(Number(due_in))
      await lookInto(lost, await take())
    }
    assert.deepEqual(pauses, [1, 5, 15, 60, 300, 900, 900, 900])
  })

  test('an exception of the adapter is unknown, too', async () => {
    const buggy = context({
      charge: async () => {
        throw new TypeError('a bug')
      },
    })
    assert.equal((await oneOffCharge(buggy, setup.shop.id, request())).checkout_status, 'processing')
    assert.equal((await order())!.status, 'processing')
  })

  test('never seen by the provider: refused first, and only when it agrees cancelled', async () => {
    await oneOffCharge(context({}), setup.shop.id, request())
    const calls: string[] = []
    const notYet = context({
      async lookUp() {
        calls.push('lookUp')
        return { outcome: 'not_found' }
      },
      async refuse() {
        calls.push('refuse')
        return unknown
      },
    })
    assert.equal((await lookInto(notYet, await take())).status, 'processing')
    assert.equal((await order())!.status, 'processing')
    const agreed = context({
      lookUp: async () => ({ outcome: 'not_found' }),
      refuse: async () => ({ outcome: 'refused' }),
    })
    assert.equal((await lookInto(agreed, await take())).status, 'cancelled')
    assert.deepEqual(calls, ['lookUp', 'refuse'])
  })

  test('charged before the refusal arrived: succeeded', async () => {
    await oneOffCharge(context({}), setup.shop.id, request())
    const late = context({ lookUp: async () => ({ outcome: 'not_found' }), refuse: async () => verdict('succeeded') })
    assert.equal((await lookInto(late, await take())).status, 'succeeded')
    assert.equal((await setup.shop.consumables(setup.user)).length, 1)
  })
})

describe('the database is lost after the provider was called', () => {
  test('200 processing, never failed; a look finds the outcome', async () => {
    const db: Db = {
      ...setup.db,
      tx: async () => {
        throw Object.assign(new Error('Connection terminated unexpectedly'), {})
      },
    }
    const charged = context({ charge: async () => verdict('failed') }, { db })
    assert.equal((await oneOffCharge(charged, setup.shop.id, request())).checkout_status, 'processing')
    const told = context({ lookUp: async () => verdict('succeeded') })
    assert.equal((await lookInto(told, await take())).status, 'succeeded')
  })

  test('when the response to the commit was lost the replay returns the outcome', async () => {
    const db: Db = {
      ...setup.db,
      tx: async (work) => {
        await setup.db.tx(work)
        throw new Error('Connection terminated unexpectedly')
      },
    }
    const charged = context({ charge: async () => verdict('succeeded') }, { db })
    assert.equal((await oneOffCharge(charged, setup.shop.id, request())).checkout_status, 'processing')
    assert.equal(
      (await oneOffCharge(context({ charge: never }), setup.shop.id, request())).checkout_status,
      'succeeded',
    )
    assert.equal((await setup.shop.consumables(setup.user)).length, 1)
  })
})
