// Payments that Primer authorizes after their order has ended, or has been lost: each ends cancelled, captured, or named for a person.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { adoptLost } from '../../../src/payments/billing/reconcile/lost.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { PRIMER_MERCHANT, setUpPrimerShop } from '../../support/primer-billing.ts'
import { until } from '../../support/time.ts'
import { forgetOrders, markUnlisted, unlisted } from './restored.ts'

const setup = setUpPrimerShop()
const LATE_MS = 3_600_000

beforeEach(() => setup.primer.control('/faults/clear'))

const compare = async () => {
  const { findings, in_progress } = await reconcile(
    billingContext(setup.billing.server.app),
    new Date(Date.now() - 60_000).toISOString(),
  )
  return { in_progress, findings: findings.map(({ difference, what }) => `${difference}: ${what}`) }
}

/** Sends a charge whose request arrives an hour later, when nothing waits for it. */
async function sendLate(more: object = {}) {
  const person = await setup.account.customer('tok_authorized')
  await setup.primer.control('/faults', { path: '/payments', kind: 'late', ms: LATE_MS })
  const { body } = await setup.shop.charge(person.user, more)
  assert.equal(body.checkout_status, 'processing')
  return { ...person, orderId: String(body.order_id) }
}

const arrive = () => setup.primer.control('/clock', { advance_ms: LATE_MS })

/** The order as two look-ups that found nothing leave it. */
async function cancelled(orderId: string): Promise<void> {
  await until('the order is cancelled', async () => {
    const [row] = await setup.billing.db.query(
      `update orders set begun_at = db_clock() - interval '10 minutes', not_found_at = db_clock() - interval '5 minutes',
         next_look_at = db_clock() where order_id = $1 and lease_until is null returning status`,
      [orderId],
    )
    return row?.status === 'cancelled'
  })
}

async function paymentsOf(orderId: string) {
  const { body } = await setup.primer.call('GET', '/payments')
  const all = body['data'] as { id: string; status: string; metadata: Record<string, string> }[]
  return all.filter(({ metadata }) => metadata['tundish_order'] === orderId)
}
const statusesOf = async (orderId: string) => (await paymentsOf(orderId)).map(({ status }) => status)
const statusHere = async (orderId: string) =>
  (await setup.billing.db.query('select status from orders where order_id = $1', [orderId]))[0]?.status

/** Removes the order, as a failover or a restored backup does. */
async function lose(orderId: string): Promise<void> {
  await until('no process has it', async () => {
    const text = `update orders set next_look_at = 'infinity' where order_id = $1 and lease_until is null returning 1`
    return (await setup.billing.db.query(text, [orderId])).length === 1
  })
  await forgetOrders(setup.billing.db, [orderId])
}

test('one of a cancelled order is cancelled when its webhook comes', async () => {
  const { orderId } = await sendLate()
  await cancelled(orderId)
  await arrive()
  await until('it is cancelled', async () => (await statusesOf(orderId))[0] === 'CANCELLED')
  assert.deepEqual([await statusHere(orderId), await statusesOf(orderId)], ['cancelled', ['CANCELLED']])
})

test('one whose webhook was lost is cancelled by a reconciliation, and named while it cannot be', async () => {
  await setup.primer.control('/events', { isOff: true })
  const { orderId } = await sendLate()
  await cancelled(orderId)
  await arrive()
  await setup.primer.control('/faults', { path: '/payments/[^/]+/cancel', kind: 'error_before' })
  const named = 'mismatch: 1050 minor units of USD still open there, cancelled here'
  assert.deepEqual((await compare()).findings, [named])
  assert.deepEqual(await statusesOf(orderId), ['AUTHORIZED'])
  assert.deepEqual(await compare(), { in_progress: 0, findings: [] })
  assert.deepEqual(await statusesOf(orderId), ['CANCELLED'])
})

test('one whose order was lost is reported, and captured when an operator adopts it', async () => {
  const { orderId, user } = await sendLate()
  await lose(orderId)
  await arrive()
  const named = 'missing_here: 1050 minor units of USD, pending there, without a row here'
  assert.deepEqual(await compare(), { in_progress: 0, findings: [named] })
  const id = (await paymentsOf(orderId))[0]!.id
  const lost = { organizationId: setup.shop.id, psp: 'primer', merchantId: PRIMER_MERCHANT, transactionId: id }
  const { status } = await adoptLost(billingContext(setup.billing.server.app), lost, user)
  assert.deepEqual([status, await statusesOf(orderId)], ['succeeded', ['SETTLED']])
  assert.deepEqual(await compare(), { in_progress: 0, findings: [] })
})

test('one that was under way at a failover is found, because the account is listed only when its list has it', async () => {
  const key = { idempotency_key: 'under way' }
  const { db } = setup.billing
  const { orderId, user } = await sendLate(key)
  await lose(orderId)
  await markUnlisted(db, setup.shop.id)
  await db.query(`update unlisted_accounts set cause = 'failover' where organization_id = $1`, [setup.shop.id])
  await until('the list is postponed', async () => {
    const text = `select 1 from unlisted_accounts where lease_until between db_clock() + interval '2 minutes' and db_clock() + interval '4 minutes'`
    return (await db.query(text)).length === 1
  })
  assert.equal((await setup.shop.charge(user, key)).headers['x-error-code'], 'restore_not_reconciled')
  await arrive()
  await db.query(`update unlisted_accounts set marked_at = marked_at - interval '5 minutes', lease_until = null`)
  await until('the account is listed', async () => (await unlisted(db, setup.shop.id)).length === 0)
  const { body } = await setup.shop.charge(user, key)
  assert.deepEqual([body.checkout_status, body.idempotent_replay], ['succeeded', true])
  assert.deepEqual(await statusesOf(orderId), ['SETTLED'])
})
