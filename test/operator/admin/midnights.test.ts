// Days whose midnight comes twice or not at all, and one that does not exist: figures, the lists behind them and finance count the same.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { followProject } from '../../../src/data/figures/follow.ts'
import { line, load, uuid } from '../../support/imports.ts'
import { type Json, ok, startTestServer } from '../../support/server.ts'

const server = await startTestServer({}, { worker: false })
after(() => server.stop())

/** Instants of each zone, each with its day there: the last before a midnight or a change of clocks, and the first after it. */
const ZONES: Record<string, Record<string, string>> = {
  // Clocks are set forward at midnight, and back at one o'clock to midnight.
  'America/Havana': {
    '2026-03-08T04:59:59.999999Z': '2026-03-07',
    '2026-03-08T05:00:00Z': '2026-03-08',
    '2026-11-01T03:59:59.999999Z': '2026-10-31',
    '2026-11-01T04:00:00Z': '2026-11-01',
    '2026-11-01T04:59:59.999999Z': '2026-11-01',
    '2026-11-01T05:00:00Z': '2026-11-01',
    '2026-11-02T04:59:59.999999Z': '2026-11-01',
    '2026-11-02T05:00:00Z': '2026-11-02',
  },
  // Forward at midnight, and back at the end of the day by one hour, which comes twice.
  'Africa/Cairo': {
    '2025-04-24T21:59:59.999999Z': '2025-04-24',
    '2025-04-24T22:00:00Z': '2025-04-25',
    '2025-10-30T20:59:59.999999Z': '2025-10-30',
    '2025-10-30T21:00:00Z': '2025-10-30',
    '2025-10-30T21:59:59.999999Z': '2025-10-30',
    '2025-10-30T22:00:00Z': '2025-10-31',
  },
  // By half an hour.
  'Australia/Lord_Howe': {
    '2026-04-04T12:59:59.999999Z': '2026-04-04',
    '2026-04-04T13:00:00Z': '2026-04-05',
    '2026-04-05T13:29:59.999999Z': '2026-04-05',
    '2026-04-05T13:30:00Z': '2026-04-06',
  },
  // 30 December was left out.
  'Pacific/Apia': {
    '2011-12-30T09:59:59.999999Z': '2011-12-29',
    '2011-12-30T10:00:00Z': '2011-12-31',
    '2011-12-31T09:59:59.999999Z': '2011-12-31',
  },
  // The standard time is that of the summer, and in Morocco that of all months but Ramadan.
  'Europe/Dublin': {
    '2026-10-24T22:59:59.999999Z': '2026-10-24',
    '2026-10-24T23:00:00Z': '2026-10-25',
    '2026-10-25T23:59:59.999999Z': '2026-10-25',
    '2026-10-26T00:00:00Z': '2026-10-26',
  },
  'Africa/Casablanca': {
    '2025-02-22T22:59:59.999999Z': '2025-02-22',
    '2025-02-22T23:00:00Z': '2025-02-23',
    '2025-02-23T23:59:59.999999Z': '2025-02-23',
    '2025-02-24T00:00:00Z': '2025-02-24',
  },
  'Asia/Kathmandu': { '2026-06-30T18:14:59.999999Z': '2026-06-30', '2026-06-30T18:15:00Z': '2026-07-01' },
}

let made = 0
/** A session, a payment by both sources, and a subscription that is due. */
const records = (at: string) => {
  const id = `r${++made}`
  const profile_id = id
  return [
    line.profile({ id, created_at: at }),
    line.session({ id, profile_id, created_at: at }),
    line.transaction({ id, profile_id, created_at: at, price: 100 }),
    line.subscription({ id, profile_id, created_at: at, period_ends_at: at }),
    line.payment({ order_id: uuid(made), trx_created_at: at, psp_date: at, psp: 'elsewhere', psp_merchant_id: 'main' }),
  ]
}

for (const [zone, days] of Object.entries(ZONES))
  test(`${zone}: figures, lists and finance by day, and hours that add up to the day`, async () => {
    const project = await server.project()
    const [own, organization] = [`/projects/${project.id}`, `/organizations/${project.organizationId}`]
    const get = (path: string) => ok(server.admin(path))
    const body = { time_zone: zone }
    assert.equal((await server.admin(`${own}/reporting`, { method: 'PUT', body })).status, 200)
    const lines = [line.product(), line.customer(), ...Object.keys(days).flatMap(records)]
    await load(server.app, project.id, lines)
    await followProject(server.db, project.id)
    for (const [day, all] of Map.groupBy(Object.values(days), (one) => one)) {
      const period = `from=${day}&to=${day}`
      const { data } = await get(`${own}/figures?metric=sessions,new_subscriptions,attempts&${period}`)
      const { sessions, new_subscriptions, attempts } = data[0].values
      const hours = (await get(`${own}/figures?metric=sessions&by=hour&${period}`)).data
      const found = [
        ...[sessions, new_subscriptions, attempts],
        hours.reduce((sum: number, { values }: Json) => sum + values.sessions, 0),
        (await get(`${organization}/finance?${period}`)).totals[0].payments,
      ]
      for (const list of ['sessions', 'payments', 'subscriptions', 'profiles'])
        found.push((await get(`${own}/${list}?${period}`)).data.length)
      for (const filter of [`due=${day}`, `moved=${day}+${day}+created`])
        found.push((await get(`${own}/subscriptions?${filter}`)).data.length)
      assert.deepEqual(
        found,
        found.map(() => all.length),
        day,
      )
    }
  })
