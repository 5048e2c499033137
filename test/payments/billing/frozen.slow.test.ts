// A process that stops in the middle of a charge or a refund holds up an erasure of the customer for seconds only.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '../../../src/lib/pg/db.ts'
import type { Query } from '../../../src/lib/pg/types.ts'
import { ordersInProgress } from '../../../src/payments/billing/charge/row.ts'
import { settle as settleCharge } from '../../../src/payments/billing/charge/settle.ts'
import { claim } from '../../../src/payments/billing/refund/claim.ts'
import { refundsInProgress } from '../../../src/payments/billing/refund/row.ts'
import { settle as settleRefund } from '../../../src/payments/billing/refund/settle.ts'
import { startShop } from '../../support/billing.ts'
import { refundOf } from './in-process.ts'

const { billing, shop } = await startShop({}, { worker: false })

const refused = { outcome: 'refused' } as const

/** The order of a charge, with something that an erasure wipes. */
async function charged(profileId: string, token: string) {
  const user = await shop.customer({ profileId, token })
  const { body } = await shop.charge(user, { client_metadata: { note: 'n' } })
  return { user, orderId: body.order_id as string }
}

/** The last work of a process, each with the name of the statement at which it stops. */
const LAST_WORK: Record<
  string,
  { at: string; token: string; run(db: Db, user: string, orderId: string): Promise<unknown> }
> = {
  'settles a charge': {
    at: 'finish orders',
    token: 'sim_charge_then_drop',
    async run(db, _, orderId) {
      return settleCharge(db, (await ordersInProgress.find(db.query, orderId))!, refused)
    },
  },
  'claims a refund': {
    at: 'insert refund',
    token: 'pm_card_visa',
    run: (db, user, orderId) => claim(db, shop.id, refundOf(user, orderId), 10_000, async () => {}),
  },
  'settles a refund': {
    at: 'finish refund',
    token: 'pm_card_visa',
    async run(db, user, orderId) {
      const { refund } = await claim(billing.db, shop.id, refundOf(user, orderId), 10_000, async () => {})
      return settleRefund(db, (await refundsInProgress.find(db.query, refund.refund_id))!, refused)
    },
  },
}

for (const [what, { at, token, run }] of Object.entries(LAST_WORK)) {
  test(`that stops while it ${what}`, async () => {
    const profileId = what.replaceAll(' ', '_')
    const { user, orderId } = await charged(profileId, token)
    const { db, stopped, end } = stopping(billing.db, at)
    const work = run(db, user, orderId).catch(() => {})
    try {
      await Promise.race([stopped, work.then(() => assert.fail(`it did not come to "${at}"`))])
      const call = { key: shop.projectKey, method: 'POST', body: { profile_ids: [profileId] } }
      const { status, text } = await billing.server.api('/profiles/anonymize', call)
      assert.equal(status, 200, text)
    } finally {
      end()
      await work
    }
  })
}

/** Transactions of this database stop before the statement of this name, until `end`, and then fail. */
function stopping(db: Db, name: string) {
  const stopped = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => {})
  const stopAt = (query: Query) =>
    ((statement, params) => {
      if (typeof statement === 'string' || statement.name !== name) return query(statement, params)
      stopped.resolve()
      return ended.promise
    }) as Query
  const tx: Db['tx'] = (work) => db.tx((query) => work(stopAt(query), () => {}))
  return { db: { ...db, tx }, stopped: stopped.promise, end: () => ended.reject(new Error('it was stopped')) }
}
