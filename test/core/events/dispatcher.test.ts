// Deliveries end to end: signatures, kinds, several processes, receivers that do not respond.
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { deliverEvents } from '../../../src/core/events/dispatcher.ts'
import { sendTest } from '../../../src/core/events/endpoints.ts'
import { type Event, write } from '../../../src/core/events/outbox.ts'
import { createProject, regenerateKey } from '../../../src/core/tenants/tenants.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { ORGANIZATION, PROJECT } from '../../support/events.ts'
import { eventually } from '../../support/time.ts'
import { openDeliveries } from './deliveries.ts'

const EVENT: Event = { type: 'charge.succeeded', object_id: 'an-order', profile_id: null, data: {} }

/** The pauses of the dispatcher. */
const pauses: number[] = []
const sleep: Clock['sleep'] = (ms, signal) => {
  pauses.push(ms)
  return systemClock.sleep(ms, signal)
}
const events = await openDeliveries({ clock: { ...systemClock, sleep } })
after(() => events.close())
afterEach(events.clear)

test('the queue is looked at several times a second', async () => {
  assert.ok(await eventually(() => pauses.length > 3))
  assert.ok(Math.min(...pauses) <= 250, pauses.join(' ms, '))
})

test('an event arrives, signed so that the published library verifies it', async () => {
  const target = await events.receiver()
  await events.endpoint(target.url)
  const eventId = await events.event({ object_id: 'order-1', data: { text: 'ü "quoted"', list: [1, null] } })
  assert.ok(await events.arrived(target))
  const { headers, body } = target.arrivals[0]!
  assert.equal(headers['webhook-id'], eventId)
  const secret = `whsec_${Buffer.from(events.secretKey).toString('base64')}`
  const payload = new Webhook(secret).verify(body, headers as Record<string, string>) as Record<string, unknown>
  assert.deepEqual(Object.keys(payload), ['id', 'type', 'created_at', 'project_id', 'sequence', 'data'])
  assert.deepEqual(
    { ...payload, created_at: undefined },
    {
      id: eventId,
      type: 'charge.succeeded',
      created_at: undefined,
      project_id: PROJECT,
      sequence: 1,
      data: { text: 'ü "quoted"', list: [1, null] },
    },
  )
  assert.match(String(payload.created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  assert.throws(() => new Webhook(secret).verify(`${body} `, headers as Record<string, string>))
})

test('a new endpoint receives the events after it, and none from before', async () => {
  const before = await events.event()
  assert.deepEqual(await events.query('select pending from events where id = $1', [before]), [{ pending: 'f' }])
  const target = await events.receiver()
  await events.endpoint(target.url)
  const behind = await events.event()
  assert.ok(await events.arrived(target))
  assert.deepEqual(
    target.arrivals.map(({ headers }) => headers['webhook-id']),
    [behind],
  )
})

test('while two keys of a project overlap both verify; a key that has ended signs nothing', async () => {
  const target = await events.receiver()
  await events.endpoint(target.url)
  const fresh = (await regenerateKey(events.app.db, events.app.seal, { project: PROJECT }, 3600)).secret_key
  await events.event()
  assert.ok(await events.arrived(target))
  const verifies = (key: string, n: number) => {
    const { body, headers } = target.arrivals[n]!
    const webhook = new Webhook(key, { format: 'raw' })
    try {
      return Boolean(webhook.verify(body, headers as Record<string, string>))
    } catch {
      return false
    }
  }
  assert.deepEqual([verifies(fresh, 0), verifies(events.secretKey, 0)], [true, true])
  const last = (await regenerateKey(events.app.db, events.app.seal, { project: PROJECT })).secret_key
  await events.event()
  assert.ok(await events.arrived(target, 2))
  assert.deepEqual([verifies(last, 1), verifies(fresh, 1), verifies(events.secretKey, 1)], [true, false, false])
})

test('a project whose key cannot be decrypted delays no other, and its events arrive once it has a new key', async () => {
  const { app } = events
  const broken = 'broken'
  await createProject(app.db, app.seal, { id: broken, organization: ORGANIZATION })
  await events.query(`update secret_keys set sealed = sealed || '\\x00' where project_id = $1`, [broken])
  const [good, other] = [await events.receiver(), await events.receiver()]
  await events.endpoint(good.url)
  await events.endpoint(other.url, [], broken)
  // Both are due at the same moment.
  await app.db.tx(async (query) => {
    await write(query, broken, [EVENT])
    await write(query, PROJECT, [EVENT])
  })
  assert.ok(await events.arrived(good))
  const [waiting] = await events.query('select attempts, failures from webhook_deliveries where project_id = $1', [
    broken,
  ])
  assert.deepEqual(waiting, { attempts: '1', failures: '0' })
  const { secret_key } = await regenerateKey(app.db, app.seal, { project: broken })
  await events.query('update webhook_deliveries set next_attempt_at = db_clock() where project_id = $1', [broken])
  assert.ok(await events.arrived(other))
  const { body, headers } = other.arrivals[0]!
  new Webhook(secret_key, { format: 'raw' }).verify(body, headers as Record<string, string>)
})

test('an endpoint receives the kinds it asked for, and its test event whatever they are', async () => {
  const [picky, all] = [await events.receiver(), await events.receiver()]
  const pickyId = await events.endpoint(picky.url, ['refund.failed'])
  await events.endpoint(all.url)
  await events.event({ type: 'charge.failed' })
  await events.event({ type: 'refund.failed' })
  assert.ok(await events.arrived(all, 2))
  await events.app.db.tx((q) => sendTest(q, PROJECT, pickyId))
  assert.ok(await events.arrived(picky, 2))
  assert.ok(await events.idle())
  const kinds = (target: typeof all) => target.arrivals.map(({ body }) => JSON.parse(body).type).sort()
  assert.deepEqual(kinds(all), ['charge.failed', 'refund.failed'])
  assert.deepEqual(kinds(picky), ['endpoint.test', 'refund.failed'])
})

test('two processes deliver every event once, and what a dead process had taken is delivered again', async () => {
  const target = await events.receiver()
  await events.endpoint(target.url)
  const other = await events.another()
  const stop = deliverEvents(other)
  const ids = await Promise.all(Array.from({ length: 60 }, () => events.event()))
  assert.ok(await events.arrived(target, 60))
  await stop()
  const got = target.arrivals.map(({ headers }) => headers['webhook-id'])
  assert.deepEqual([...got].sort(), [...ids].sort())
  // Taken by a process that died: due again when its lease has passed.
  const eventId = ids[0]!
  await events.query(
    `update webhook_deliveries set status = 'pending', finished_at = null, attempts = attempts + 1,
    next_attempt_at = db_clock() + interval '1 second' where event_id = $1`,
    [eventId],
  )
  assert.ok(await events.arrived(target, 61))
  assert.equal(target.arrivals[60]!.headers['webhook-id'], eventId)
})

test('a receiver that does not respond delays no other', async () => {
  const deliveries = await openDeliveries({ deadlineMs: 600_000 })
  const held: (() => void)[] = []
  try {
    const silent = await deliveries.receiver((_arrival, response) => void held.push(() => response.end()))
    const quick = await deliveries.receiver()
    const silentId = await deliveries.endpoint(silent.url)
    await deliveries.endpoint(quick.url)
    await deliveries.event()
    assert.ok(await deliveries.arrived(silent))
    for (let n = 0; n < 20; n += 1) await deliveries.event()
    assert.ok(await deliveries.arrived(quick, 21))
    assert.deepEqual(await deliveries.query('select 1 from webhook_attempts where endpoint_id = $1', [silentId]), [])
  } finally {
    // The dispatcher ends when its attempts have.
    for (const respond of held) respond()
    await deliveries.close()
  }
})

test('a receiver that does not respond until the deadline has failed', async () => {
  const deliveries = await openDeliveries({ deadlineMs: 1_000 })
  try {
    await deliveries.endpoint((await deliveries.receiver(() => undefined)).url)
    const eventId = await deliveries.event()
    assert.ok(await deliveries.attempted(eventId, 1))
    const [attempt] = await deliveries.query('select error, status from webhook_attempts where event_id = $1', [
      eventId,
    ])
    assert.deepEqual(attempt, { error: 'There was no response within 1 s.', status: null })
  } finally {
    await deliveries.close()
  }
})

test('a redirect is not followed', async () => {
  const secret = await events.receiver()
  const target = await events.receiver((_arrival, response) => {
    response.writeHead(302, { location: secret.url }).end()
    return undefined
  })
  const { eventId } = await events.attemptedOnce(target)
  assert.deepEqual([(await events.deliveryOf(eventId))!.failures, secret.arrivals.length], ['1', 0])
})
