// Following costs what changed: only projects with changes are computed, and `as_of` never runs ahead of what is counted.
import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { readHorizon } from '../../../src/core/lists/horizon.ts'
import { createProject } from '../../../src/core/tenants/tenants.ts'
import { figuresAsOf } from '../../../src/data/figures/as-of.ts'
import { followAll } from '../../../src/data/figures/follow.ts'
import { type Organization, startBilling } from '../../support/billing.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { setDatabaseClock, until } from '../../support/time.ts'

const billing = await startBilling({}, { worker: false })
after(() => billing.stop())

describe('following', () => {
  let shop: Organization
  beforeEach(async () => {
    shop = await billing.organization()
  })

  const asOf = async (project = shop.projectId) => Date.parse((await figuresAsOf(billing.db, [project]))!)
  const sales = async (project = shop.projectId) =>
    (await figuresOf(billing.db, project, 'sales', { test: true }))[0]?.sales ?? 0
  const charge = async (customer: string) => {
    const { status, body } = await shop.charge(customer)
    assert.deepEqual([status, body.checkout_status], [200, 'succeeded'])
  }
  /** The projects that were computed during `work`. */
  async function computed(work: () => Promise<void>): Promise<string[]> {
    const versions = async () =>
      new Map(
        (await billing.db.query('select project_id, xmin::text as version from figure_progress')).map(
          ({ project_id, version }) => [project_id!, version!],
        ),
      )
    const before = await versions()
    await work()
    return [...(await versions())].filter(([id, version]) => before.get(id) !== version).map(([id]) => id)
  }

  test('a charge has its own project computed, not the others of its organization, and an idle pass has none', async () => {
    const other = await createProject(billing.db, billing.server.app.seal, { id: 'neighbour', organization: shop.id })
    const { customer } = shop
    const user = await customer({ profileId: 'pro_1' })
    await assertExact(billing.db, shop.projectId)
    await assertExact(billing.db, other.id)
    await charge(user)
    assert.equal(await sales(), 0)
    assert.deepEqual(await computed(() => followAll(billing.db)), [shop.projectId])
    assert.equal(await sales(), 1)
    assert.deepEqual(await computed(() => followAll(billing.db)), [])
    await assertExact(billing.db, shop.projectId)
  })

  test('as_of lies before a charge that is not counted yet, and after it once it is', async () => {
    const user = await shop.customer({ profileId: 'pro_1' })
    await assertExact(billing.db, shop.projectId)
    await charge(user)
    const [made] = await billing.db.query(
      'select created_at from transactions where project_id = $1 order by created_at desc limit 1',
      [shop.projectId],
    )
    const chargedAt = Date.parse(made!.created_at!)
    await readHorizon(billing.db, shop.projectId)
    assert.ok((await asOf()) <= chargedAt, 'before the pass')
    await followAll(billing.db)
    await until('a horizon after the charge', async () => {
      await readHorizon(billing.db, shop.projectId)
      return (await asOf()) > chargedAt
    })
  })

  test('as_of does not pass a writer that has begun, in its own project', async () => {
    const [user, neighbour] = [await shop.customer({ profileId: 'pro_1' }), await billing.organization()]
    await charge(user)
    await assertExact(billing.db, shop.projectId)
    const begun = await billing.db.tx(async (query) => {
      const [row] = await query('select begin_write($1) as base', [shop.projectId])
      await charge(user)
      await followAll(billing.db)
      return Date.parse(row!.base!)
    })
    assert.ok((await asOf()) <= begun, 'the project of the writer')
    await billing.db.tx(async (query) => {
      await query('select begin_write($1)', [neighbour.projectId])
      await until('a horizon after the writer', async () => {
        await readHorizon(billing.db, shop.projectId)
        await followAll(billing.db)
        return (await asOf()) > begun
      })
    })
  })

  test('a charge under a clock that was set back by days is counted once, on the day of its transaction', async () => {
    const user = await shop.customer({ profileId: 'pro_1' })
    const today = (await readHorizon(billing.db, shop.projectId)).slice(0, 10)
    await assertExact(billing.db, shop.projectId)
    await setDatabaseClock(billing.server.env.DATABASE_URL!, '-3 days')
    try {
      await charge(user)
      await assertExact(billing.db, shop.projectId)
      assert.equal(await sales(), 1)
      const [row] = await figuresOf(billing.db, shop.projectId, 'sales attempts', { test: true, period: 'day' })
      assert.deepEqual(row, { period: today, sales: 1, attempts: 1 })
    } finally {
      await setDatabaseClock(billing.server.env.DATABASE_URL!, undefined)
    }
  })
})
