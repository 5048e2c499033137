// Attempts at payments by product: the payment report names subscriptions as the payment service does, the data API by ids.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { followProject } from '../../../src/data/figures/follow.ts'
import { openAdmin } from '../../support/admin.ts'
import { PROJECT } from '../../support/events.ts'
import { line, textOf, uuid } from '../../support/imports.ts'

const { events, admin } = await openAdmin()

describe('attempts by product', () => {
  before(async () => {
    let made = 0
    const attempt = (status: string, psp_date: string, meta_subs_id: string | null) => {
      made += 1
      const ids = { external_id: 'ada', order_id: uuid(5000 + made), trx_id: uuid(900_000 + made), meta_subs_id }
      const how = { psp_transaction_type: 'sale', currency_code: 'USD', amount: 1 }
      return line.payment({ ...ids, ...how, status, psp_date, trx_created_at: psp_date })
    }
    const paid = (subscription_id: string, created_at: string) => [
      line.transaction({ id: `t${created_at}`, profile_id: 'ada', subscription_id, created_at }),
      attempt('succeeded', created_at, 'f00d'),
    ]
    const lines = [
      ...['monthly', 'yearly'].map((id) => line.product({ id })),
      line.profile({ id: 'ada' }),
      ...['monthly', 'yearly'].map((id) =>
        line.subscription({ id: `sub_${id}`, profile_id: 'ada', product_id: id, session_id: null }),
      ),
      line.merchant_account({}),
      line.customer({ external_id: 'ada', profile_id: 'ada' }),
      ...paid('sub_monthly', '2026-01-01T00:00:00Z'),
      attempt('failed', '2026-02-01T00:00:00Z', 'f00d'),
      ...paid('sub_monthly', '2026-02-02T00:00:00Z'),
      attempt('failed', '2026-03-01T00:00:00Z', 'f00d'),
      ...paid('sub_yearly', '2026-03-02T00:00:00Z'),
      attempt('failed', '2026-03-03T00:00:00Z', 'sub_monthly'),
      attempt('failed', '2026-03-04T00:00:00Z', 'never paid'),
      attempt('failed', '2026-03-05T00:00:00Z', null),
    ]
    const { body } = await admin.call('POST', `/projects/${PROJECT}/import?live=false`, textOf(lines))
    assert.deepEqual(body.rejects, [])
    await followProject(events.app.db, PROJECT)
  })
  const ask = async (metric: string, product: string) => {
    const query = `metric=${metric}&product=${product}&from=2026-01-01&to=2026-03-31`
    const { body } = await admin.call('GET', `/projects/${PROJECT}/figures?${query}`)
    return Object.values(body.data[0]?.values ?? {})
  }

  test('a declined attempt is of the product that it names, or that the nearest payment for its subscription was for', async () => {
    assert.deepEqual(await ask('attempts,accepted,declined', 'monthly'), [4, 2, 2])
    assert.deepEqual(await ask('attempts,accepted,declined', 'yearly'), [2, 1, 1])
    assert.deepEqual(await ask('first_declines,recovered', 'monthly'), [2, 1])
    assert.deepEqual(await ask('first_declines,recovered', 'yearly'), [1, 1])
  })
})
