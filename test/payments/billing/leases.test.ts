// The lease of a charge or refund: only one process calls the provider for it at a time, and a lost process holds it no longer.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { systemClock } from '../../../src/lib/clock.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { refund } from '../../../src/payments/billing/refund/refund.ts'
import { untilLocked } from '../../support/database.ts'
import { column } from '../../support/rows.ts'
import { HandClock, machineSleeps } from '../../support/time.ts'
import { LONG_LEASE_MS, lookInto, never, refundOf, setUpCharges, takeDue, tooSlow } from './in-process.ts'
import { verdict } from './scripted-provider.ts'

const setup = setUpCharges()
const { context, order, request, take } = setup

describe('leases', () => {
  test('no other process takes the order while its own is making the charge', async () => {
    const charge = async () => {
      await setup.db.query(`update orders set next_look_at = db_clock() where external_id = $1`, [setup.user])
      assert.deepEqual(await takeDue(setup.db, 100), [])
      return verdict('succeeded')
    }
    const busy = context({ charge }, { providerTimeoutMs: LONG_LEASE_MS })
    assert.equal((await oneOffCharge(busy, setup.shop.id, request())).checkout_status, 'succeeded')
  })

  test('a process whose lease is nearly over does not call the provider', async () => {
    const slow = context({ charge: never }, tooSlow(setup.db))
    assert.equal((await oneOffCharge(slow, setup.shop.id, request())).checkout_status, 'processing')
    assert.deepEqual([(await order())!.lease_until, (await order())!.due_in], [null, '1'])
  })

  test('a refund whose lease is nearly over is not sent, and left to a later look', async () => {
    const { order_id } = await oneOffCharge(
      context({ charge: async () => verdict('succeeded') }),
      setup.shop.id,
      request(),
    )
    const slow = context({ refund: never }, tooSlow(setup.db))
    assert.equal((await refund(slow, setup.shop.id, refundOf(setup.user, order_id))).refund_status, 'processing')
    const columns = 'lease_until, is_unsent, next_look_at is not null as is_due'
    const [row] = await setup.db.query(`select ${columns} from refunds where order_id = $1`, [order_id])
    assert.deepEqual(row, { lease_until: null, is_unsent: 't', is_due: 't' })
  })

  test('a process whose machine slept after the claim does not charge: another one has cancelled the order', async (t) => {
    let charges = 0
    const charge = async () => {
      charges++
      return verdict('succeeded')
    }
    const { providers } = context({ charge })
    const other = context({
      lookUp: async () => ({ outcome: 'not_found' }),
      refuse: async () => ({ outcome: 'refused' }),
    })
    const of: typeof providers.of = async (...given) => {
      if (await order()) {
        machineSleeps(t, 60_000)
        await lookInto(other, await take())
      }
      return providers.of(...given)
    }
    const asleep = context({}, { clock: systemClock, providers: { ...providers, of } })
    await oneOffCharge(asleep, setup.shop.id, request())
    assert.deepEqual([(await order())!.status, charges], ['cancelled', 0])
  })

  test('the lease of a charge that waited for its turn begins after the wait', async () => {
    const clock = new HandClock()
    const patient = context({ charge: async () => verdict('succeeded') }, { clock })
    const second = await setup.shop.customer()
    const charges: Promise<unknown>[] = []
    await setup.db.tx(async (query) => {
      await query('select 1 from organization_clocks where organization_id = $1 for update', [setup.shop.id])
      charges.push(oneOffCharge(patient, setup.shop.id, request()))
      await untilLocked(setup.db.query)
      charges.push(oneOffCharge(patient, setup.shop.id, { ...request(), externalId: second }))
      // Many times the margin of the lease.
      clock.advance(60_000)
    })
    const responses = (await Promise.all(charges)) as { checkout_status: string }[]
    assert.deepEqual(column(responses, 'checkout_status'), ['succeeded', 'succeeded'])
  })

  test('a lost process: the order is taken when the lease has passed, by one process', async () => {
    const db: Db = {
      ...setup.db,
      tx: never,
      query: (async (statement, params) => {
        const { name } = statement as { name?: string }
        if (name === 'hand over order') throw new Error('Connection terminated')
        return setup.db.query(statement, params)
      }) as Db['query'],
    }
    await oneOffCharge(context({}, { db, providerTimeoutMs: LONG_LEASE_MS }), setup.shop.id, request())
    const lost = (await order())!
    // The deadline, and a margin: with the pause between two turns of settling it is within ten seconds.
    const deadlineAndMargin = LONG_LEASE_MS / 1000 + 9
    assert.deepEqual([lost.status, Number(lost.due_in)], ['processing', deadlineAndMargin])
    assert.deepEqual(await takeDue(setup.db, 100), [])
    await setup.db.query(
      `update orders set lease_until = db_clock(), next_look_at = db_clock() where external_id = $1`,
      [setup.user],
    )
    const taken = await Promise.all([1, 2, 3, 4].map(() => takeDue(setup.db, 100)))
    assert.deepEqual(column(taken.flat(), 'order_id'), [lost.order_id])
    await lookInto(context({ lookUp: async () => verdict('succeeded') }), taken.flat()[0]!)
  })

  test('a process that lost its lease does not move the next look', async () => {
    await oneOffCharge(context({}), setup.shop.id, request())
    const first = await take()
    await take()
    const taken = (await order())!
    await lookInto(context({}), first)
    assert.deepEqual([taken.looks, taken.lease_until], ['2', taken.next_look_at])
    assert.deepEqual(await order(), taken)
  })
})
