// Which payments are test data: as their merchant account was connected, also what was imported before.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { BASICS, insert } from '../../support/data.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { connectStripe, NOTIFIED_MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'

const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())

describe('payments of a merchant account', () => {
  test('are test data once it is connected as a sandbox, imported and charged ones alike', async () => {
    const { db } = billing
    const shop = await billing.organization()
    await shop.customer({ psp: 'stripe', merchantId: NOTIFIED_MERCHANT, at: '2026-01-05T00:00:00Z' })
    await assertExact(db, shop.projectId)
    const seen = async (test: boolean) => {
      const [sums] = await figuresOf(db, shop.projectId, 'sales attempts', { test })
      return sums ?? { sales: 0, attempts: 0 }
    }
    assert.deepEqual(await seen(false), { sales: 1, attempts: 1 })
    const { customerWithCard } = await connectStripe(billing, shop)
    await assertExact(db, shop.projectId, 'after the account was connected')
    assert.deepEqual(
      [await seen(false), await seen(true)],
      [
        { sales: 0, attempts: 0 },
        { sales: 1, attempts: 1 },
      ],
    )
    const { external_id: user } = await customerWithCard()
    assert.equal((await shop.charge(user)).status, 200)
    await assertExact(db, shop.projectId)
    assert.deepEqual(
      [await seen(false), await seen(true)],
      [
        { sales: 0, attempts: 0 },
        { sales: 2, attempts: 2 },
      ],
    )
  })

  test('count no refund in experiments once it is a sandbox', async () => {
    const { db } = billing
    const shop = await billing.organization()
    const profiles = [{ id: 'profile' }]
    const sessions = [{ id: 'session', experiment_id: 'experiment', created_at: '2026-01-04T00:00:00Z' }]
    await insert(db, { id: shop.projectId, organizationId: shop.id }, { ...BASICS, profiles, sessions })
    const user = await shop.customer({
      ...{ psp: 'stripe', merchantId: NOTIFIED_MERCHANT, at: '2026-01-05T00:00:00Z' },
      ...{ type: 'refund', status: 'refunded' },
    })
    await db.query(`update customers set profile_id = 'profile' where external_id = $1`, [user])
    await db.query(`insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)`, [
      shop.projectId,
    ])
    await assertExact(db, shop.projectId)
    const revenue = async () => {
      const path = `/projects/${shop.projectId}/figures/experiments?from=2026-01-01&to=2026-01-31`
      return (await billing.server.admin(path)).body.data[0].variants[0].revenue
    }
    assert.equal(await revenue(), -5)
    await connectStripe(billing, shop)
    await assertExact(db, shop.projectId, 'after the account was connected')
    assert.equal(await revenue(), 0)
  })
})
