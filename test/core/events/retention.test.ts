// What is forgotten after 30 days, and what is not.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { deleteSome } from '../../../src/core/events/retention.ts'
import { openEvents, PROJECT } from '../../support/events.ts'

const events = await openEvents()
after(() => events.close())

test('attempts and finished deliveries of 31 days go; younger ones, waiting ones and events stay', async () => {
  const { db } = events.app
  const endpoint = await events.endpoint('http://127.0.0.1:9/')
  const ages = [
    ['old', 31, 'succeeded'],
    ['young', 29, 'succeeded'],
    ['waiting', 31, 'pending'],
  ] as const
  const ids: Record<string, string> = {}
  for (const [name, days, status] of ages) {
    ids[name] = await events.event()
    const age = `db_clock() - interval '${days} days'`
    const [finished, next] = status === 'pending' ? ['null', age] : [age, 'null']
    await db.query(
      `insert into webhook_deliveries (project_id, event_id, endpoint_id, status, created_at, next_attempt_at, finished_at)
       values ($1, $2, $3, '${status}', ${age}, ${next}, ${finished})`,
      [PROJECT, ids[name], endpoint],
    )
    await db.query(
      `insert into webhook_attempts (project_id, event_id, endpoint_id, number, attempted_at, duration_ms, status)
       values ($1, $2, $3, 1, ${age}, 5, 200)`,
      [PROJECT, ids[name], endpoint],
    )
  }
  assert.equal(await deleteSome(db), false)
  const left = async (table: string) =>
    (await db.query(`select event_id from ${table}`)).map((row) => row.event_id).sort()
  assert.deepEqual(await left('webhook_attempts'), [ids.young])
  assert.deepEqual(await left('webhook_deliveries'), [ids.young, ids.waiting].sort())
  assert.equal((await db.query('select 1 from events')).length, 3)
})
