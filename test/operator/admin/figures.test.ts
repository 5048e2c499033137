// The operation that returns figures: its parameters, its refusals, its comparison, and the doctor's.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { followProject } from '../../../src/data/figures/follow.ts'
import { LOCK_CLASS } from '../../../src/data/figures/lock.ts'
import { checkFigures } from '../../../src/operator/doctor/figures.ts'
import { openAdmin } from '../../support/admin.ts'
import { holding, untilLocked } from '../../support/database.ts'
import { ORGANIZATION, PROJECT } from '../../support/events.ts'
import { column } from '../../support/rows.ts'
import { until } from '../../support/time.ts'

type Values = { revenue?: number }

const { events, admin } = await openAdmin()

describe('figures of a project', () => {
  before(async () => {
    const sale = (id: string, at: string, price: number, currency = 'USD') => ({
      record: 'transaction',
      data: { id, created_at: at, price, price_usd: price, currency, profile_id: 'ada' },
    })
    const lines = [
      { record: 'profile', data: { id: 'ada', created_at: '2026-01-01T00:00:00Z' } },
      sale('t1', '2026-01-10T23:59:59.999999Z', 100),
      sale('t2', '2026-01-11T00:00:00Z', 250, 'EUR'),
      sale('t3', '2026-02-03T00:00:00Z', 1000),
    ]
    const body = lines.map((one) => JSON.stringify(one)).join('\n')
    assert.equal((await admin.call('POST', `/projects/${PROJECT}/import?live=false`, body)).body.written, 4)
    await followProject(events.app.db, PROJECT)
  })
  const ask = async (query: string) => (await admin.call('GET', `/projects/${PROJECT}/figures?${query}`)).body

  test('a day begins at midnight UTC, and `to` is the day after the last', async () => {
    const { data, as_of } = await ask('metric=revenue&from=2026-01-10&to=2026-01-11&by=day')
    assert.match(as_of, /^\d{4}-.*Z$/)
    assert.deepEqual(data, [
      { period: '2026-01-10', key: null, currency: 'USD', values: { revenue: 1 } },
      { period: '2026-01-11', key: null, currency: 'USD', values: { revenue: 2.5 } },
    ])
  })

  for (const place of [`projects/${PROJECT}`, `organizations/${ORGANIZATION}`])
    test(`as_of moves on without changes and without readers of lists: ${place.split('/')[0]}`, async () => {
      const asOf = async () => (await admin.call('GET', `/${place}/figures?metric=revenue`)).body.as_of as string
      const first = await asOf()
      await until('a later as_of', async () => (await asOf()) > first)
    })

  test('screens of one funnel; 400 for a filter that the metric does not have', async () => {
    assert.deepEqual((await ask('metric=answered,stopped&by=screen&funnel=quiz')).data, [])
    const refused = async (query: string) => {
      const { status, body } = await admin.call('GET', `/projects/${PROJECT}/figures?${query}`)
      assert.equal(status, 400)
      return JSON.stringify(body)
    }
    assert.match(await refused('metric=sessions&product=b'), /cannot be filtered by product/)
    assert.match(await refused('metric=revenue&source=other&country=b&funnel=c'), /which cannot be combined/)
    // A large project whose history was just imported.
    await events.app.db.query(
      `insert into figure_marks (project_id, family, day)
       select $1, 'visits', date '2019-01-01' + n from generate_series(1, 40) n`,
      [PROJECT],
    )
    const many = `project_id = '${PROJECT}' and list = 'sessions' and n = 30000`
    await events.app.db.query(
      `insert into counts (project_id, list, field, value, n) values ($1, 'sessions', '', '', 30000)`,
      [PROJECT],
    )
    const sessions = 'metric=sessions&from=2018-01-01&to=2019-12-31&country=DE&source=meta&campaign=spring'
    assert.match(await refused(sessions), /still being computed: try again later, or give one filter/)
    await events.app.db.query(`delete from counts where ${many}`)
    assert.deepEqual((await ask(sessions)).data[0].values, { sessions: 0 })
    await events.app.db.query(`delete from figure_marks where project_id = $1 and day < '2020-01-01'`, [PROJECT])
  })

  test('a period is compared with as many days before', async () => {
    const { data, compared_with } = await ask('metric=revenue,sales&from=2026-02-01&to=2026-02-28&compare=previous')
    assert.deepEqual(compared_with, { from: '2026-01-04', to: '2026-01-31' })
    assert.deepEqual(data, [
      {
        period: null,
        key: null,
        currency: 'USD',
        values: { revenue: 10, sales: 1 },
        previous: { revenue: 3.5, sales: 2 },
      },
    ])
  })

  const periodPairs: [query: string, pairs: string[]][] = [
    // Each day, week or month, and the revenue of the one it is compared with.
    ['by=month&from=2026-02-01&to=2026-04-30&compare=previous', ['2026-02-01 10 -', '2026-04-01 0 3.5']],
    ['by=month&from=2026-04-01&to=2026-05-31&compare=previous', ['2026-04-01 0 10']],
    ['by=month&from=2026-01-01&to=2026-02-28&compare=month', ['2026-01-01 3.5 -', '2026-02-01 10 3.5']],
    ['by=month&from=2027-01-01&to=2027-02-28&compare=year', ['2027-01-01 0 3.5', '2027-02-01 0 10']],
    ['by=week&from=2026-02-02&to=2026-03-01&compare=month', ['2026-02-02 10 3.5']],
    ['by=week&from=2027-02-01&to=2027-02-14&compare=year', ['2027-02-01 0 10']],
    ['by=day&from=2026-03-02&to=2026-03-04&compare=month', ['2026-03-03 0 10']],
    ['by=currency&from=2026-02-01&to=2026-02-28&compare=month', ['EUR 0 2.5', 'USD 10 1']],
    ['from=2026-03-01&to=2026-03-31&compare=month', ['all 0 10']],
  ]
  for (const [query, pairs] of periodPairs)
    test(`compared one by one, also what has ceased: ${query}`, async () => {
      const { data } = await ask(`metric=revenue&${query}`)
      assert.deepEqual(
        data.map(
          ({ period, key, values, previous }: { period: string; key: string; values: Values; previous: Values }) =>
            `${period ?? key ?? 'all'} ${values.revenue} ${previous.revenue ?? '-'}`,
        ),
        pairs,
      )
    })

  test('by currency, with null for what is divided by visitors or sessions, which have none', async () => {
    const { data } = await ask(
      'metric=revenue,arpu,revenue_per_session,sessions&by=currency&from=2026-02-01&to=2026-02-28',
    )
    assert.deepEqual(
      data.map(({ key, values }: { key: string; values: Values }) => [key, values]),
      [['USD', { revenue: 10, arpu: null, revenue_per_session: null }]],
    )
  })

  const sameDays: [days: string, compared: string][] = [
    ['2024-02-01 2024-02-28', '2023-02-01 2023-02-28'],
    ['2024-02-01 2024-02-29', '2023-02-01 2023-02-28'],
    ['2025-02-01 2025-02-28', '2024-02-01 2024-02-29'],
    ['2025-02-10 2025-02-19', '2024-02-10 2024-02-19'],
  ]
  for (const [days, compared] of sameDays)
    test(`a year before ${days} are ${compared}`, async () => {
      const [from, to] = days.split(' ')
      const { compared_with } = await ask(`metric=sales&from=${from}&to=${to}&compare=year`)
      assert.equal(`${compared_with.from} ${compared_with.to}`, compared)
    })

  const monthEarlier: [days: string, compared: string][] = [
    ['2026-02-01 2026-02-28', '2026-01-01 2026-01-31'],
    ['2026-11-01 2026-11-30', '2026-10-01 2026-10-31'],
    ['2026-11-10 2026-11-23', '2026-10-10 2026-10-23'],
    ['2026-03-01 2026-03-30', '2026-02-01 2026-02-28'],
    ['2026-03-30 2026-04-01', '2026-02-28 2026-03-01'],
    ['2026-01-05 2026-01-05', '2025-12-05 2025-12-05'],
  ]
  for (const [days, compared] of monthEarlier)
    test(`a month before ${days} are ${compared}`, async () => {
      const [from, to] = days.split(' ')
      const { compared_with } = await ask(`metric=sales&from=${from}&to=${to}&compare=month`)
      assert.equal(`${compared_with.from} ${compared_with.to}`, compared)
    })

  test('an organization is the sum of its projects, and can be split by them', async () => {
    const path = '/organizations/acme/figures?metric=revenue&from=2026-01-01&to=2026-02-28'
    assert.equal((await admin.call('GET', path)).body.data[0].values.revenue, 13.5)
    assert.equal((await admin.call('GET', `${path}&by=project`)).body.data[0].key, PROJECT)
  })

  const refusals = {
    'metric=gold': /metric must be 1 to 20 of .*, got "gold"/,
    'metric=': /metric/,
    'metric=sales&from=2026-02-30': /from must be a day such as 2026-01-31, got "2026-02-30"/,
    'metric=sales&from=0001-01-01&to=0001-02-01&compare=year':
      /from must be from 1900-01-01 to 2999-12-31, got 0001-01-01/,
    'metric=sales&from=2026-02-02&to=9999-12-31': /to must be from 1900-01-01 to 2999-12-31/,
    'metric=sales&from=2026-02-03&to=2026-02-02': /from must not be after to/,
    'metric=sales&from=2010-01-01&to=2026-02-02': /include at most 3660 days/,
    'metric=sales&from=2026-02-02T00:00:00Z': /from must be a day such as 2026-01-31/,
    'metric=sales&by=day,week': /by must be/,
    'metric=sales&money=eur': /money/,
    'metric=sales&nothing=1': /nothing/,
  }
  for (const [query, message] of Object.entries(refusals)) {
    test(`400 for ${query}`, async () => {
      const { status, body } = await admin.call('GET', `/projects/${PROJECT}/figures?${query}`)
      assert.equal(status, 400)
      assert.match(body.message, message)
    })
  }

  test('the doctor finds a day that differs from its records, and a rebuild mends it', async () => {
    const { db } = events.app
    assert.deepEqual(column(await checkFigures(db), 'level'), ['ok'])
    await db.query('update figures_sales set gross = gross + 1')
    const [finding] = await checkFigures(db)
    assert.equal(finding!.level, 'failed')
    assert.match(finding!.fix!, /tundish figures rebuild --project shop/)
    assert.equal((await admin.call('POST', `/projects/${PROJECT}/figures/rebuild`)).body.days, 3)
    assert.deepEqual(column(await checkFigures(db), 'level'), ['ok'])
  })

  test('409 for a second rebuild while the first computes, and 200 afterwards', async () => {
    const { db } = events.app
    const path = `/projects/${PROJECT}/figures/rebuild`
    const release = await holding(db, 'select pg_advisory_xact_lock($1, number) from projects where id = $2', [
      String(LOCK_CLASS),
      PROJECT,
    ])
    const first = admin.call('POST', path)
    await untilLocked(db.query)
    const second = await admin.call('POST', path)
    await release()
    assert.deepEqual(
      [second.status, second.body.message],
      [409, `The figures of project "${PROJECT}" are being rebuilt already.`],
    )
    assert.deepEqual([(await first).status, (await admin.call('POST', path)).status], [200, 200])
  })
})
