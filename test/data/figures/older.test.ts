// Figures while programs of two versions run: a program that is older than the schema leaves them to a newer one, and what it computes
// alone is computed again by the next newer one.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { followFigures } from '../../../src/data/figures/follow.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { insert } from '../../support/data.ts'
import { column } from '../../support/rows.ts'
import { until } from '../../support/time.ts'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const { key } = await dashboard.operator('write')
const { server } = dashboard
const { query } = server.db

const DAYS = ['2026-01-01', '2026-01-02', '2026-01-03']
// A version that this program does not know.
const NEWER = `insert into schema_migrations (version, name, breaking) values (9999, 'of a newer program', false)`
const NO_LONGER = 'delete from schema_migrations where version = 9999'

/** Computes figures as the server's background work does, until the condition holds. */
async function follow(condition: () => Promise<boolean>): Promise<void> {
  const stop = followFigures(server.app)
  await until('figures', condition).finally(stop)
}

const count = async (text: string) => Number((await query(`select count(*) as n from ${text}`))[0]!.n)
const nothingMarked = async () => (await count('figure_marks')) === 0

async function daysOf(projectId: string): Promise<string[]> {
  const path = `/admin/v1/projects/${projectId}/figures?metric=sessions&by=day&from=2026-01-01&to=2026-01-05`
  const response = await fetch(`${dashboard.origin}${path}`, { headers: { authorization: `Bearer ${key}` } })
  const { data } = (await response.json()) as { data: { period: string }[] }
  return data.map(({ period }) => period)
}

test('what an older program has computed is computed again by the next one of the schema', async () => {
  const shop = await server.project()
  const sessions = (days: string[]) =>
    days.map((day) => ({ id: `of-${day}`, profile_id: 'profile', created_at: `${day}T09:00:00Z` }))
  await insert(server.db, shop, { profiles: [{ id: 'profile' }], sessions: sessions(DAYS.slice(0, 2)) })
  await query(NEWER)
  try {
    // What a migration marks, and a family that only the newer program has.
    await query(`insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)`, [shop.id])
    await follow(async () => (await nothingMarked()) && (await daysOf(shop.id)).length === 2)
    await insert(server.db, shop, { sessions: sessions(DAYS.slice(2)) })
    await query(
      `insert into figure_marks (project_id, family, day) values ($1, 'visits', $2), ($1, 'of-a-newer', $2)`,
      [shop.id, DAYS[2]!],
    )
    await follow(async () => (await nothingMarked()) && (await daysOf(shop.id)).length === 3)
    // As if the older program had left them out.
    await query('delete from figures_visits where project_id = $1', [shop.id])
    assert.deepEqual(await daysOf(shop.id), [])
    // In place of the newer program: its family is marked again.
    const again = await query(
      `select day::text as day from figures_by_older where project_id = $1 and family = 'of-a-newer'`,
      [shop.id],
    )
    assert.deepEqual(column(again, 'day'), [DAYS[2]])
  } finally {
    await query(NO_LONGER)
  }
  await follow(async () => (await daysOf(shop.id)).length === 3)
  assert.deepEqual(await daysOf(shop.id), DAYS)
  assert.equal(await count('figures_by_older'), 0)
})

test('an older program computes nothing while a newer one does, and goes on when that is gone', async () => {
  const shop = await server.project()
  await insert(server.db, shop, {
    profiles: [{ id: 'profile' }],
    sessions: [{ id: 'one', profile_id: 'profile', created_at: `${DAYS[0]}T09:00:00Z` }],
  })
  await query(NEWER)
  try {
    await query('insert into figure_programs (version, seen_at) values (9999, db_clock())')
    await query(`insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)`, [shop.id])
    const before = await query(
      `update figure_programs set seen_at = seen_at - interval '1 minute' where version < 9999 returning seen_at::text as at`,
    )
    const looked = async () =>
      (await query(`select seen_at::text as at from figure_programs where version < 9999`))[0]!.at !== before[0]!.at
    await follow(looked)
    assert.equal(await count(`figure_marks where project_id = '${shop.id}'`), 1)
    await query(`update figure_programs set seen_at = seen_at - interval '4 minutes' where version = 9999`)
    await follow(async () => (await daysOf(shop.id)).length === 1)
  } finally {
    await query(NO_LONGER)
  }
})
