// The first instant of a day in a time zone.
import assert from 'node:assert/strict'
import { test } from 'node:test'
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
