// Settling a charge: twice, by a verdict that does not fit, and when a restored backup has forgotten it.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { ApiError } from '../../../src/lib/errors.ts'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { findEither, resolve } from '../../../src/payments/billing/reconcile/resolve.ts'
import { addRow } from '../../support/data.ts'
import { lookInto, never, setUpCharges } from './in-process.ts'
import { verdict } from './scripted-provider.ts'

const setup = setUpCharges()
const { context, order, request, take } = setup

describe('settling', () => {
  test('twice changes nothing, whatever the second verdict', async () => {
    await oneOffCharge(context({}), setup.shop.id, request())
    const [one, two] = [await take(), await take()]
    const yes = context({ lookUp: async () => verdict('succeeded') })
    const no = context({ lookUp: async () => ({ outcome: 'refused' }) })
    const [first, second] = await Promise.all([lookInto(yes, one), lookInto(yes, two)])
    assert.deepEqual([first.status, second.status], ['succeeded', 'succeeded'])
    assert.equal((await lookInto(no, one)).status, 'succeeded', 'a refused reference reads the order’s state')
    assert.equal((await setup.shop.consumables(setup.user)).length, 1)
    assert.equal((await setup.shop.report({ order_id: one.order_id })).length, 1)
    const events = await setup.db.query(`select type from events where object_id = $1`, [one.order_id])
    assert.equal(events.length, 1)
  })

  test('a reference refused by another process while the charge was on its way: cancelled, not failed', async () => {
    const refused = context({ charge: async () => ({ outcome: 'refused' }) })
    const response = await oneOffCharge(refused, setup.shop.id, request())
    assert.deepEqual([response.checkout_status, response.failed_message_for_user], ['cancelled', ''])
    assert.deepEqual(await setup.shop.report({ order_id: response.order_id }), [])
  })

  test('fields of the provider that fit no column are cut or left out, for money has moved', async () => {
    const details = {
      ...verdict('succeeded').details,
      psp_status: randomBytes(3000).toString('hex'),
      psp_reason_message: 'é'.repeat(3000),
      psp_date: 'yesterday',
      pm_data_first6: '42424242',
      network: 'a\0b',
    }
    const odd = context({ charge: async () => verdict('succeeded', { details }) })
    const { order_id } = await oneOffCharge(odd, setup.shop.id, request())
    const [row] = await setup.shop.report({ order_id })
    assert.deepEqual([row.status, row.psp_date, row.pm_data_first6, row.network], ['succeeded', null, null, null])
    assert.deepEqual([row.psp_status, row.psp_reason_message], [null, `${'é'.repeat(1998)}…`])
  })
})

describe('an outcome that cannot be settled', () => {
  // More than a transaction of the data API can hold: the adapter should not have let it pass.
  const absurd = verdict('succeeded', { amountMinor: 10n ** 24n })
  const told = () => context({ lookUp: async () => absurd })
  const begin = async () => {
    await addRow(setup.db, 'profiles', { project_id: setup.shop.projectId, id: setup.user })
    await setup.db.query('update customers set profile_id = external_id where external_id = $1', [setup.user])
    await oneOffCharge(context({}), setup.shop.id, request())
    await setup.db.query('update orders set next_look_at = db_clock() where external_id = $1', [setup.user])
  }

  test('is looked at again after a pause that grows, without a lease in between', async () => {
    await begin()
    await assert.rejects(lookInto(told(), await take()))
    const { status, lease_until, due_in } = (await order())!
    assert.deepEqual([status, lease_until, due_in], ['processing', null, '5'])
  })

  test('can be resolved by the operator', async () => {
    await begin()
    const { order_id } = (await order())!
    await resolve(told(), await findEither(setup.db, order_id!), 'succeeded', 'bank statement')
    assert.deepEqual([(await order())!.status, (await order())!.amount], ['succeeded', '10.50'])
    assert.equal((await setup.shop.consumables(setup.user)).length, 1)
  })

  test('is a finding of the reconciliation, which goes on', async () => {
    await begin()
    const odd = (await order())!.order_id!
    const [fine, key] = [await setup.shop.customer(), randomUUID()]
    await oneOffCharge(context({}), setup.shop.id, { ...request(), externalId: fine, idempotencyKey: key })
    const rows = await setup.db.query<{ order_id: string; provider_key: string }>(
      `select order_id, provider_key from orders where order_id = $1 or idempotency_key = $2 order by order_id <> $1`,
      [odd, key],
    )
    const movements = rows.map(({ order_id, provider_key }) => ({
      ...{ type: 'charge' as const, key: provider_key, reference: order_id, amountMinor: 1050n, currencyCode: 'USD' },
      ...{ transactionId: 'there-1', at: '2026-01-01T00:00:00Z' },
    }))
    const both = context({
      lookUp: async ({ reference }) => (reference === odd ? absurd : verdict('succeeded')),
      async *list() {
        yield* movements
      },
    })
    const { findings, settled, in_progress } = await reconcile(both, '2100-01-01T00:00:00Z')
    assert.deepEqual(
      findings.map(({ difference, reference, what }) => [difference, reference, what]),
      [['mismatch', odd, '1050 minor units of USD there, which cannot be settled here']],
    )
    assert.deepEqual([settled, in_progress], [1, 0])
    const silent = { ...both, providers: context({ list: [...both.providers.opened()][0]!.list }).providers }
    const again = await reconcile(silent, '2100-01-01T00:00:00Z')
    assert.deepEqual(
      again.findings.map(({ difference, reference, what }) => [difference, reference, what]),
      [['mismatch', odd, '1050 minor units of USD there, whose outcome the provider does not know']],
    )
    assert.deepEqual([again.match, again.in_progress], [1, 0])
  })

  test('is not one whose transaction only met a deadlock', async () => {
    await oneOffCharge(context({}), setup.shop.id, request())
    const { order_id } = (await order())!
    const known = context({ lookUp: async () => verdict('succeeded') })
    let clashes = 1
    const tx: typeof setup.db.tx = async (work) => {
      if (clashes-- > 0) throw Object.assign(new Error('deadlock detected'), { code: '40P01' })
      return setup.db.tx(work)
    }
    const found = await findEither(setup.db, order_id!)
    await assert.rejects(resolve({ ...known, db: { ...setup.db, tx } }, found, 'cancelled', 'a guess'), /deadlock/)
    await assert.rejects(
      resolve(known, found, 'cancelled', 'a guess'),
      /The provider knows the outcome: .* is succeeded now/,
    )
  })
})

describe('after a restored backup the provider knows the key', () => {
  test('with the same amount: its outcome is returned, and nothing is charged again', async () => {
    const known = context({ charge: async () => verdict('succeeded', { reference: 'order-before-the-backup' }) })
    assert.equal((await oneOffCharge(known, setup.shop.id, request())).checkout_status, 'succeeded')
    assert.equal((await setup.shop.consumables(setup.user)).length, 1)
  })

  test('with another amount: idempotency_key_reused, and the order is what was charged', async () => {
    const known = context({ charge: async () => ({ outcome: 'conflict' }), lookUp: async () => verdict('succeeded') })
    await assert.rejects(oneOffCharge(known, setup.shop.id, request('99')), (error) => {
      assert.deepEqual((error as ApiError).extra, { code: 'idempotency_key_reused' })
      return true
    })
    assert.deepEqual([(await order())!.status, (await order())!.amount], ['succeeded', '10.50'])
    const replay = await oneOffCharge(context({ charge: never }), setup.shop.id, request('10.5'))
    assert.deepEqual([replay.checkout_status, replay.idempotent_replay], ['succeeded', true])
  })

  test('the key follows from organization, external_id and idempotency_key alone', async () => {
    const keys: string[] = []
    const record = context({
      async charge({ key }) {
        keys.push(key)
        return verdict('succeeded')
      },
    })
    await oneOffCharge(record, setup.shop.id, request())
    await setup.db.query('delete from consumables where external_id = $1', [setup.user])
    await setup.db.query('delete from orders where external_id = $1', [setup.user])
    await oneOffCharge(record, setup.shop.id, request())
    assert.match(keys[0]!, /^[0-9a-f]{64}$/)
    assert.equal(keys[0], keys[1])
  })
})
