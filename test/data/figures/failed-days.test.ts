// A day that cannot be computed: all other days are, and every place that shows figures names the project and the day.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { followFigures } from '../../../src/data/figures/follow.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { insert, type Rows } from '../../support/data.ts'
import { assertExact } from '../../support/figures.ts'
import { line, openImports } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { until } from '../../support/time.ts'

let key: string
const dashboard = await startDashboard()
after(() => dashboard.stop())
key = (await dashboard.operator('write')).key
const cookie = await dashboard.signIn(key)

const DAYS = ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04']
const RECORDS: Rows = {
  profiles: [{ id: 'profile' }],
  sessions: DAYS.map((day) => ({ id: `of-${day}`, profile_id: 'profile', created_at: `${day}T09:00:00Z` })),
}

const MARK_ALL = `insert into figure_marks (project_id, family, day) values ($1, 'all', '2026-01-01')`

/** Computes figures as the server's background work does, until the condition holds. */
async function follow(condition: () => Promise<boolean>): Promise<void> {
  const stop = followFigures(dashboard.server.app)
  await until('figures', condition).finally(stop)
}

async function figures(projectId: string) {
  const query = 'metric=sessions&by=day&from=2026-01-01&to=2026-01-05'
  const response = await fetch(`${dashboard.origin}/admin/v1/projects/${projectId}/figures?${query}`, {
    headers: { authorization: `Bearer ${key}` },
  })
  const { as_of, missing, data } = (await response.json()) as {
    as_of: string | null
    missing: object[]
    data: { period: string }[]
  }
  return { as_of, missing, days: data.map(({ period }) => period) }
}

test('all other days are computed; as_of, the doctor, Today and the log name the project and the day', async () => {
  const { server } = dashboard
  const shop = await server.project()
  const other = await server.project()
  for (const project of [shop, other]) {
    await insert(server.db, project, RECORDS)
    await server.db.query(MARK_ALL, [project.id])
  }
  await server.db.query(
    `alter table figures_visits add constraint broken check (project_id <> '${shop.id}' or day <> '2026-01-03')`,
  )
  await follow(async () => (await figures(shop.id)).as_of !== null && (await figures(other.id)).as_of !== null)
  const { missing, days } = await figures(shop.id)
  assert.deepEqual(
    [missing, days],
    [[{ project_id: shop.id, day: '2026-01-03', code: '23514' }], DAYS.filter((day) => day !== '2026-01-03')],
  )
  assert.deepEqual((await figures(other.id)).days, DAYS)
  const lines = server.logLines().filter((text) => text.includes('The figures of a day cannot be computed.'))
  const { project_id, day, family } = JSON.parse(lines[0]!)
  assert.deepEqual([project_id, day, family], [shop.id, '2026-01-03', 'visits'])
  const { stdout } = await tundishAgain(['doctor'], server.env)
  assert.match(stdout, new RegExp(`project ${shop.id} on 2026-01-03 cannot be computed \\(SQLSTATE 23514\\)`))
  const seen = async (path: string) => (await dashboard.visit(path, { cookie })).text
  assert.match(await seen(`/?project=${shop.id}`), /3 Jan( 2026)? cannot be computed: changes of them are not counted/)
  const organization = await seen(`/?project=all:${shop.organizationId}`)
  assert.match(organization, new RegExp(`<h2>Days that cannot be computed</h2>.*${shop.id}: 3 Jan( 2026)?`, 's'))
  const rebuilt = await tundishAgain(['figures', 'rebuild', '--project', shop.id, '--json'], server.env)
  assert.deepEqual(JSON.parse(rebuilt.stdout).missing, missing)

  // Once nothing is in the way, the day is tried again without a change of its records, also if the clock was set back since.
  await server.db.query('alter table figures_visits drop constraint broken')
  await server.db.query(
    `update figure_failures set next_attempt_at = db_clock() + interval '3 hours' where project_id = $1`,
    [shop.id],
  )
  await follow(async () => (await figures(shop.id)).missing.length === 0)
  assert.deepEqual((await figures(shop.id)).days, DAYS)
  await assertExact(server.db, shop.id)
})

test('texts that were stored before they had a limit are cut in figures', async () => {
  const imports = await openImports()
  try {
    const project = await imports.project()
    await imports.run(project, [line.profile(), line.session(), line.payment({ status: 'failed' })])
    const long = randomBytes(3000).toString('hex')
    await imports.rows(`update sessions set locale = '${long}', country = '${long}'`)
    await imports.rows(`update report_transactions set psp_reason_code = '${long}'`)
    await imports.rows(MARK_ALL, [project.id])
    await assertExact(imports.db, project.id)
    assert.deepEqual(await imports.rows('select * from figure_failures'), [])
    assert.equal((await imports.rows(`select from figures_visits where key = '${long.slice(0, 256)}'`)).length, 2)
  } finally {
    await imports.stop()
  }
})
