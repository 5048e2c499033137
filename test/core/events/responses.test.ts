// What is kept of the responses of receivers: the first 2 KiB, and nothing about an erased person.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, test } from 'node:test'
import { reapplyErasure } from '../../data/ingest/erased-imports.ts'
import { addRow, BASICS, insert } from '../../support/data.ts'
import { untilLocked } from '../../support/database.ts'
import { ORGANIZATION, PROJECT } from '../../support/events.ts'
import { eventually } from '../../support/time.ts'
import { person } from '../erasure/person.ts'
import { DEADLINE_MS, openDeliveries } from './deliveries.ts'

const events = await openDeliveries()
after(() => events.close())
afterEach(events.clear)

test('the first 2 KiB of a response are kept, as text that the database can store, also of one without an end', async () => {
  const target = await events.receiver((_arrival, response) => {
    response.writeHead(200)
    const pour = () => {
      while (response.write(`\u0000é${'x'.repeat(8000)}`));
      response.once('drain', pour)
    }
    pour()
    return undefined
  })
  const { eventId } = await events.attemptedOnce(target)
  const [attempt] = await events.query('select status, answer, duration_ms from webhook_attempts where event_id = $1', [
    eventId,
  ])
  assert.equal(attempt!.status, '200')
  assert.equal(attempt!.answer!.slice(0, 3), '\ufffdéx')
  assert.equal(Buffer.byteLength(attempt!.answer!), 2048 + 2)
  assert.ok(Number(attempt!.duration_ms) < DEADLINE_MS)
})

test('no response about an erased person is kept', async () => {
  const profile = `pro_${randomUUID()}`
  await addRow(events.app.db, 'profiles', { project_id: PROJECT, id: profile })
  const target = await events.receiver((_arrival, response) => {
    response.writeHead(200).end('hello ada@example.com')
    return undefined
  })
  await events.endpoint(target.url)
  const storedOf = async (eventId: string) =>
    (await events.query('select answer from webhook_attempts where event_id = $1', [eventId]))[0]!.answer
  const known = await events.event({ profile_id: profile })
  assert.ok(await events.attempted(known, 1))
  assert.equal(await storedOf(known), 'hello ada@example.com')
  await events.query('update profiles set anonymized_at = db_clock() where id = $1', [profile])
  const erased = await events.event({ profile_id: profile })
  assert.ok(await events.attempted(erased, 1))
  assert.equal(await storedOf(erased), null)
})

/** A receiver that responds from `release` on, also to an attempt that is made again. Events of the test before may arrive, too. */
async function holdingReceiver() {
  const released = Promise.withResolvers<void>()
  const target = await events.receiver((_arrival, response) => {
    released.promise.then(() => response.writeHead(200).end('hello ada'))
    return undefined
  })
  const arrived = (eventId: string) =>
    eventually(() => target.arrivals.some(({ headers }) => headers['webhook-id'] === eventId))
  return { target, arrived, release: () => released.resolve() }
}

test('no response is kept for an event that an erasure has emptied in between', async () => {
  const { target, arrived, release } = await holdingReceiver()
  await events.endpoint(target.url)
  const { db } = events.app
  const project = { id: PROJECT, organizationId: ORGANIZATION }
  // Another person's subscription, which came out of a session of hers.
  await insert(db, project, { ...BASICS, ...person('ada') })
  await insert(db, project, {
    profiles: [{ id: 'bob' }],
    subscriptions: [{ id: 'bought', profile_id: 'bob', session_id: 'session-of-ada' }],
  })
  const data = { id: 'bought', session: { id: 'session-of-ada', user_agent: 'of ada' } }
  const eventId = await events.event({ type: 'subscription.created', object_id: 'bought', profile_id: 'bob', data })
  assert.ok(await arrived(eventId))
  await reapplyErasure(db, PROJECT, 'ada')
  release()
  assert.ok(await events.attempted(eventId, 1))
  const attempts = await events.query('select status, answer from webhook_attempts where event_id = $1', [eventId])
  assert.deepEqual(
    attempts.map(({ status, answer: response }) => [status, response]),
    [['200', null]],
  )
})

test('a response waits for an erasure that is emptying its event', async () => {
  const { target, arrived, release } = await holdingReceiver()
  await events.endpoint(target.url)
  const eventId = await events.event()
  assert.ok(await arrived(eventId))
  await events.app.db.tx(async (emptying) => {
    await emptying(`update events set data = '{"id":"x"}' where id = $1`, [eventId])
    release()
    await untilLocked(events.app.db.query, 'webhook_attempts')
  })
  assert.ok(await events.attempted(eventId, 1))
  const [attempt] = await events.query('select answer from webhook_attempts where event_id = $1', [eventId])
  assert.equal(attempt!.answer, null)
})
