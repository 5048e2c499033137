// What becomes of refunds whose response differs from the request, turns away, or that were claimed too late.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Db } from '../../../src/lib/pg/db.ts'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { REFUND } from '../../../src/payments/billing/refund/check.ts'
import { refund } from '../../../src/payments/billing/refund/refund.ts'
import { refundsInProgress } from '../../../src/payments/billing/refund/row.ts'
import type { Provider } from '../../../src/payments/providers/provider.ts'
import { HandClock } from '../../support/time.ts'
import { refundOf, setUpCharges } from './in-process.ts'
import { fixedProviders, honest, verdict } from './scripted-provider.ts'

const setup = setUpCharges()
const { context, request } = setup

describe('refunds', () => {
  const asked = (orderId: string, idempotencyKey: string | null = 'r', amount?: string) =>
    refundOf(setup.user, orderId, { amount, idempotencyKey })
  const charged = async () => (await oneOffCharge(context(honest), setup.shop.id, request())).order_id
  const paysBack: Provider['refund'] = async ({ reference, amountMinor, currencyCode }) =>
    verdict('succeeded', { reference, amountMinor, currencyCode })

  const release = (refundId: string) =>
    setup.db.query('update refunds set lease_until = null where refund_id = $1', [refundId])

  async function lookAgain(refundId: string, script: Partial<Provider> | 'not connected') {
    await release(refundId)
    const found = await refundsInProgress.find(setup.db.query, refundId)
    const taken = await refundsInProgress.take(setup.db, found!, 5_000)
    const looking = script === 'not connected' ? context({}, { providers: fixedProviders([]) }) : context(script)
    return checkStatus(looking, REFUND, taken!)
  }

  test('in another currency settle nothing, and are logged', async () => {
    const orderId = await charged()
    const other = context({ refund: async ({ reference }) => verdict('succeeded', { reference, currencyCode: 'EUR' }) })
    const response = await refund(other, setup.shop.id, asked(orderId))
    assert.equal(response.refund_status, 'processing')
    const [row] = await setup.db.query(
      'select refunds.provider_mismatch, amount_refunded from refunds join orders using (order_id) where refund_id = $1',
      [response.refund_id],
    )
    assert.deepEqual([row!.provider_mismatch, row!.amount_refunded, setup.errors.length], ['currency', '0', 1])
    assert.equal((await setup.shop.consumables(setup.user))[0].is_active, true)
  })

  test('turned away before they began leave the key free', async () => {
    const orderId = await charged()
    const busy = context({
      refund: async () => ({ outcome: 'not_begun', why: 'returned status 401', cause: 'credentials' }),
    })
    await assert.rejects(refund(busy, setup.shop.id, asked(orderId)), { status: 503 })
    assert.equal(setup.errors.length, 1, 'wrong credentials are logged as an error')
    const response = await refund(context({ refund: paysBack }), setup.shop.id, asked(orderId))
    assert.deepEqual([response.refund_status, response.idempotent_replay], ['succeeded', false])
  })

  test('claimed too late for their lease begin it anew, and are made', async () => {
    const orderId = await charged()
    const clock = new HandClock()
    let claims = 0
    // The claim alone takes as long as the margin of its lease.
    const tx: Db['tx'] = (work) => {
      if (claims++ === 0) clock.advance(5_000)
      return setup.db.tx(work)
    }
    const slow = context({ refund: paysBack }, { clock, db: { ...setup.db, tx } })
    assert.equal((await refund(slow, setup.shop.id, asked(orderId))).refund_status, 'succeeded')
  })

  /** A refund that its process gave up before it called the provider. */
  async function unsent(orderId: string) {
    const clock = new HandClock()
    const late = <T>(work: () => T): T => {
      clock.advance(5_000)
      return work()
    }
    const db: Db = {
      ...setup.db,
      tx: (work) => late(() => setup.db.tx(work)),
      query: ((...given) => late(() => setup.db.query(...given))) as Db['query'],
    }
    const response = await refund(context({ refund: never }, { clock, db }), setup.shop.id, asked(orderId))
    assert.equal(response.refund_status, 'processing')
    return response
  }
  const never = async (): Promise<never> => assert.fail('must not be called')

  test('that no call could be made for in time are begun by the next look, not failed', async () => {
    const response = await unsent(await charged())
    // A look that cannot make the call either leaves it to the next one.
    const asks = { lookUpRefund: never, refuseRefund: never }
    const turnsAway = async () => ({ outcome: 'not_begun', why: 'too many calls', cause: 'busy' }) as const
    assert.equal((await lookAgain(response.refund_id, { refund: turnsAway, ...asks })).status, 'processing')
    assert.equal((await lookAgain(response.refund_id, 'not connected')).status, 'processing')
    const settled = await lookAgain(response.refund_id, { refund: paysBack, ...asks })
    assert.equal(settled.status, 'succeeded')
  })

  test('that were not sent are not sent by a look that has lost them to another one', async () => {
    const { refund_id } = await unsent(await charged())
    await release(refund_id)
    const found = await refundsInProgress.find(setup.db.query, refund_id)
    const stale = await refundsInProgress.take(setup.db, found!, 5_000)
    // The process is frozen here; another one takes the refund meanwhile, and gives it up.
    const failed = await lookAgain(refund_id, {
      refund: async ({ reference, amountMinor }) => verdict('failed', { reference, amountMinor }),
    })
    assert.equal(failed.status, 'failed')
    await checkStatus(context({ refund: never, lookUpRefund: never, refuseRefund: never }), REFUND, stale!)
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
    assert.equal((await refund(failsOnce, setup.shop.id, asked(orderId, null))).refund_status, 'failed')
    assert.equal((await refund(failsOnce, setup.shop.id, asked(orderId, null))).refund_status, 'succeeded')
    assert.equal(new Set(keys).size, 2)
  })

  test('that are soft ask no provider and move no money', async () => {
    const orderId = await charged()
    const never = async (): Promise<never> => assert.fail('a soft refund moves no money')
    const response = await refund(context({ refund: never, admits: () => false }), setup.shop.id, {
      ...asked(orderId),
      isSoft: true,
    })
    assert.deepEqual([response.refund_status, response.consumable_revoked], ['succeeded', false])
    const [, row] = await setup.shop.report({ order_id: orderId })
    assert.deepEqual([row.status, row.psp_transaction_type, row.amount], ['refunded', 'soft_refund', 10.5])
  })
})
