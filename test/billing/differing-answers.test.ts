// What a provider answers other than it was asked: another amount or currency, another reference, turned away, too late.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { oneOffCharge } from '../../src/billing/charge/charge.ts'
import { ordersInProgress } from '../../src/billing/charge/orders.ts'
import type { ChargeRequest } from '../../src/billing/charge/request.ts'
import type { BillingContext } from '../../src/billing/context.ts'
import { refund } from '../../src/billing/refund/refund.ts'
import { refundsInProgress } from '../../src/billing/refund/refunds.ts'
import type { RefundRequest } from '../../src/billing/refund/request.ts'
import { CHARGE, look, REFUND } from '../../src/billing/unknown/look.ts'
import { findEither, resolve } from '../../src/billing/unknown/resolve.ts'
import { checkMismatches } from '../../src/doctor/payments.ts'
import { ApiError } from '../../src/lib/errors.ts'
import { readAmount } from '../../src/lib/money.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import { fixedProviders } from '../../src/providers/fixed.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { HandClock } from '../support/hand-clock.ts'
import { scriptedProvider, verdict } from '../support/scripted-provider.ts'

let billing: Billing
let shop: Organization
let user: string
const errors: unknown[] = []
before(async () => {
  billing = await startBilling({}, { worker: false })
  shop = await billing.organization()
})
beforeEach(async () => {
  user = await shop.customer()
  errors.length = 0
})
after(() => billing.stop())

const request = (amount = '10.50', idempotencyKey = 'k'): ChargeRequest => ({
  externalId: user,
  idempotencyKey,
  amount: readAmount(amount),
  amountSent: amount,
  currencyCode: 'USD',
  clientMetadata: null,
})

const log = { info() {}, warn() {}, error: (about: unknown) => void errors.push(about) } as BillingContext['log']

function context(script: Partial<Provider>, more: Partial<BillingContext> = {}): BillingContext {
  const providers = fixedProviders([scriptedProvider(script)])
  return { db: billing.db, providers, clock: new HandClock(), log, providerTimeoutMs: 1_000, ...more }
}

/** Charges as asked, under our reference. */
const honest: Partial<Provider> = {
  charge: async ({ reference, amountMinor, currencyCode }) =>
    verdict('succeeded', { reference, amountMinor, currencyCode }),
}

const order = async () => {
  const [row] = await billing.db.query(
    'select order_id, status, amount, currency_code, asked_amount, provider_mismatch from orders where external_id = $1',
    [user],
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
    const answer = await oneOffCharge(partial, shop.id, request())
    assert.equal(answer.checkout_status, 'succeeded')
    const { amount, asked_amount, provider_mismatch } = await order()
    assert.deepEqual([amount, asked_amount, provider_mismatch], ['7.00', '10.50', 'amount'])
    assert.equal((await shop.consumables(user))[0].amount, 7)
    assert.equal((await shop.report({ order_id: answer.order_id }))[0].amount, 7)
    assert.equal(errors.length, 1)
  })

  test('a replay compares with what was asked', async () => {
    await oneOffCharge(partial, shop.id, request())
    const replay = await oneOffCharge(context({}), shop.id, request('10.5'))
    assert.deepEqual([replay.checkout_status, replay.idempotent_replay], ['succeeded', true])
    await reused(oneOffCharge(context({}), shop.id, request('7')))
  })

  test('no more than was charged can be refunded', async () => {
    const { order_id } = await oneOffCharge(partial, shop.id, request())
    const answer = await shop.refund(user, order_id, { amount: '7.01', idempotency_key: 'r' })
    assert.match(answer.body.message, /above what is left of the charge: 7\.00 USD/)
  })

  test('is named by doctor', async () => {
    const { order_id } = await oneOffCharge(partial, shop.id, request())
    const [finding] = await checkMismatches(billing.db)
    assert.equal(finding!.level, 'failed')
    const rows = await billing.db.query('select provider_mismatch from orders where order_id = $1', [order_id])
    assert.deepEqual(rows, [{ provider_mismatch: 'amount' }])
  })
})

test('charged in another currency: the order is what was charged, with the alarm', async () => {
  const other = context({ charge: async ({ reference }) => verdict('succeeded', { reference, currencyCode: 'EUR' }) })
  assert.equal((await oneOffCharge(other, shop.id, request())).checkout_status, 'succeeded')
  const { currency_code, provider_mismatch } = await order()
  assert.deepEqual([currency_code, provider_mismatch, errors.length], ['EUR', 'currency', 1])
})

test('an answer about another order of ours settles nothing, until an operator decides', async () => {
  const { order_id: first } = await oneOffCharge(context(honest), shop.id, request())
  const mixed = context({
    charge: async () => verdict('succeeded', { reference: first }),
    lookUp: async () => verdict('succeeded', { reference: first }),
  })
  const second = await oneOffCharge(mixed, shop.id, request('10.50', 'another'))
  assert.equal(second.checkout_status, 'processing')
  const [row] = await billing.db.query('select provider_mismatch from orders where order_id = $1', [second.order_id])
  assert.deepEqual([row!.provider_mismatch, errors.length], ['reference', 1])
  assert.equal((await shop.consumables(user)).length, 1)
  const found = await findEither(billing.db, second.order_id)
  await resolve(mixed, found, 'failed', 'the provider mixed up two orders')
  const [ended] = await billing.db.query('select status from orders where order_id = $1', [second.order_id])
  assert.equal(ended!.status, 'failed')
})

describe('refunds', () => {
  const asked = (orderId: string, idempotencyKey: string | null = 'r', amount?: string): RefundRequest => ({
    externalId: user,
    orderId,
    amount: amount === undefined ? undefined : readAmount(amount),
    isSoft: false,
    reason: '',
    comment: '',
    idempotencyKey,
  })
  const charged = async () => (await oneOffCharge(context(honest), shop.id, request())).order_id
  const paysBack: Provider['refund'] = async ({ reference, amountMinor, currencyCode }) =>
    verdict('succeeded', { reference, amountMinor, currencyCode })

  async function lookAgain(refundId: string, script: Partial<Provider>) {
    await billing.db.query('update refunds set lease_until = null where refund_id = $1', [refundId])
    const found = await refundsInProgress.find(billing.db.query, refundId)
    const taken = await refundsInProgress.take(billing.db, found!, 5_000)
    return look(context(script), REFUND, taken!)
  }

  test('in another currency settle nothing, and an operator is told', async () => {
    const orderId = await charged()
    const other = context({ refund: async ({ reference }) => verdict('succeeded', { reference, currencyCode: 'EUR' }) })
    const answer = await refund(other, shop.id, asked(orderId))
    assert.equal(answer.refund_status, 'processing')
    const [row] = await billing.db.query(
      'select refunds.provider_mismatch, amount_refunded from refunds join orders using (order_id) where refund_id = $1',
      [answer.refund_id],
    )
    assert.deepEqual([row!.provider_mismatch, row!.amount_refunded, errors.length], ['currency', '0', 1])
    assert.equal((await shop.consumables(user))[0].is_active, true)
  })

  test('turned away before they began leave the key free', async () => {
    const orderId = await charged()
    const busy = context({ refund: async () => ({ outcome: 'not_begun', why: 'answered 401', cause: 'credentials' }) })
    await assert.rejects(refund(busy, shop.id, asked(orderId)), { status: 503 })
    assert.equal(errors.length, 1, 'wrong credentials are logged as an error')
    const answer = await refund(context({ refund: paysBack }), shop.id, asked(orderId))
    assert.deepEqual([answer.refund_status, answer.idempotent_replay], ['succeeded', false])
  })

  test('claimed too late for their lease begin it anew, and are made', async () => {
    const orderId = await charged()
    const clock = new HandClock()
    let claims = 0
    // The claim alone takes as long as the margin of its lease.
    const tx: Db['tx'] = (work) => {
      if (claims++ === 0) clock.advance(5_000)
      return billing.db.tx(work)
    }
    const slow = context({ refund: paysBack }, { clock, db: { ...billing.db, tx } })
    assert.equal((await refund(slow, shop.id, asked(orderId))).refund_status, 'succeeded')
  })

  test('that no call could be made for in time are begun by the next look, not failed', async () => {
    const orderId = await charged()
    const clock = new HandClock()
    const late = <T>(work: () => T): T => {
      clock.advance(5_000)
      return work()
    }
    const db: Db = {
      ...billing.db,
      tx: (work) => late(() => billing.db.tx(work)),
      query: ((...given) => late(() => billing.db.query(...given))) as Db['query'],
    }
    const never = async (): Promise<never> => assert.fail('must not be called')
    const answer = await refund(context({ refund: never }, { clock, db }), shop.id, asked(orderId))
    assert.equal(answer.refund_status, 'processing')
    const settled = await lookAgain(answer.refund_id, { refund: paysBack, lookUpRefund: never, refuseRefund: never })
    assert.equal(settled.status, 'succeeded')
  })

  test('without a key are new ones after one that failed', async () => {
    const orderId = await charged()
    const keys: string[] = []
    const failsOnce = context({
      async refund({ key, reference, amountMinor }) {
        const isFirst = keys.length === 0 || keys[0] === key
        keys.push(key)
        return verdict(isFirst ? 'failed' : 'succeeded', { reference, amountMinor })
      },
    })
    assert.equal((await refund(failsOnce, shop.id, asked(orderId, null))).refund_status, 'failed')
    assert.equal((await refund(failsOnce, shop.id, asked(orderId, null))).refund_status, 'succeeded')
    assert.equal(new Set(keys).size, 2)
  })

  test('have a row in the report each', async () => {
    const orderId = await charged()
    const made = context({ refund: paysBack })
    await refund(made, shop.id, asked(orderId, 'one', '4'))
    await refund(made, shop.id, asked(orderId, 'two', '4'))
    await refund(made, shop.id, asked(orderId, 'rest'))
    const rows = (await shop.report({ order_id: orderId })).filter(({ status }) => status === 'refunded')
    assert.deepEqual(
      rows.map(({ amount }) => amount),
      [4, 4, 2.5],
    )
  })

  test('that are soft ask no provider and move no money', async () => {
    const orderId = await charged()
    const never = async (): Promise<never> => assert.fail('a soft refund moves no money')
    const answer = await refund(context({ refund: never, admits: () => false }), shop.id, {
      ...asked(orderId),
      isSoft: true,
    })
    assert.deepEqual([answer.refund_status, answer.consumable_revoked], ['succeeded', false])
    const [, row] = await shop.report({ order_id: orderId })
    assert.deepEqual([row.status, row.psp_transaction_type, row.amount], ['refunded', 'soft_refund', 10.5])
  })
})

test('a charge that is looked at for months keeps two hundred of its looks', async () => {
  await oneOffCharge(context({}), shop.id, request())
  const { order_id } = await order()
  await billing.db.query(
    `insert into order_log (organization_id, order_id, at, call, outcome, duration_ms)
     select $1, $2, db_clock() - n * interval '1 hour', 'look_up', 'unknown', 1 from generate_series(1, 500) n`,
    [shop.id, order_id!],
  )
  await billing.db.query('update orders set looks = 99, lease_until = null where order_id = $1', [order_id!])
  const taken = await ordersInProgress.take(
    billing.db,
    (await ordersInProgress.find(billing.db.query, order_id!))!,
    5_000,
  )
  await look(context({}), CHARGE, taken!)
  const [row] = await billing.db.query(
    `select count(*) as looks, bool_or(call = 'charge') as charge from order_log where order_id = $1`,
    [order_id!],
  )
  assert.ok(Number(row!.looks) <= 203, `${row!.looks} are kept`)
  assert.equal(row!.charge, 't')
})

test('a success that waits for its turn appears after the horizon that a sync was promised meanwhile', async () => {
  const profileId = randomUUID()
  const buyer = await shop.customer({ profileId })
  const list = () =>
    billing.server.api('/transactions?filter[updated_at.from]=2000-01-01T00:00:00Z&limit=500', { key: shop.projectKey })
  let charging: ReturnType<Organization['charge']>
  let promised = ''
  await billing.db.tx(async (query) => {
    await query('select 1 from organization_clocks where organization_id = $1 for update', [shop.id])
    charging = shop.charge(buyer)
    await untilSettling(buyer)
    promised = (await list()).headers['x-sync-horizon'] as string
  })
  assert.equal((await charging!).body.checkout_status, 'succeeded')
  const row = (await list()).body.data.find(({ profile_id }: { profile_id: string }) => profile_id === profileId)
  const [stored] = await billing.db.query('select updated_at from transactions where id = $1', [row.id])
  assert.ok(new Date(stored!.updated_at!) >= new Date(promised), `${stored!.updated_at} appeared below ${promised}`)
})

/** Waits until the charge of this customer is settled but for the organization's clock. */
async function untilSettling(buyer: string): Promise<void> {
  for (;;) {
    const [waits] = await billing.db.query(
      `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%organization_clocks%'`,
    )
    if (waits) return
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.ok(buyer)
  }
}
