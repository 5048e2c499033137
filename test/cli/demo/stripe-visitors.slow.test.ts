// The people of the demo who pay at Stripe: linked to their sessions, in the figures, and in the months that tie out.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { prepareDemo } from '../../../src/cli/demo/demo.ts'
import { assertTied } from '../../operator/admin/tie-out.ts'
import { startDemoServer } from '../../operator/dashboard/demo-database.ts'
import { assertExact } from '../../support/figures.ts'
import { openStripeSimulator } from '../../support/simulators.ts'
import { until } from '../../support/time.ts'

const simulator = await openStripeSimulator()
const server = await startDemoServer({ STRIPE_API_URL: simulator.url }, { worker: true })
const app = { ...server.app, simulatorUrls: { stripe: () => simulator.url } }
await prepareDemo(app, { url: server.url, adminUrl: undefined })
after(async () => {
  await server.stop()
  await simulator.cleanUp()
})

test('visitors of the funnels paid at Stripe: the import links each to the profile and the session, and figures count them', async () => {
  const { db } = server
  await until('the import', async () => {
    const [row] = await db.query(`select status from stripe_imports where project_id = 'demo'`)
    return row?.status === 'following'
  })
  const [sums] = await db.query(`
    select count(*) as n, count(*) filter (where u.session_id is not null and u.profile_id = s.profile_id) as linked,
      count(*) filter (where u.funnel_id = s.funnel_id) as of_funnel
    from subscriptions u left join sessions s on s.project_id = u.project_id and s.id = u.session_id
    where u.project_id = 'demo' and u.id like 'sub\\_%' and u.payment_provider = 'stripe' and u.psp_id = u.id`)
  assert.equal(sums!.n, '20')
  assert.deepEqual([sums!.linked, sums!.of_funnel], ['20', '20'])
  const [paid] = await db.query(`
    select count(distinct t.session_id) as n from transactions t
    where t.project_id = 'demo' and t.id like 'ch\\_%' and t.session_id is not null`)
  assert.equal(paid!.n, '20')
  // The server follows the account and describes older sessions, which marks their days again.
  const isComputed = async () => {
    const [marks] = await db.query(`select count(*) as n from figure_marks where project_id = 'demo'`)
    return marks!.n === '0'
  }
  await until('figures without marks', isComputed, 600_000)
  await assertExact(db, 'demo')
})

test('every month of the demo ties out: the revenue of the dashboard is that of finance and the named differences', async () => {
  const rows = await server.db.query(`
    select distinct to_char(created_at at time zone 'UTC', 'YYYY-MM') as month from transactions
    where project_id = 'demo' order by 1`)
  assert.ok(rows.length > 12)
  const names = await assertTied(
    server,
    'demo',
    rows.map(({ month }) => month!),
  )
  assert.ok(names.size > 0)
})
