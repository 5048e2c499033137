// The project or organization of a page, where there are more of them than a chooser can hold.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startDashboard } from '../../support/dashboard.ts'

const MANY = 230

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('read')
const { query } = dashboard.server.db
// Each newer than the one before; the first project of all is that of the test server.
await query(`insert into organizations (id, name, created_at)
  select 'org_' || n, 'Organization ' || n, db_clock() + n * interval '1 ms' from generate_series(1, ${MANY}) n`)
await query(`insert into projects (organization_id, id, name, created_at)
  select 'org_' || n, 'project_' || n, 'Shop number ' || n, db_clock() + n * interval '1 ms'
  from generate_series(1, ${MANY}) n`)
await query(`insert into organization_clocks (organization_id) select 'org_' || n from generate_series(1, ${MANY}) n`)
await query(`insert into project_clocks (project_id) select 'project_' || n from generate_series(1, ${MANY}) n`)

const see = async (path: string) => {
  const { status, text } = await dashboard.visit(path, { cookie })
  assert.equal(status, 200, `${path} ${text}`)
  return text
}

test('a project older than those of the chooser is opened by its address and by its organization', async () => {
  const { id } = dashboard.project
  for (const path of ['/', '/subscriptions', '/people', '/keys', '/settings']) {
    const text = await see(`${path}?project=${id}`)
    assert.match(text, new RegExp(`<option value="${id}" selected>`), path)
    assert.ok(text.includes(`href="/projects?project=${id}">All projects…</a>`), path)
  }
  const whole = await see('/revenue?project=all:org_1')
  assert.match(whole, /<option value="all:org_1" selected>All projects<\/option>/)
  assert.match(whole, /<option value="project_1">Shop number 1<\/option>/)
  assert.equal((await dashboard.visit('/?project=none', { cookie })).status, 404)
})

test('without a choice the project that was shown last is opened, else the one with the most records, else the newest', async () => {
  const isShown = (id: string) => new RegExp(`<option value="${id}" selected>`)
  assert.match(await see('/'), isShown(`project_${MANY}`))
  await dashboard.server.db.query(
    `insert into counts (project_id, list, field, value, n) values ('project_200', 'sessions', '', '', 9), ('project_201', 'sessions', '', '', 3)`,
  )
  assert.match(await see('/'), isShown('project_200'))
  const chosen = await dashboard.visit('/funnels?project=project_7', { cookie })
  const kept = chosen.headers.get('set-cookie')!.split(';')[0]!
  const next = async (project: string) => (await dashboard.visit('/', { cookie: `${cookie}; ${project}` })).text
  assert.match(await next(kept), isShown('project_7'))
  assert.match(await next('tundish_project=gone'), isShown('project_200'))
})

test('a valid key comes before newer ones that have ended', async () => {
  const { id } = dashboard.project
  await query(
    `insert into secret_keys (id, organization_id, project_id, name, hash, sealed, scopes, created_at, expires_at)
     select gen_random_uuid(), p.organization_id, p.id, 'Hourly', sha256(n::text::bytea), '', '{read}', db_clock(), db_clock()
     from projects p, generate_series(1, 1100) n where p.id = $1`,
    [id],
  )
  const rows = (await see(`/keys?project=${id}`))
    .split('id="project-keys"')[1]!
    .split('<tbody>')[1]!
    .split('</tbody>')[0]!
  assert.deepEqual([/<tr>.*?<\/td>/s.exec(rows)![0].includes('First key'), rows.match(/Hourly/g)!.length], [true, 99])
})

test('every project is found: in the list, by a part of its name or id, and by the search', async () => {
  const found = new Set<string>()
  for (let path = '/projects'; path !== ''; ) {
    const text = await see(path)
    for (const [, id] of text.matchAll(/data-copy="([^"]+)"/g)) found.add(id!)
    path = /href="([^"]+)">Next page/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  }
  for (let n = 1; n <= MANY; n += 1) assert.ok(found.has(`project_${n}`), `project_${n}`)
  const text = await see('/projects?search=NUMBER+17')
  assert.deepEqual(
    [...text.matchAll(/data-copy="(project_[^"]+)"/g)].map(([, id]) => id),
    [...Array.from({ length: 10 }, (_, n) => `project_${179 - n}`), 'project_17'],
  )
  assert.match(await see('/projects?search=org_42'), /href="\/\?project=all%3Aorg_42">Organization 42</)
  assert.equal(
    (await dashboard.visit('/people?q=project_7', { cookie })).headers.get('location'),
    '/?project=project_7',
  )
})
