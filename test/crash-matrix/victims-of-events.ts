// Events to deliver, and attempts to delete.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createEndpoint } from '../../src/core/events/endpoints.ts'
import { write } from '../../src/core/events/outbox.ts'
import type { Ground, Victim } from './victim.ts'

export async function undelivered({ billing, receiver }: Ground): Promise<Victim> {
  const { db } = billing
  const organization = await billing.organization()
  const url = `${receiver.url}/${organization.projectId}`
  const endpoint = { url, kinds: [], enabled: true }
  await db.tx((query) => createEndpoint(query, organization.projectId, endpoint, { allowPrivate: true }))
  const object_id = randomUUID()
  const made = { type: 'charge.succeeded' as const, object_id, profile_id: null, data: { a: 1 } }
  await db.tx((query) => write(query, organization.projectId, [made]))
  const [event] = await db.query('select id from events where object_id = $1', [object_id])
  const id = event!.id!
  return {
    subject: { event: id },
    async afterKill() {
      // Ends the lease of the killed process.
      await db.query(
        `update webhook_deliveries set next_attempt_at = db_clock() where event_id = $1 and status = 'pending'`,
        [id],
      )
    },
    async checkResult() {
      const arrived = receiver.arrivals.filter(({ path }) => url.endsWith(path)).map(({ headers }) => headers)
      assert.ok(arrived.length > 0, 'it never arrived')
      for (const headers of arrived) assert.equal(headers['webhook-id'], id)
      const deliveries = await db.query('select status from webhook_deliveries where event_id = $1', [id])
      assert.deepEqual(deliveries, [{ status: 'succeeded' }])
    },
  }
}

export async function unforgotten(ground: Ground): Promise<Victim> {
  const { db } = ground.billing
  const { subject } = await undelivered(ground)
  const event = subject.event!
  await db.query(
    `insert into webhook_deliveries (project_id, event_id, endpoint_id, created_at, status, finished_at)
     select e.project_id, e.id, w.id, db_clock() - interval '40 days', 'succeeded', db_clock() - interval '1 day'
     from events e join webhook_endpoints w using (project_id) where e.id = $1`,
    [event],
  )
  for (const [number, days] of [
    ['1', '40'],
    ['2', '1'],
  ])
    await db.query(
      `insert into webhook_attempts (project_id, event_id, endpoint_id, number, attempted_at, duration_ms, status)
       select project_id, event_id, endpoint_id, $2::int, db_clock() - $3::int * interval '1 day', 1, 200
       from webhook_deliveries where event_id = $1`,
      [event, number!, days!],
    )
  const attempts = async () => {
    const rows = await db.query('select number from webhook_attempts where event_id = $1 order by number', [event])
    return rows.map(({ number }) => number)
  }
  return {
    subject,
    async afterKill() {
      assert.ok((await attempts()).includes('2'), 'an attempt of yesterday is kept')
    },
    async checkResult() {
      assert.deepEqual(await attempts(), ['2'])
      const [kept] = await db.query('select 1 as one from events where id = $1', [event])
      assert.ok(kept, 'events stay')
    },
  }
}
