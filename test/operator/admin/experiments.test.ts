// The results of experiments: by hand on a small world, and equal to SQL over the records.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { followAll } from '../../../src/data/figures/follow.ts'
import { readExperiments } from '../../../src/data/figures/verdicts.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { BASICS, insert } from '../../support/data.ts'
import { assertExact } from '../../support/figures.ts'
import { type Line, line, openImports, uuid } from '../../support/imports.ts'

const FROM = Date.parse('2026-01-01T00:00:00Z')
const day = (n: number) => new Date(FROM + n * 86_400_000).toISOString()
const PERIOD = { from: '2026-01-01', to: '2026-02-01', test: false }

const imports = await openImports()
after(() => imports.stop())
const project = await imports.project()
const lines: Line[] = [
  line.product(),
  line.merchant_account({}),
  ...['decided', 'open', 'wrong'].map((id) => line.experiment({ id, title: id })),
]
let n = 0
const people = (experiment_id: string, variant: string, count: number, payers: number, price: number) => {
  for (let one = 0; one < count; one += 1) {
    n += 1
    const id = `p${n}`
    lines.push(
      line.profile({ id }),
      line.customer({ external_id: id, profile_id: id }),
      line.session({ id: `s${n}`, profile_id: id, created_at: day(n % 20), experiment_id, variant }),
      // The second session in the experiment does not count, whatever its variant.
      line.session({ id: `again${n}`, profile_id: id, created_at: day(25), experiment_id, variant: 'b' }),
    )
    const paid = (name: string, after: number, more = {}) =>
      line.transaction({
        id: `${name}${n}`,
        profile_id: id,
        created_at: day((n % 20) + after),
        price,
        price_usd: price,
        ...more,
      })
    // A payment after 90 days and one in a sandbox do not count.
    if (one < payers) lines.push(paid('t', 3), paid('late', 90), paid('sandbox', 3, { sandbox: true }))
    if (one < payers && one < 3)
      lines.push(
        line.payment({
          external_id: id,
          order_id: uuid(n),
          trx_id: uuid(10_000 + n),
          psp_transaction_type: 'refund',
          status: 'refunded',
          trx_created_at: day((n % 20) + 5),
          amount: price / 200,
          amount_usd: price / 200,
          currency_code: 'USD',
        }),
      )
  }
}
people('decided', 'a', 99, 12, 1000)
people('decided', 'b', 83, 35, 1000)
people('open', 'control', 83, 15, 2000)
people('open', 'b', 99, 22, 1500)
people('wrong', 'a', 20, 10, 100)
people('wrong', 'b', 80, 60, 100)
const { rejects } = await imports.run(project, lines)
assert.deepEqual(rejects, [])
await assertExact(imports.db, project.id)

describe('experiments', () => {
  const resultOf = async (id: string) =>
    (await readExperiments(imports.db, project.id, PERIOD)).find(({ experiment_id }) => experiment_id === id)!

  test('a difference that is real has a verdict', async () => {
    const { control, people, wrong_split, variants } = await resultOf('decided')
    assert.deepEqual([control, people, wrong_split], ['a', 182, false])
    const [a, b] = variants as [(typeof variants)[0], (typeof variants)[0]]
    // Three were refunded a half.
    assert.deepEqual([a.people, a.payers, a.revenue, a.refunded], [99, 12, 105, 3])
    assert.deepEqual([b.people, b.payers, b.revenue, b.refunded], [83, 35, 335, 3])
    assert.equal(a.against_control, null)
    assert.equal(b.against_control!.verdict, 'better')
    const { difference, low, high, p } = b.against_control!.conversion!
    assert.ok(Math.abs(difference - (35 / 83 - 12 / 99)) < 1e-9 && low > 0 && high < 1 && p < 0.001)
    assert.ok(b.against_control!.revenue_per_person!.low > 0)
    assert.equal(b.against_control!.people_needed, 0)
  })

  test('a difference that may be chance has none, and says how many people are missing', async () => {
    const { control, variants } = await resultOf('open')
    assert.equal(control, 'control')
    const b = variants.find(({ variant }) => variant === 'b')!
    assert.equal(b.against_control!.verdict, 'none')
    assert.ok(b.against_control!.conversion!.p > 0.05)
    assert.ok(b.against_control!.people_needed! > 500)
  })

  test('variants of sizes that chance does not make have none', async () => {
    const { wrong_split, split_p, variants } = await resultOf('wrong')
    assert.ok(wrong_split && split_p! < 0.001)
    assert.equal(variants.find(({ variant }) => variant === 'b')!.against_control!.verdict, 'none')
  })

  test('revenue and its variance are those of the people, by SQL', async () => {
    const rows = await imports.rows(
      `with people as (
         select distinct on (s.profile_id) s.profile_id, s.visit_variant as variant, s.created_at
         from sessions s where s.project_id = $1 and s.experiment_id = 'decided' order by s.profile_id, s.created_at),
       worth as (
         select p.variant, coalesce((select sum(t.price_usd) from transactions t where t.project_id = $1
             and t.profile_id = p.profile_id and not t.sandbox and t.created_at < p.created_at + interval '90 days'), 0)
           - coalesce((select sum(r.amount_usd * 100) from customers c join report_transactions r using (organization_id, external_id)
             where c.profile_id = p.profile_id and c.project_id = $1), 0) as net from people p)
       select variant, sum(net) as net, sum(net * net) as squares from worth group by 1 order by 1`,
      [project.id],
    )
    const stored = await imports.rows(
      `select subkey as variant, sum(net_usd) as net, sum(net_usd_squares) as squares from figures_experiments
       where project_id = $1 and split <> '' and key = 'decided' group by 1 order by 1`,
      [project.id],
    )
    const numbers = (all: typeof rows) =>
      all.map(({ variant, net, squares }) => [variant, Number(net), Number(squares)])
    assert.deepEqual(numbers(stored), numbers(rows))
  })
})

test('400 for a control that no experiment has', async () => {
  const dashboard = await startDashboard()
  after(() => dashboard.stop())
  const { server, project } = dashboard
  const path = `/projects/${project.id}/figures/experiments?from=2026-01-01&to=2026-01-31&control=`
  assert.equal((await server.admin(`${path}nobody`)).status, 200, 'nothing is compared')
  await insert(server.db, project, {
    ...BASICS,
    profiles: [{ id: 'p1' }, { id: 'p2' }],
    sessions: ['a', 'b'].map((variant, n) => ({
      id: variant,
      profile_id: `p${n + 1}`,
      created_at: day(n),
      experiment_id: 'experiment',
      visit_variant: variant,
    })),
  })
  const mark = `insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)`
  await server.db.query(mark, [project.id])
  await followAll(server.db)
  const { status, body } = await server.admin(`${path}typo`)
  assert.equal(status, 400)
  assert.equal(body.message, 'control must be a variant with people on these days, such as a, b, got "typo".')
  assert.equal((await server.admin(`${path}b`)).body.data[0].control, 'b')
})

test('refunds of what was paid before are no refunds of payers, those at a sandbox count nowhere, and those without a value are counted', async () => {
  const dashboard = await startDashboard()
  after(() => dashboard.stop())
  const { server, project } = dashboard
  const ids = Array.from({ length: 8 }, (_, n) => `p${n}`)
  await insert(server.db, project, {
    ...BASICS,
    profiles: ids.map((id) => ({ id })),
    sessions: ids.map((id, n) => ({
      id,
      profile_id: id,
      experiment_id: 'experiment',
      visit_variant: n % 2 ? 'a' : 'b',
      created_at: '2026-01-10T00:00:00Z',
    })),
    transactions: ['p0', 'p1'].map((id) => ({ id, profile_id: id, price: 1000, created_at: '2026-01-11T00:00:00Z' })),
    customers: ids.map((id) => ({ external_id: id, profile_id: id })),
  })
  await server.db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, amount,
       amount_usd, currency_code, status, psp, psp_transaction_type)
     select $1, 'p' || n, n < 6, db_clock(), gen_random_uuid(), gen_random_uuid(), '2026-01-15'::timestamptz + n * interval '1 hour',
       1, case when n <> 4 then 1 end, 'CHF', 'refunded', 'simulator', 'refund' from generate_series(0, 6, 2) n`,
    [project.organizationId],
  )
  await server.db.query(`insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)`, [
    project.id,
  ])
  await followAll(server.db)
  const period = 'from=2026-01-01&to=2026-01-31'
  const { body } = await server.admin(`/projects/${project.id}/figures/experiments?${period}`)
  const [, b] = body.data[0].variants
  assert.deepEqual([b.payers, b.refunded, b.revenue, b.without_usd], [1, 1, 8, 1])
  assert.equal(b.against_control.refund_rate.difference, 1)
  const cookie = await dashboard.signInAs('read')
  const { text } = await dashboard.visit(`/experiments?project=${project.id}&${period}`, { cookie })
  assert.match(text, /Revenue is without 1 payment, refund or chargeback that has no value in US dollars\./)
})
