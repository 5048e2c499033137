// Responses of a provider to a charge that differ from the request: another amount or currency, or about another order.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { ApiError } from '../../../src/lib/errors.ts'
import { checkMismatches } from '../../../src/operator/doctor/payments.ts'
import { ordersInProgress } from '../../../src/payments/billing/charge/row.ts'
import type { BillingContext } from '../../../src/payments/billing/context.ts'
import { CHARGE, oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { findEither, resolve } from '../../../src/payments/billing/reconcile/resolve.ts'
import type { Provider } from '../../../src/payments/providers/provider.ts'
import type { Organization } from '../../support/billing.ts'
import { untilLocked } from '../../support/database.ts'
import { until } from '../../support/time.ts'
import { setUpCharges } from './in-process.ts'
import { honest, verdict } from './scripted-provider.ts'

const setup = setUpCharges()
const { context, request } = setup

const order = async () => {
  const [row] = await setup.db.query(
    'select order_id, status, amount, currency_code, asked_amount, provider_mismatch from orders where external_id = $1',
    [setup.user],
  )
  return row!
}

async function reused(work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof ApiError)
    assert.deepEqual(error.extra, { code: 'idempotency_key_reused' })
    return true
  })
}

describe('a part of the amount is approved', () => {
  const script: Partial<Provider> = {
    charge: async ({ reference }) => verdict('succeeded', { reference, amountMinor: 700n }),
  }
  let partial: BillingContext
  before(() => {
    partial = context(script)
  })

  test('the order is what was charged, and the log says so', async () => {
    const response = await oneOffCharge(partial, setup.shop.id, request())
    assert.equal(response.checkout_status, 'succeeded')
    const { amount, asked_amount, provider_mismatch } = await order()
    assert.deepEqual([amount, asked_amount, provider_mismatch], ['7.00', '10.50', 'amount'])
    assert.equal((await setup.shop.consumables(setup.user))[0].amount, 7)
    assert.equal((await setup.shop.report({ order_id: response.order_id }))[0].amount, 7)
    assert.equal(setup.errors.length, 1)
  })

  test('a charge that a restored backup forgot counts as what it asked, where the provider returns it', async () => {
    const before = verdict('succeeded', { reference: randomUUID(), amountMinor: 700n, askedMinor: 1050n })
    const response = await oneOffCharge(context({ charge: async () => before }), setup.shop.id, request())
    assert.equal(response.checkout_status, 'succeeded')
    const { amount, asked_amount } = await order()
    assert.deepEqual([amount, asked_amount], ['7.00', '10.50'])
    assert.equal((await oneOffCharge(context({}), setup.shop.id, request())).idempotent_replay, true)
    await reused(oneOffCharge(context({}), setup.shop.id, request('7')))
  })

  test('a replay compares with what was asked', async () => {
    await oneOffCharge(partial, setup.shop.id, request())
    const replay = await oneOffCharge(context({}), setup.shop.id, request('10.5'))
    assert.deepEqual([replay.checkout_status, replay.idempotent_replay], ['succeeded', true])
    await reused(oneOffCharge(context({}), setup.shop.id, request('7')))
  })

  test('no more than was charged can be refunded', async () => {
    const { order_id } = await oneOffCharge(partial, setup.shop.id, request())
    const response = await setup.shop.refund(setup.user, order_id, { amount: '7.01', idempotency_key: 'r' })
    assert.match(response.body.message, /at most 7\.00 USD, what is left of the charge/)
  })

  test('is named by doctor', async () => {
    const { order_id } = await oneOffCharge(partial, setup.shop.id, request())
    const [finding] = await checkMismatches(setup.db)
    assert.equal(finding!.level, 'failed')
    const rows = await setup.db.query('select provider_mismatch from orders where order_id = $1', [order_id])
    assert.deepEqual(rows, [{ provider_mismatch: 'amount' }])
  })
})

test('charged in another currency: the order is what was charged, with the alarm', async () => {
  const other = context({ charge: async ({ reference }) => verdict('succeeded', { reference, currencyCode: 'EUR' }) })
  assert.equal((await oneOffCharge(other, setup.shop.id, request())).checkout_status, 'succeeded')
  const { currency_code, provider_mismatch } = await order()
  assert.deepEqual([currency_code, provider_mismatch, setup.errors.length], ['EUR', 'currency', 1])
})

test('a response about another order of ours settles nothing, until an operator decides', async () => {
  const { order_id: first } = await oneOffCharge(context(honest), setup.shop.id, request())
  const mixed = context({
    charge: async () => verdict('succeeded', { reference: first }),
    lookUp: async () => verdict('succeeded', { reference: first }),
  })
  const second = await oneOffCharge(mixed, setup.shop.id, request('10.50', 'another'))
  assert.equal(second.checkout_status, 'processing')
  const [row] = await setup.db.query('select provider_mismatch from orders where order_id = $1', [second.order_id])
  assert.deepEqual([row!.provider_mismatch, setup.errors.length], ['reference', 1])
  assert.equal((await setup.shop.consumables(setup.user)).length, 1)
  const found = await findEither(setup.db, second.order_id)
  await resolve(mixed, found, 'failed', 'the provider mixed up two orders')
  const [ended] = await setup.db.query('select status from orders where order_id = $1', [second.order_id])
  assert.equal(ended!.status, 'failed')
})

test('a charge that is looked at for months keeps two hundred of its looks', async () => {
  await oneOffCharge(context({}), setup.shop.id, request())
  const { order_id } = await order()
  await setup.db.query(
    `insert into order_log (organization_id, order_id, at, call, outcome, duration_ms)
     select $1, $2, db_clock() - n * interval '1 hour', 'look_up', 'unknown', 1 from generate_series(1, 500) n`,
    [setup.shop.id, order_id!],
  )
  await setup.db.query('update orders set looks = 99, lease_until = null where order_id = $1', [order_id!])
  const taken = await ordersInProgress.take(setup.db, (await ordersInProgress.find(setup.db.query, order_id!))!, 5_000)
  await checkStatus(context({}), CHARGE, taken!)
  const count = async () => {
    const [row] = await setup.db.query(
      `select count(*) as looks, count(*) filter (where call = 'charge') as charges from order_log where order_id = $1`,
      [order_id!],
    )
    return row!
  }
  // Notes are written after the response.
  await until('the note of the charge', async () => (await count()).charges === '1')
  const { looks } = await count()
  assert.ok(Number(looks) <= 203, `${looks} are kept`)
})

test('a success that waits for its turn appears after the horizon that a sync was promised in between', async () => {
  const profileId = randomUUID()
  const buyer = await setup.shop.customer({ profileId })
  const list = () =>
    setup.billing.server.api('/transactions?filter[updated_at.from]=2000-01-01T00:00:00Z&limit=500', {
      key: setup.shop.projectKey,
    })
  let charging: ReturnType<Organization['charge']>
  let promised = ''
  await setup.db.tx(async (query) => {
    await query('select 1 from organization_clocks where organization_id = $1 for update', [setup.shop.id])
    charging = setup.shop.charge(buyer)
    await untilLocked(setup.db.query, 'organization_clocks')
    promised = (await list()).headers['x-sync-horizon'] as string
  })
  assert.equal((await charging!).body.checkout_status, 'succeeded')
  const row = (await list()).body.data.find(({ profile_id }: { profile_id: string }) => profile_id === profileId)
  const [stored] = await setup.db.query('select updated_at from transactions where id = $1', [row.id])
  assert.ok(new Date(stored!.updated_at!) >= new Date(promised), `${stored!.updated_at} appeared below ${promised}`)
})
