// The time zone and the reporting currency of a project: set by a form, the API and a command, and what pages and lists show by them.
import assert from 'node:assert/strict'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { followProject } from '../../../src/data/figures/follow.ts'
import { wholeOf } from '../../../src/operator/dashboard/tenants.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { line, textOf } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { columns } from '../../support/rows.ts'
import { rowsOf } from './page-numbers.ts'

let dashboard: Awaited<ReturnType<typeof startDashboard>>
let cookie: string
let key: string
let path: string

const SALES = [
  // The last minutes of 24 October in Madrid, and the hour that comes twice.
  ['t1', '2026-10-24T21:59:00Z', 1000, 'EUR'],
  ['t2', '2026-10-24T22:01:00Z', 2000, 'EUR'],
  ['t3', '2026-10-25T00:30:00Z', 400, 'EUR'],
  ['t4', '2026-10-25T01:30:00Z', 8000, 'EUR'],
  ['t5', '2026-10-25T22:59:00Z', 16000, 'BRL'],
] as const

before(async () => {
  dashboard = await startDashboard()
  key = (await dashboard.operator('write')).key
  cookie = await dashboard.signIn(key)
  path = `project=${dashboard.project.id}`
  const lines = [
    line.profile({ id: 'ada' }),
    ...SALES.map(([id, created_at, price, currency]) =>
      line.transaction({ id, created_at, price, currency, price_usd: 1, profile_id: 'ada' }),
    ),
  ]
  await call('POST', `/projects/${dashboard.project.id}/import?live=false`, textOf(lines))
  await follow()
})
after(() => dashboard?.stop())

const follow = () => followProject(dashboard.server.db, dashboard.project.id)
const see = async (page: string) =>
  (await dashboard.visit(`${page}${page.includes('?') ? '&' : '?'}${path}`, { cookie })).text

async function call(method: string, to: string, body?: string | object) {
  const response = await fetch(`${dashboard.server.adminUrl}/admin/v1${to}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && {
        'content-type': typeof body === 'string' ? 'application/x-ndjson' : 'application/json',
      }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of any operation.
  return { status: response.status, body: (await response.json()) as any }
}

const days = 'from=2026-10-24&to=2026-10-25'

test('two names of one time zone are one: the finance report is in it', async () => {
  const first = await dashboard.server.project()
  const second = await dashboard.server.project(first.organizationId)
  for (const [{ id }, time_zone] of [
    [first, 'asia/calcutta'],
    [second, 'Asia/Kolkata'],
  ] as const) {
    const { body } = await call('PUT', `/projects/${id}/reporting`, { time_zone })
    assert.equal(body.time_zone, 'Asia/Kolkata')
  }
  const { body } = await call('GET', `/organizations/${first.organizationId}/finance?month=2026-10`)
  assert.equal(body.time_zone, 'Asia/Kolkata')
})

test('400 for a time zone or a currency that does not exist, which changes nothing', async () => {
  const { project } = dashboard
  for (const [bad, sentence] of [
    [
      { time_zone: 'Europe/Atlantis' },
      /time_zone must be a name of the IANA time zone database.*got "Europe\/Atlantis"/,
    ],
    [{ time_zone: '+02:00' }, /time_zone must be/],
    [{ time_zone: 'EST5EDT4' }, /time_zone must be/],
    [{ currency: 'DEM' }, /currency must be a currency of ISO 4217 that is in use.*got "DEM"/],
    [{ time_zone: 'Europe/Madrid', currency: 'eur' }, /currency must be/],
  ] as const) {
    const { status, body } = await call('PUT', `/projects/${project.id}/reporting`, bad)
    assert.equal(status, 400)
    assert.match(JSON.stringify(body).replaceAll('\\"', '"'), sentence)
  }
  assert.equal((await call('PUT', '/projects/nobody/reporting', { currency: 'EUR' })).status, 404)
  const { body } = await call('GET', `/projects/${project.id}`)
  assert.deepEqual([body.time_zone, body.reporting_currency], ['UTC', 'USD'])
})

test('a form sets both: pages say that figures are computed again, then show them by the days and in the currency', async () => {
  const form = { time_zone: 'europe/madrid', currency: 'eur' }
  assert.equal((await dashboard.visit(`/settings/reporting?${path}`, { cookie, form })).status, 303)
  assert.match(await see('/settings'), /Time zone<\/dt>\s*<dd>Europe\/Madrid/)
  assert.match(await see(`/revenue?${days}`), /figures are being computed again/)
  const { body: during } = await call('GET', `/projects/${dashboard.project.id}/figures?metric=revenue&${days}`)
  assert.equal(during.as_of, null)
  await follow()

  const page = await see(`/revenue?${days}`)
  assert.doesNotMatch(page, /being computed again/)
  assert.match(page, /Days in Europe\/Madrid/)
  assert.match(page, /Times are in UTC, days in Europe\/Madrid\./)
  assert.match(await see('/alerts'), /Hours in Europe\/Madrid\./)
  assert.match(page, /Revenue by day, in EUR/)
  assert.match(page, /<dt>Revenue<\/dt><dd><strong>€114\.00/)
  assert.match(page, /1 payment, refund or chargeback has no value in EUR/)
  // Reais have no rate; no amount is in US dollars.
  assert.match(page, /without R\$160\.00/)
  assert.doesNotMatch(page, /(?<!R)\$\d/)
  const { body } = await call(
    'GET',
    `/projects/${dashboard.project.id}/figures?metric=revenue,without_usd&by=day&${days}`,
  )
  assert.deepEqual([body.time_zone, body.as_of === null], ['Europe/Madrid', false])
  assert.deepEqual(body.data, [
    { period: '2026-10-24', key: null, currency: 'EUR', values: { revenue: 10, without_usd: 0 } },
    { period: '2026-10-25', key: null, currency: 'EUR', values: { revenue: 104, without_usd: 1 } },
  ])
  const { body: list } = await call('GET', `/projects/${dashboard.project.id}/payments?from=2026-10-25&to=2026-10-25`)
  assert.deepEqual(list.data.map(({ id }: { id: string }) => id).sort(), ['t2', 't3', 't4', 't5'])
})

test('a subscription is paid until a day, and created after one, in the time zone', async () => {
  const lines = [
    line.product({ id: 'pro' }),
    // On 25 and 26 October in Madrid, the second still on the 25th in UTC.
    line.subscription({
      ...{ id: 'sub_25', created_at: '2026-10-25T22:59:59.999999Z', profile_id: 'ada' },
      product_id: 'pro',
    }),
    line.subscription({
      ...{ id: 'sub_26', created_at: '2026-10-25T23:00:00Z', profile_id: 'ada', product_id: 'pro' },
      period_ends_at: '2026-12-01T23:30:00Z',
    }),
  ]
  await call('POST', `/projects/${dashboard.project.id}/import?live=false`, textOf(lines))
  const listed = async (more: string) => rowsOf(await see(`/subscriptions?${more}`), 'subscriptions').map(([id]) => id)
  assert.deepEqual(await listed('created_after=2026-10-24'), ['sub_26', 'sub_25'])
  assert.deepEqual(await listed('created_after=2026-10-25'), ['sub_26'])
  assert.match(await see('/subscriptions?created_after=2026-10-26'), /No subscriptions match these filters/)
  assert.deepEqual(await listed('due=2026-12-02'), ['sub_26'])
  for (const page of ['/subscriptions?due=2026-12-02', '/subscriptions/sub_26', '/people/ada'])
    assert.match(await see(page), /<time datetime="2026-12-01T23:30:00\.000000Z"[^>]*>2 Dec 2026<\/time>/, page)
})

test('a download has the currency in its name and its decimals in its amounts', async () => {
  const set = await tundishAgain(['project', 'set', dashboard.project.id, '--currency', 'JPY'], dashboard.server.env)
  assert.deepEqual([set.code, set.stderr], [0, ''])
  assert.match(set.stdout, /in the time zone Europe\/Madrid and in JPY/)
  const rates = 'date,currency,per_euro\n2026-10-20,JPY,160.5\n2026-10-20,BRL,6\n'
  const file = join(await mkdtemp(join(tmpdir(), 'rates-')), 'rates.csv')
  await writeFile(file, rates)
  const loaded = await tundishAgain(['rates', 'load', file], dashboard.server.env)
  assert.equal(loaded.code, 0, loaded.stderr)
  await follow()
  const csv = await dashboard.visit(`/revenue?${path}&${days}&csv=revenue`, { cookie })
  assert.match(csv.headers.get('content-disposition')!, /2026-10-24_2026-10-25_JPY\.csv/)
  assert.match(csv.text, /2026-10-24,1605,/)
})

test('sums over projects with several currencies are refused, by project they are not', async () => {
  const { body: project } = await call('GET', `/projects/${dashboard.project.id}`)
  const organization = project.organization_id
  const other = await call('POST', `/organizations/${organization}/projects`, { id: 'dollars' })
  assert.equal(other.status, 200)
  const ask = (more: string) => call('GET', `/organizations/${organization}/figures?metric=revenue&${days}${more}`)
  const { status, body } = await ask('')
  assert.equal(status, 400)
  assert.match(JSON.stringify(body), /different reporting currencies \(JPY, USD\)/)
  assert.deepEqual(columns((await ask('&by=project')).body.data, 'key', 'currency'), [[dashboard.project.id, 'JPY']])
  assert.equal((await ask('&money=own')).status, 200)
  const [{ values }] = (await ask('&by=project')).body.data
  const { revenue } = values
  // Pages show each project and each currency instead of sums.
  for (const page of ['/', '/revenue', '/funnels', '/refunds', '/charges']) {
    const { status, text } = await dashboard.visit(`${page}?project=${wholeOf({ id: organization })}&${days}`, {
      cookie,
    })
    assert.equal(status, 200, page)
    if (page === '/charges') continue
    assert.match(text, /have different reporting currencies, whose amounts are not added/, page)
    assert.deepEqual(
      rowsOf(text, 'projects').map(([name, revenue]) => [name, revenue]),
      [[dashboard.project.id, String(revenue)]],
      page,
    )
    assert.ok(text.includes(`¥${revenue.toLocaleString('en-US')}`), page)
    assert.deepEqual(rowsOf(text, 'currencies')[0]!.slice(0, 2), ['JPY', '1'], page)
    assert.ok(text.includes('project=dollars'), page)
  }
})

test('the audit log has what was changed', async () => {
  const { body } = await call('GET', '/audit?action=reporting.set')
  assert.ok(
    body.data.some(
      ({ before, after }: Record<string, object>) =>
        JSON.stringify([before, after]) ===
        JSON.stringify([
          { time_zone: 'UTC', currency: 'USD' },
          { time_zone: 'Europe/Madrid', currency: 'EUR' },
        ]),
    ),
  )
})

test('pages say that figures are being computed: for the first time, and when they lag behind by more than five minutes', async () => {
  const { db } = dashboard.server
  const { id } = await dashboard.server.project()
  const at = (page: string) => dashboard.visit(`${page}?project=${id}`, { cookie }).then(({ text }) => text)
  // A project without records has nothing to compute.
  assert.doesNotMatch(await at('/revenue'), /not complete yet/)
  const sale = (n: number) =>
    textOf([line.transaction({ id: `sale-${n}`, created_at: '2026-10-24T12:00:00Z', profile_id: 'eve' })])
  await call('POST', `/projects/${id}/import?live=false`, textOf([line.profile({ id: 'eve' })]) + sale(1))
  for (const page of ['/revenue', '/'])
    assert.match(await at(page), /Figures are being computed for the first time, the newest days first\./, page)
  assert.match(await at('/'), /Being computed, the newest days first\./)
  assert.doesNotMatch(await at('/people'), /being computed/)
  await followProject(db, id)
  assert.doesNotMatch(await at('/revenue'), /not complete yet/)

  // New records of the last minutes are counted soon; those of longer ago are named.
  await call('POST', `/projects/${id}/import?live=false`, sale(2))
  assert.doesNotMatch(await at('/revenue'), /not complete yet/)
  await db.query(`update figure_progress set horizon = horizon - interval '6 minutes' where project_id = $1`, [id])
  assert.match(
    await at('/revenue'),
    /Changes after <time[^>]+>[^<]+<\/time> are still being counted, the newest days first\./,
  )
  await followProject(db, id)
  assert.doesNotMatch(await at('/revenue'), /not complete yet/)
})
