// A database clock that is set back puts off no delivery: what was due by the old time is due at once.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { deliverEvents } from '../../../src/core/events/dispatcher.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { openEvents } from '../../support/events.ts'
import { startReceiver } from '../../support/receiver.ts'
import { eventually, setDatabaseClock } from '../../support/time.ts'

// Longer than the pause before a second attempt, and much shorter than what the clock is set back by.
const PATIENCE_MS = 60_000
const AHEAD = '2 hours'

/** How many attempts the receiver still refuses. */
let refusals = 0
const events = await openEvents({ LOG_LEVEL: 'silent' })
const receiver = await startReceiver(() => (refusals-- > 0 ? 500 : 204))
await events.endpoint(receiver.url)
after(async () => {
  await receiver.close()
  await events.close()
})

/** The pause between two readings of the database's clock. */
const READING_MS = 2000

const setClock = (ahead?: string) => setDatabaseClock(events.settings.DATABASE_URL!, ahead)
const attempts = (eventId: string) =>
  receiver.arrivals.filter(({ headers }) => headers['webhook-id'] === eventId).length

async function deliveryOf(eventId: string) {
  const text = `select status, next_attempt_at > clock_timestamp() + interval '1 hour' as is_far
    from webhook_deliveries where event_id = $1`
  const [row] = await events.app.db.query(text, [eventId])
  return row
}

/** An event whose first attempt failed while the clock was ahead, so that the second one is put off. */
async function refusedOnce(): Promise<string> {
  refusals = 1
  const eventId = await events.event()
  assert.ok(await eventually(async () => (await deliveryOf(eventId))?.is_far === 't', PATIENCE_MS))
  assert.ok(await eventually(() => attempts(eventId) === 1, PATIENCE_MS))
  return eventId
}

async function isDelivered(eventId: string): Promise<boolean> {
  const isDone = async () => (await deliveryOf(eventId).catch(() => undefined))?.status === 'succeeded'
  return (await eventually(isDone, PATIENCE_MS)) && attempts(eventId) === 2
}

test('due at once when the database clock is set back while a process delivers', async () => {
  await setClock(AHEAD)
  const stop = deliverEvents(events.app)
  try {
    const eventId = await refusedOnce()
    await setClock()
    assert.ok(await isDelivered(eventId))
  } finally {
    await stop()
  }
})

test('due at the next start when the database clock is set back while no process runs', async () => {
  await setClock(AHEAD)
  const stopFirst = deliverEvents(events.app)
  const eventId = await refusedOnce().finally(stopFirst)
  await setClock()
  const stop = deliverEvents(events.app)
  try {
    assert.ok(await isDelivered(eventId))
  } finally {
    await stop()
  }
})

test('due within an hour when the database clock goes ahead and back between two readings of it', async () => {
  const read = Promise.withResolvers<void>()
  const hurry = Promise.withResolvers<void>()
  // The hour passes as fast as the clock can be read.
  const sleep: Clock['sleep'] = async (ms, signal) => {
    if (ms !== READING_MS) return systemClock.sleep(ms, signal)
    read.resolve()
    await hurry.promise
  }
  const stop = deliverEvents({ ...events.app, clock: { ...systemClock, sleep } })
  try {
    await read.promise
    await setClock(AHEAD)
    const eventId = await refusedOnce()
    await setClock()
    hurry.resolve()
    assert.ok(await isDelivered(eventId))
  } finally {
    hurry.resolve()
    await stop()
  }
})
