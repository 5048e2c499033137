// Which payments are test data: as their merchant account was connected, also what was imported before.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
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
})
