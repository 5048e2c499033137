// A removed endpoint is gone at once, however many deliveries it has; they are deleted later, a few at a time.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { commandLine } from '../../../src/cli/commands/operations.ts'
import { deliverEvents } from '../../../src/core/events/dispatcher.ts'
import { createEndpoint } from '../../../src/core/events/endpoints.ts'
import { deleteSome } from '../../../src/core/events/retention.ts'
import { FULL_ACCESS } from '../../../src/core/tenants/access.ts'
import { Json } from '../../../src/lib/json/json.ts'
import { type Operation, perform } from '../../../src/operator/admin/operation.ts'
import { operations } from '../../../src/operator/admin/operations.ts'
import { startBilling } from '../../support/billing.ts'
import { startReceiver } from '../../support/receiver.ts'
import { eventually } from '../../support/time.ts'

const billing = await startBilling({ WEBHOOK_ALLOW_PRIVATE: 'true', LOG_LEVEL: 'silent' }, { worker: false })
const shop = await billing.organization()
const gone = await startReceiver(() => 500)
const kept = await startReceiver()
const stop = deliverEvents(billing.server.app)
after(async () => {
  await stop()
  for (const receiver of [gone, kept]) await receiver.close()
  await billing.stop()
})

const query = (text: string, params: (string | null)[] = []) => billing.db.query(text, params)
const call = async (id: string, params: Record<string, string> = {}, body: Record<string, unknown> = {}) => {
  const operation: Operation = operations.find((one) => one.id === id)!
  const result = await perform(operation, billing.server.app, commandLine(), {
    params: { project_id: shop.projectId, organization_id: shop.id, ...params },
    query: {},
    body,
    access: FULL_ACCESS,
  })
  return result instanceof Json ? result.value() : result
}

const endpoint = (url: string) =>
  billing.db.tx((inTransaction) =>
    createEndpoint(inTransaction, shop.projectId, { url, kinds: [], enabled: true }, { allowPrivate: true }),
  )
const rowsOf = async (id: string) => {
  const [row] = await query(
    `select (select count(*) from webhook_endpoints where id = $1) as endpoints,
       (select count(*) from webhook_deliveries where endpoint_id = $1) as deliveries,
       (select count(*) from webhook_attempts where endpoint_id = $1) as attempts`,
    [id],
  )
  return { endpoints: Number(row!.endpoints), deliveries: Number(row!.deliveries), attempts: Number(row!.attempts) }
}

/** The order of a charge, when no attempt to deliver its events is due soon or in progress: those that failed are put off. */
async function charged(): Promise<string> {
  const { body } = await shop.charge(await shop.customer())
  assert.equal(body.checkout_status, 'succeeded')
  const soon = `d.status = 'pending' and d.next_attempt_at <= db_clock() + interval '1 minute'`
  const putOff = `update webhook_deliveries d set next_attempt_at = db_clock() + interval '1 hour'
    where ${soon} and failures > 0 and attempts = (
      select count(*) from webhook_attempts a where a.endpoint_id = d.endpoint_id and a.event_id = d.event_id)`
  const left = `select from events where pending union all
    select from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id where ${soon} and e.enabled`
  const isDone = async () => {
    await query(putOff)
    return (await query(left)).length === 0
  }
  assert.ok(await eventually(isDone))
  return body.order_id
}
/** Adds pending deliveries of new events to the endpoint, each with an attempt. */
async function addDeliveries(endpointId: string, count: number): Promise<void> {
  await query(
    `with made as (
       insert into events (project_id, id, type, object_id, sequence, created_at, data, pending)
       select $1, gen_random_uuid(), 'charge.failed', gen_random_uuid()::text, 1, db_clock(), '{}', false
       from generate_series(1, $3::int) n returning id
     ), due as (
       insert into webhook_deliveries (project_id, event_id, endpoint_id, created_at, next_attempt_at, attempts, failures)
       select $1, id, $2, db_clock(), db_clock() + interval '1 hour', 1, 2 from made returning event_id)
     select count(*) from due`,
    [shop.projectId, endpointId, String(count)],
  )
  await query(
    `insert into webhook_attempts (project_id, event_id, endpoint_id, number, attempted_at, duration_ms, status)
     select project_id, event_id, endpoint_id, 1, created_at, 5, 500 from webhook_deliveries where endpoint_id = $1
     on conflict do nothing`,
    [endpointId],
  )
}

test('is removed while its deliveries are locked, is shown nowhere and receives nothing, before they are deleted', async () => {
  const [id, other] = [await endpoint(gone.url), await endpoint(kept.url)]
  const orderId = await charged()
  assert.ok((await rowsOf(id)).attempts > 0)
  await addDeliveries(id, 3)
  const [attempt] = await query('select event_id from webhook_attempts where endpoint_id = $1 limit 1', [id])
  const readings: [string, Record<string, string>?][] = [
    ['listWebhooks'],
    ['getWebhookStatistics'],
    ['listDeliveries'],
    ['listFailingDeliveries'],
    ['listAttempts', { event_id: attempt!.event_id! }],
    ['getOrder', { order_id: orderId }],
  ]
  const shows = async (reading: string, params?: Record<string, string>) =>
    JSON.stringify(await call(reading, params)).includes(id)
  for (const [reading, params] of readings) assert.ok(await shows(reading, params), `${reading} shows it`)

  // The removal may not wait for a delivery, which something else may lock.
  const { query: concurrent, release } = await billing.db.connect()
  await concurrent('begin')
  await concurrent('select from webhook_deliveries where endpoint_id = $1 for update', [id])
  await call('removeWebhook', { webhook_id: id })
  await concurrent('commit')
  release()

  assert.ok((await rowsOf(id)).deliveries > 3)
  for (const [reading, params] of readings) assert.ok(!(await shows(reading, params)), `${reading} still shows it`)
  const shown = (await call('getProjectState')) as Record<string, unknown>
  assert.deepEqual([shown.endpoints, shown.endpoints_failing, shown.deliveries_waiting], [1, 0, 0])
  await assert.rejects(Promise.resolve(call('getWebhook', { webhook_id: id })), /There is no webhook endpoint/)
  for (const change of ['setWebhook', 'testWebhook', 'removeWebhook'])
    await assert.rejects(Promise.resolve(call(change, { webhook_id: id })), /There is no webhook endpoint/)

  const arrived = gone.arrivals.length
  await query(`update webhook_deliveries set next_attempt_at = db_clock() where endpoint_id = $1`, [id])
  await call('sendEventAgain', { event_id: attempt!.event_id! })
  const before = kept.arrivals.length
  await charged()
  assert.ok(kept.arrivals.length >= before + 2)
  assert.equal(gone.arrivals.length, arrived)

  const { deliveries } = await rowsOf(other)
  while (await deleteSome(billing.db));
  assert.deepEqual(await rowsOf(id), { endpoints: 0, deliveries: 0, attempts: 0 })
  assert.equal((await rowsOf(other)).deliveries, deliveries)
})

test('its deliveries are deleted in batches, by any number of processes', async () => {
  const id = await endpoint(gone.url)
  await addDeliveries(id, 5000)
  await call('removeWebhook', { webhook_id: id })
  assert.ok(await deleteSome(billing.db))
  const left = await rowsOf(id)
  assert.ok(left.endpoints === 1 && left.deliveries > 0 && left.deliveries < 5000, JSON.stringify(left))
  const deleteAll = async () => {
    while (await deleteSome(billing.db));
  }
  await Promise.all([deleteAll(), deleteAll(), deleteAll()])
  assert.deepEqual(await rowsOf(id), { endpoints: 0, deliveries: 0, attempts: 0 })
})

test('a delivery that was being created when it was removed is deleted too', async () => {
  const id = await endpoint(gone.url)
  await billing.db.tx(async (inTransaction) => {
    await inTransaction(
      `insert into webhook_deliveries (project_id, event_id, endpoint_id, created_at, next_attempt_at)
       select project_id, id, $2, db_clock(), db_clock() from events where project_id = $1 limit 1`,
      [shop.projectId, id],
    )
    await call('removeWebhook', { webhook_id: id })
    while (await deleteSome(billing.db));
    assert.equal((await rowsOf(id)).endpoints, 1)
  })
  while (await deleteSome(billing.db));
  assert.deepEqual(await rowsOf(id), { endpoints: 0, deliveries: 0, attempts: 0 })
})
