// Churn, trials that are paid for, the forecast of renewals, and today by hour, by hand: with the instants next to each bound.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Churn, type ChurnQuestion, readChurn } from '../../../src/data/figures/churn.ts'
import { readForecast } from '../../../src/data/figures/forecast.ts'
import { readHours } from '../../../src/data/figures/hours.ts'
import { assertExact } from '../../support/figures.ts'
import { type Line, line, type Project } from '../../support/imports.ts'
import { setDatabaseClock } from '../../support/time.ts'
import { openErasedImports } from '../ingest/erased-imports.ts'

const imports = await openErasedImports()
after(() => imports.stop())

const noon = (day: string) => (day.includes('T') ? day : `${day}T12:00:00Z`)
const person = (id: string, country?: string) => line.profile({ id, ...(country && { country }) })
const sub = (id: string, profile_id: string, from: string, price: number, more: object = {}) =>
  line.subscription({
    ...{ id, profile_id, product_id: 'monthly', created_at: noon(from), price, price_usd: price },
    ...more,
  })
const over = (day: string, cancellation_reason = 'price') => ({
  ...{ status: 'cancelled', period_ends_at: noon(day), cancellation_reason },
})
let made = 0
const paid = (subscription_id: string, profile_id: string, at: string, price = 1000, more: object = {}) => {
  made += 1
  return line.transaction({
    ...{ id: `trn_${made}`, subscription_id, profile_id, created_at: noon(at), price, price_usd: price },
    ...more,
  })
}
async function load(project: Project, ...lines: Line[]): Promise<void> {
  await imports.run(project, [
    line.product({ id: 'monthly' }),
    line.product({ id: 'yearly' }),
    line.funnel({ id: 'quiz' }),
    ...lines,
  ])
  await assertExact(imports.db, project.id)
}

describe('churn of February', () => {
  let project: Project
  before(async () => {
    project = await imports.project()
    await load(
      project,
      ...[person('ada', 'DE'), person('bob', 'ES'), person('cid', 'DE'), person('dan'), person('eve', 'DE')],
      ...[person('fay', 'ES'), person('gil'), person('hal'), person('ida')],
      sub('a', 'ada', '2026-01-05', 1000, { ...over('2026-02-01T00:00:00Z'), funnel_id: 'quiz' }),
      sub('b', 'bob', '2026-01-31T23:59:59.999999Z', 2000, over('2026-02-28T23:59:59.999999Z', 'unused')),
      // Begins with the first instant, ends with the first after the last: neither paying before nor gone.
      sub('c', 'cid', '2026-02-01T00:00:00Z', 12000, {
        ...{ product_id: 'yearly', billing_interval: 'year', ...over('2026-03-01T00:00:00Z') },
      }),
      sub('d', 'dan', '2026-01-10', 3000, { status: 'paused', paused_at: noon('2026-02-15') }),
      // Gives up one of two: gone as a subscription, not as a person.
      sub('e1', 'eve', '2026-01-10', 500, over('2026-02-20')),
      sub('e2', 'eve', '2026-01-10', 700),
      // Was gone in January, came back and left.
      sub('f1', 'fay', '2026-01-02', 400, over('2026-01-20')),
      sub('f2', 'fay', '2026-02-05', 400, over('2026-02-21', 'unused')),
      sub('played', 'ada', '2026-01-05', 9900, { ...over('2026-02-10'), sandbox: true }),
      // Trials: one not paid for, one paid for in March, one of January, and one that was cancelled unpaid.
      sub('t1', 'gil', '2026-02-03', 1000, { status: 'trialing', trial_offer: { days: 7 } }),
      sub('t2', 'hal', '2026-02-28T23:59:59.999999Z', 1000, { trial_offer: { days: 7 } }),
      paid('t2', 'hal', '2026-03-07'),
      sub('t3', 'ida', '2026-01-31T23:59:59.999999Z', 1000, { trial_offer: { days: 7 } }),
      paid('t3', 'ida', '2026-02-07'),
      sub('t4', 'ida', '2026-02-04', 1000, { trial_transaction_id: 'for_trial', ...over('2026-02-11') }),
      paid('t4', 'ida', '2026-02-04', 100, { id: 'for_trial' }),
    )
  })

  const seen = async (by?: ChurnQuestion['by'], test = false) =>
    (
      await readChurn(imports.db, {
        projects: [project.id],
        from: '2026-02-01',
        to: '2026-03-01',
        test,
        ...(by && { by }),
      })
    ).map(({ key, paying, ended, mrr_lost, trials, converted }: Churn) =>
      [key ?? 'all', paying, ended, mrr_lost, trials ?? '-', converted ?? '-'].join(' '),
    )

  test('all together, with its rates', async () => {
    const asked = { projects: [project.id], from: '2026-02-01', to: '2026-03-01', test: false }
    assert.deepEqual(await readChurn(imports.db, asked), [
      {
        ...{ key: null, paying: 5, ended: 5, churn_rate: 1 },
        // Ada 10, Bob 20, Fay 4 of 10 + 20 + 30 + 5 + 7.
        ...{ mrr_lost: 34, mrr_churn_rate: 0.472222 },
        ...{ trials: 3, converted: 1, trial_conversion: 0.333333 },
      },
    ])
    assert.deepEqual(await seen(undefined, true), ['all 6 6 133 3 1'])
  })

  test('by country, product, funnel, cohort and reason', async () => {
    assert.deepEqual((await seen('country')).sort(), [' 1 1 0 3 1', 'DE 3 2 10 0 0', 'ES 1 2 24 0 0'])
    // Nobody who has the yearly plan was there before, or left.
    assert.deepEqual(await seen('product'), ['monthly 5 5 34 3 1'])
    assert.deepEqual((await seen('funnel')).sort(), [' 4 4 24 3 1', 'quiz 1 1 10 0 0'])
    assert.deepEqual((await seen('cohort')).sort(), ['2026-01 5 4 30 0 0', '2026-02 0 1 4 3 1'])
    // The rates are of all who were paying.
    assert.deepEqual((await seen('reason')).sort(), [' 5 1 0 - -', 'price 5 2 10 - -', 'unused 5 2 24 - -'])
  })

  test('an erasure changes nothing: the country stays', async () => {
    await imports.erase(project, 'ada')
    await assertExact(imports.db, project.id)
    assert.deepEqual(await seen(), ['all 5 5 34 3 1'])
    assert.deepEqual((await seen('country')).sort(), [' 1 1 0 3 1', 'DE 3 2 10 0 0', 'ES 1 2 24 0 0'])
  })
})

test('the forecast: the thirty days from tomorrow, times what was paid in the ninety days before today', async () => {
  const project = await imports.project()
  const due = (id: string, at: string, price: number, more: object = {}) =>
    sub(id, 'ada', '2025-01-01', price, { period_ends_at: noon(at), ...more })
  await load(
    project,
    person('ada'),
    due('today', '2026-02-28T23:59:59.999999Z', 100),
    due('first', '2026-03-01T00:00:00Z', 1000),
    due('same', '2026-03-01T23:59:59.999999Z', 500),
    due('last', '2026-03-30T23:59:59.999999Z', 3000),
    due('after', '2026-03-31T00:00:00Z', 9000),
    due('leaves', '2026-03-02', 9000, { renews: false }),
    due('paused', '2026-03-02', 9000, { status: 'paused' }),
    due('played', '2026-03-02', 9000, { sandbox: true }),
    due('worthless', '2026-03-03', 700, { currency: 'EUR', price_usd: null }),
    due('trial', '2026-03-05', 2000, { status: 'trialing', trial_offer: { days: 7 } }),
    // Seen: three renewals, of which the first is on the first day, and none of today; one end; two trials, one paid for.
    sub('seen', 'ada', '2025-01-01', 1000, { ...over('2026-02-27T23:59:59.999999Z') }),
    sub('ended-today', 'ada', '2025-01-01', 1000, { ...over('2026-02-28T00:00:00Z') }),
    sub('ended-before', 'ada', '2025-01-01', 1000, { ...over('2025-11-29T23:59:59.999999Z') }),
    paid('seen', 'ada', '2025-01-01'),
    paid('seen', 'ada', '2025-11-29T23:59:59.999999Z'),
    paid('seen', 'ada', '2025-11-30T00:00:00Z'),
    paid('seen', 'ada', '2026-01-15'),
    paid('seen', 'ada', '2026-02-27T23:59:59.999999Z'),
    paid('seen', 'ada', '2026-02-28T00:00:00Z'),
    sub('tried', 'ada', '2026-01-10', 1000, { trial_offer: { days: 7 }, renews: false }),
    paid('tried', 'ada', '2026-01-17'),
    sub('tried-again', 'ada', '2026-01-10', 1000, { trial_offer: { days: 7 }, status: 'trialing' }),
  )
  const { days, renewal_rate, trial_rate, without_usd } = await readForecast(imports.db, project.id, '2026-02-28', {
    test: false,
  })
  assert.deepEqual([days.length, days[0]!.day, days.at(-1)!.day], [30, '2026-03-01', '2026-03-30'])
  assert.deepEqual([renewal_rate, trial_rate, without_usd], [0.75, 0.5, 1])
  assert.deepEqual(
    days
      .filter(({ renewals, trials }) => renewals + trials > 0)
      .map((one) => [one.day, one.renewals, one.renewals_due, one.trials, one.trials_due, one.expected].join(' ')),
    ['2026-03-01 2 15 0 0 11.25', '2026-03-03 1 0 0 0 0', '2026-03-05 0 0 1 20 10', '2026-03-30 1 30 0 0 22.5'],
  )
  const played = await readForecast(imports.db, project.id, '2026-02-28', { test: true })
  assert.equal(played.days.find(({ day }) => day === '2026-03-02')!.renewals_due, 90)
  // Without a past there is no rate, and so nothing is expected.
  const fresh = await imports.project()
  await load(fresh, person('ada'), due('first', '2026-03-01T00:00:00Z', 1000))
  const unknown = await readForecast(imports.db, fresh.id, '2026-02-28', { test: false })
  assert.deepEqual([unknown.renewal_rate, unknown.days[0]!.expected, unknown.days[1]!.expected], [null, null, 0])
})

describe('today by hour', () => {
  let project: Project
  const at = (time: string, price: number, more: object = {}) =>
    paid('', 'ada', time, price, { subscription_id: null, ...more })
  const session = (id: string, created_at: string) => line.session({ id, profile_id: 'ada', created_at })
  before(async () => {
    project = await imports.project()
    await imports.db.query(`update projects set time_zone = 'Europe/Madrid' where id = $1`, [project.id])
    await load(
      project,
      person('ada'),
      // 25 October has 25 hours: 02:00 comes at 00:00 and at 01:00 UTC.
      at('2026-10-24T21:59:59.999999Z', 100),
      at('2026-10-24T22:00:00Z', 200),
      at('2026-10-25T00:30:00Z', 1000),
      at('2026-10-25T01:30:00Z', 2000),
      at('2026-10-25T02:00:00Z', 4000),
      at('2026-10-25T22:59:59.999999Z', 8000),
      at('2026-10-25T23:00:00Z', 16000),
      at('2026-10-25T01:40:00Z', 9900, { sandbox: true }),
      session('ses_1', '2026-10-25T00:10:00Z'),
      session('ses_2', '2026-10-25T01:10:00Z'),
      // The same weekday of the week before, and the days before and after it.
      at('2026-10-17T23:30:00Z', 300),
      at('2026-10-18T00:30:00Z', 500),
      at('2026-10-18T22:30:00Z', 70000),
      // 29 March has 23 hours: after 01:59 comes 03:00, at 01:00 UTC.
      at('2026-03-29T00:59:59.999999Z', 600),
      at('2026-03-29T01:00:00Z', 700),
      at('2026-03-28T01:30:00Z', 800),
      at('2026-03-28T23:00:00Z', 900),
      at('2026-03-22T01:30:00Z', 1100),
    )
  })
  after(() => setDatabaseClock(imports.url, undefined))

  /** The hours with revenue of the three days, and the sums of the hours that are over. */
  const seenAt = async (instant: string, test = false) => {
    await setDatabaseClock(imports.url, `${Date.parse(instant) - Date.now()} milliseconds`)
    const { today, hour, hours, so_far } = await readHours(imports.db, project.id, { test })
    assert.equal(hours.length, 24)
    const revenue = (name: 'today' | 'yesterday' | 'week_before') =>
      hours.filter((one) => one[name]?.revenue).map((one) => `${one.hour} ${one[name]!.revenue}`)
    return {
      ...{ today, hour, day: revenue('today'), yesterday: revenue('yesterday'), week_before: revenue('week_before') },
      so_far: [so_far.today.revenue, so_far.yesterday.revenue, so_far.week_before.revenue],
      sessions: [hours[2]!.today?.sessions, so_far.today.sessions],
      begun: hours.filter((one) => one.today !== null).length,
    }
  }

  test('a day of 25 hours: the hour that comes twice is one, and is over when it is over the second time', async () => {
    const week_before = ['1 3', '2 5']
    const first = { today: '2026-10-25', yesterday: ['23 1'], week_before }
    const day = ['0 2', '2 30', '3 40', '23 80']
    assert.deepEqual(await seenAt('2026-10-25T00:45:00Z'), {
      ...{ ...first, hour: 2, day: day.slice(0, 2), so_far: [2, 0, 3], sessions: [2, 0], begun: 3 },
    })
    assert.deepEqual(await seenAt('2026-10-25T01:45:00Z'), {
      ...{ ...first, hour: 2, day: day.slice(0, 2), so_far: [2, 0, 3], sessions: [2, 0], begun: 3 },
    })
    assert.deepEqual(await seenAt('2026-10-25T02:15:00Z'), {
      ...{ ...first, hour: 3, day: day.slice(0, 3), so_far: [32, 0, 8], sessions: [2, 2], begun: 4 },
    })
    assert.deepEqual(await seenAt('2026-10-25T22:30:00Z'), {
      ...{ ...first, hour: 23, day, so_far: [72, 0, 8], sessions: [2, 2], begun: 24 },
    })
    // The day after: yesterday has all of its 25 hours.
    const after = await seenAt('2026-10-25T23:30:00Z')
    assert.deepEqual([after.today, after.hour, after.day, after.yesterday], ['2026-10-26', 0, ['0 160'], day])
    assert.deepEqual((await seenAt('2026-10-25T02:15:00Z', true)).day[1], '2 129')
  })

  test('a day of 23 hours: the hour that is skipped has nothing', async () => {
    assert.deepEqual(await seenAt('2026-03-29T00:59:00Z'), {
      ...{ today: '2026-03-29', hour: 1, day: ['0 9', '1 6'], yesterday: ['2 8'], week_before: ['2 11'] },
      ...{ so_far: [9, 0, 0], sessions: [undefined, 0], begun: 2 },
    })
    assert.deepEqual(await seenAt('2026-03-29T01:30:00Z'), {
      ...{ today: '2026-03-29', hour: 3, day: ['0 9', '1 6', '3 7'], yesterday: ['2 8'], week_before: ['2 11'] },
      ...{ so_far: [15, 8, 11], sessions: [0, 0], begun: 4 },
    })
  })
})
