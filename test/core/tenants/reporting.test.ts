// The first instant of a day in a time zone, and the names of zones that have two.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate } from '../../../src/lib/pg/migrate.ts'
import { setUpDb } from '../../support/database.ts'

const database = setUpDb()

// Days around changes of clocks: by an hour, half an hour, three hours, over midnight, at one minute past it, and by a whole day.
const DAYS = [
  ['UTC', '2026-10-25'],
  ['Pacific/Auckland', '2026-09-27'],
  ['Pacific/Auckland', '2026-04-05'],
  ['Europe/Madrid', '2026-10-25'],
  ['Europe/Madrid', '2026-10-26'],
  ['Atlantic/Azores', '2026-10-25'],
  ['America/Havana', '2026-11-01'],
  ['America/Sao_Paulo', '2018-11-04'],
  ['America/Sao_Paulo', '2019-02-17'],
  ['America/St_Johns', '2010-11-07'],
  ['America/St_Johns', '2026-03-08'],
  ['Australia/Lord_Howe', '2026-04-05'],
  ['Antarctica/Casey', '2010-03-05'],
  ['Asia/Kathmandu', '2026-01-01'],
  ['Pacific/Apia', '2011-12-29'],
  ['Pacific/Apia', '2011-12-31'],
]

test('a day begins with its first minute in the zone', async () => {
  const { db } = database
  for (const [zone, day] of DAYS) {
    const [row] = await db.query(
      `select day_begins($1::date, $2)::text as begins, (
         select min(at)::text from generate_series($1::date - interval '2 days', $1::date + interval '2 days', interval '1 minute') day (utc)
         cross join lateral (select utc at time zone 'UTC' as at) instant
         where (at at time zone $2)::date = $1) as first`,
      [day!, zone!],
    )
    assert.equal(row!.begins, row!.first, `${zone} ${day}`)
  }
  const [skipped] = await db.query(
    `select (day_begins('2011-12-30', 'Pacific/Apia') = day_begins('2011-12-31', 'Pacific/Apia'))::text as same`,
  )
  assert.equal(skipped!.same, 'true')
})

test('an older name of a time zone has the same days as the present one', async () => {
  const { db } = database
  const pairs = await db.query(
    `select name, present_time_zone(name) as present from pg_timezone_names where present_time_zone(name) <> name`,
  )
  assert.ok(pairs.some(({ name, present }) => name === 'Europe/Kiev' && present === 'Europe/Kyiv'))
  assert.ok(pairs.length > 60)
  for (const { name, present } of pairs) {
    const [other] = await db.query(
      `select at from generate_series(timestamptz '1970-01-01', '2040-01-01', '10 days') at
       where at at time zone $1 <> at at time zone $2 limit 1`,
      [name!, present!],
    )
    assert.equal(other, undefined, `${name} and ${present}`)
  }
})

test('older names that were stored before become present ones, with the figures in them', async () => {
  const { db, url } = database
  await db.query(`insert into organizations (id, name) values ('acme', 'Acme')`)
  await db.query(`insert into projects (id, organization_id, name, time_zone) values
    ('a', 'acme', 'A', 'Asia/Calcutta'), ('b', 'acme', 'B', 'Asia/Kolkata'), ('c', 'acme', 'C', 'Europe/Stockholm')`)
  await db.query(`insert into figure_settings (project_id, time_zone, currency) values ('a', 'Asia/Calcutta', 'USD')`)
  await db.query(`insert into finance_months (organization_id, month, closed_at, time_zone, currency)
    values ('acme', '2026-01-01', db_clock(), 'Etc/UTC', 'USD')`)
  await db.query('drop function present_time_zone')
  await db.query('delete from schema_migrations where version = 251')
  assert.deepEqual(await migrate(url), [251])
  const rows = await db.query(
    `select time_zone from projects union all select time_zone from figure_settings union all select time_zone from finance_months`,
  )
  assert.deepEqual(rows.map(({ time_zone }) => time_zone).sort(), [
    'Asia/Kolkata',
    'Asia/Kolkata',
    'Asia/Kolkata',
    'Europe/Stockholm',
    'UTC',
  ])
})
