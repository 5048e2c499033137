// The figures of one project do not wait for those of another, however many days of it have to be computed.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createProject } from '../../../src/core/tenants/tenants.ts'
import { followAll, followFigures } from '../../../src/data/figures/follow.ts'
import { startShop } from '../../support/billing.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { until } from '../../support/time.ts'

const { billing, shop } = await startShop({}, { worker: false })
const user = await shop.customer({ profileId: 'pro_1' })
// Projects are computed in the order of their ids.
const earlier = `0-earlier-${shop.projectId}`
await createProject(billing.db, billing.server.app.seal, { id: earlier, organization: shop.id })
for (const project of [earlier, shop.projectId]) await assertExact(billing.db, project)

describe('figures of several projects', () => {
  const mark = (days: string) =>
    billing.db.query(
      `insert into figure_marks (project_id, family, day) select $1, 'sales', day from ${days} marked (day)`,
      [earlier],
    )
  const marks = async () => {
    const [row] = await billing.db.query('select count(*) as n from figure_marks where project_id = $1', [earlier])
    return Number(row!.n)
  }
  const unmark = () => billing.db.query('delete from figure_marks where project_id = $1', [earlier])
  const sales = async () => (await figuresOf(billing.db, shop.projectId, 'sales', { test: true }))[0]?.sales ?? 0
  async function charge(): Promise<number> {
    const known = await sales()
    const { status, body } = await shop.charge(user)
    assert.deepEqual([status, body.checkout_status], [200, 'succeeded'])
    return known + 1
  }

  test('are computed in turn: a thousand years of one project do not delay the charges of another', async () => {
    await mark(`generate_series('1900-01-01'::timestamp, '2999-12-31', '1 day')`)
    const stop = followFigures(billing.server.app)
    try {
      for (const begun of ['before the years', 'while they are computed']) {
        const wanted = await charge()
        await until(`figures with the charge of ${begun}`, async () => (await sales()) === wanted)
        assert.ok((await marks()) > 0, `the charge ${begun} waited for all of the years`)
      }
    } finally {
      await unmark()
      await stop()
    }
  })

  test('are computed although those of another cannot be', async () => {
    await mark(`(values ('5874897-12-31'::date))`)
    const wanted = await charge()
    try {
      await assert.rejects(followAll(billing.db))
      assert.equal(await sales(), wanted)
    } finally {
      await unmark()
    }
  })

  test('of ten years are complete after a pass', async () => {
    await mark(`generate_series('2020-01-01'::timestamp, '2030-12-31', '1 day')`)
    await followAll(billing.db)
    assert.equal(await marks(), 0)
  })
})
