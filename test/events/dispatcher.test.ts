// Deliveries end to end: signatures, retries, switching off, several processes, and what stays of an attempt.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { reapply } from '../../src/erasure/erasure.ts'
import { deliverEvents } from '../../src/events/dispatcher.ts'
import { removeEndpoint, sendAgain, sendTest, setEndpoint } from '../../src/events/endpoints.ts'
import { regenerateKey } from '../../src/tenants/tenants.ts'
import { BASICS, insert } from '../support/data.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../support/events.ts'
import { untilLocked } from '../support/locks.ts'
import { person } from '../support/person.ts'
import { type Answer, eventually, startReceiver } from '../support/receiver.ts'

let events: Awaited<ReturnType<typeof openEvents>>
const open: { close(): Promise<unknown> }[] = []

before(async () => {
  events = await openEvents()
  const stop = deliverEvents(events.app, { deadlineMs: 1000 })
  open.push({ close: stop })
})
after(async () => {
  for (const one of open.splice(0)) await one.close()
  await events.close()
})

async function receiver(answer?: Answer) {
  const made = await startReceiver(answer)
  open.push(made)
  return made
}

const query = async (text: string, params: string[] = []) => events.app.db.query(text, params)
const arrived = (target: { arrivals: unknown[] }, n = 1) => eventually(() => target.arrivals.length >= n)
const deliveryOf = async (eventId: string) =>
  (
    await query('select *, next_attempt_at - db_clock() as wait from webhook_deliveries where event_id = $1', [eventId])
  )[0]
const attempted = (eventId: string, n: number) =>
  eventually(async () => (await query('select 1 from webhook_attempts where event_id = $1', [eventId])).length >= n)
/** Makes a waiting delivery due now. */
const hurry = (eventId: string) =>
  query(`update webhook_deliveries set next_attempt_at = db_clock() where event_id = $1 and status = 'pending'`, [
    eventId,
  ])

test('an event arrives within a second, signed so that the published library verifies it', async () => {
  const target = await receiver()
  const id = await events.endpoint(target.url)
  const eventId = await events.event({ object_id: 'order-1', data: { text: 'ü "quoted"', list: [1, null] } })
  const committed = performance.now()
  assert.ok(await arrived(target))
  const { headers, body, at } = target.arrivals[0]!
  assert.ok(at - committed < 1000, `${at - committed} ms`)
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
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('where a project has no endpoint its events wait for nobody, and one that is made gets what comes behind it', async () => {
  const before = await events.event()
  assert.deepEqual(await query('select pending from events where id = $1', [before]), [{ pending: 'f' }])
  const target = await receiver()
  const id = await events.endpoint(target.url)
  const behind = await events.event()
  assert.ok(await arrived(target))
  assert.deepEqual(
    target.arrivals.map(({ headers }) => headers['webhook-id']),
    [behind],
  )
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('during an overlap both keys verify; a dead key signs nothing', async () => {
  const target = await receiver()
  const id = await events.endpoint(target.url)
  const fresh = (await regenerateKey(events.app.db, events.app.seal, { project: PROJECT }, 3600)).secret_key
  await events.event()
  assert.ok(await arrived(target))
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
  assert.ok(await arrived(target, 2))
  assert.deepEqual([verifies(last, 1), verifies(fresh, 1), verifies(events.secretKey, 1)], [true, false, false])
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('a failure is tried again after 5 s, byte for byte the same, until it succeeds', async () => {
  let failures = 2
  const target = await receiver(() => (failures-- > 0 ? 500 : 200))
  const id = await events.endpoint(target.url)
  const eventId = await events.event()
  for (const [n, wait] of [
    [1, /^00:00:0[345]/],
    [2, /^00:0(4:5|5:00)/],
  ] as const) {
    assert.ok(await attempted(eventId, n))
    const delivery = await deliveryOf(eventId)
    assert.equal(delivery!.status, 'pending')
    assert.equal(delivery!.failures, String(n))
    assert.match(delivery!.wait!, wait)
    await hurry(eventId)
  }
  assert.ok(await attempted(eventId, 3))
  const delivery = await deliveryOf(eventId)
  assert.equal(delivery!.status, 'succeeded')
  const bodies = new Set(target.arrivals.map(({ body }) => body))
  assert.deepEqual([target.arrivals.length, bodies.size], [3, 1])
  const attempts = await query('select number, status from webhook_attempts where event_id = $1 order by number', [
    eventId,
  ])
  assert.deepEqual(
    attempts.map((row) => row.status),
    ['500', '500', '200'],
  )
  const [endpoint] = await query('select failing_since from webhook_endpoints where id = $1', [id])
  assert.equal(endpoint!.failing_since, null, 'a success ends the failing')
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('after the last of the schedule it is failed; sending it again begins anew under the same id', async () => {
  let status = 503
  const target = await receiver(() => status)
  const id = await events.endpoint(target.url)
  const eventId = await events.event()
  assert.ok(await attempted(eventId, 1))
  await query('update webhook_deliveries set failures = 9 where event_id = $1', [eventId])
  await hurry(eventId)
  assert.ok(await attempted(eventId, 2))
  assert.equal((await deliveryOf(eventId))!.status, 'failed')
  status = 200
  assert.equal(await events.app.db.tx((q) => sendAgain(q, PROJECT, eventId)), 1)
  assert.ok(await attempted(eventId, 3))
  assert.equal((await deliveryOf(eventId))!.status, 'succeeded')
  assert.deepEqual(new Set(target.arrivals.map(({ headers }) => headers['webhook-id'])), new Set([eventId]))
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('Retry-After is honoured', async () => {
  const target = await receiver((_arrival, response) => {
    response.writeHead(429, { 'retry-after': '600' }).end('later')
    return undefined
  })
  const id = await events.endpoint(target.url)
  const eventId = await events.event()
  assert.ok(await attempted(eventId, 1))
  assert.match((await deliveryOf(eventId))!.wait!, /^00:(09:5|10:00)/)
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('410 switches the endpoint off; what waits is delivered once it is switched on again', async () => {
  let status = 410
  const target = await receiver(() => status)
  const id = await events.endpoint(target.url)
  const eventId = await events.event()
  assert.ok(await attempted(eventId, 1))
  const [off] = await query('select enabled, disabled_because from webhook_endpoints where id = $1', [id])
  assert.deepEqual(off, { enabled: 'f', disabled_because: 'gone' })
  await hurry(eventId)
  const unheard = await events.event()
  assert.ok(await eventually(async () => (await query('select 1 from events where pending')).length === 0))
  assert.equal(await deliveryOf(unheard), undefined, 'nothing is queued for an endpoint that is off')
  assert.equal(target.arrivals.length, 1)
  status = 200
  await events.app.db.tx((q) => setEndpoint(q, PROJECT, id, { enabled: true }, { allowPrivate: true }))
  assert.ok(await arrived(target, 2))
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('5 days of nothing but failures switch the endpoint off, 4 days do not', async () => {
  const target = await receiver(() => 500)
  const id = await events.endpoint(target.url)
  const off = async () =>
    (await query('select enabled, disabled_because from webhook_endpoints where id = $1', [id]))[0]
  for (const [days, expected] of [
    [4, { enabled: 't', disabled_because: null }],
    [5.01, { enabled: 'f', disabled_because: 'failing' }],
  ] as const) {
    await query(
      `update webhook_endpoints set failing_since = db_clock() - $2::float8 * interval '1 day' where id = $1`,
      [id, String(days)],
    )
    assert.ok(await attempted(await events.event(), 1))
    assert.deepEqual(await off(), expected)
  }
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('only the kinds it wants; a test event for it alone, whatever it wants', async () => {
  const [picky, all] = [await receiver(), await receiver()]
  const pickyId = await events.endpoint(picky.url, ['refund.failed'])
  const allId = await events.endpoint(all.url)
  await events.event({ type: 'charge.failed' })
  await events.event({ type: 'refund.failed' })
  assert.ok(await arrived(all, 2))
  await events.app.db.tx((q) => sendTest(q, PROJECT, pickyId))
  assert.ok(await arrived(picky, 2))
  await new Promise((resolve) => setTimeout(resolve, 300))
  const kinds = (target: typeof all) => target.arrivals.map(({ body }) => JSON.parse(body).type).sort()
  assert.deepEqual(kinds(all), ['charge.failed', 'refund.failed'])
  assert.deepEqual(kinds(picky), ['endpoint.test', 'refund.failed'])
  for (const id of [pickyId, allId]) await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('two processes deliver every event once, and one that dies loses none', async () => {
  const target = await receiver()
  const id = await events.endpoint(target.url)
  const other = await events.another()
  const stop = deliverEvents(other, { deadlineMs: 1000 })
  const ids = await Promise.all(Array.from({ length: 60 }, () => events.event()))
  assert.ok(await arrived(target, 60))
  await stop()
  const got = target.arrivals.map(({ headers }) => headers['webhook-id'])
  assert.deepEqual([...got].sort(), [...ids].sort())
  // Taken by a process that died: due again when its lease has passed.
  const eventId = ids[0]!
  await query(
    `update webhook_deliveries set status = 'pending', finished_at = null, attempts = attempts + 1,
    next_attempt_at = db_clock() + interval '1 second' where event_id = $1`,
    [eventId],
  )
  assert.ok(await arrived(target, 61))
  assert.equal(target.arrivals[60]!.headers['webhook-id'], eventId)
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('a receiver that never answers is a failure at the deadline, and holds up nobody else', async () => {
  const [silent, quick] = [await receiver(() => undefined), await receiver()]
  const ids = [await events.endpoint(silent.url), await events.endpoint(quick.url)]
  const first = await events.event()
  assert.ok(await arrived(silent))
  for (let n = 0; n < 20; n += 1) await events.event()
  const begun = performance.now()
  assert.ok(await arrived(quick, 21))
  assert.ok(performance.now() - begun < 700)
  assert.ok(await attempted(first, 2))
  const [attempt] = await query(
    'select error, status, duration_ms from webhook_attempts where event_id = $1 and endpoint_id = $2',
    [first, ids[0]!],
  )
  assert.equal(attempt!.error, 'There was no response within 1 s.')
  for (const id of ids) await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('of an answer 2 KiB are kept, as text the database takes, however long it goes on', async () => {
  const target = await receiver((_arrival, response) => {
    response.writeHead(200)
    const pour = () => {
      while (response.write(`\u0000é${'x'.repeat(8000)}`));
      response.once('drain', pour)
    }
    pour()
    return undefined
  })
  const id = await events.endpoint(target.url)
  const eventId = await events.event()
  assert.ok(await attempted(eventId, 1))
  const [attempt] = await query('select status, answer, duration_ms from webhook_attempts where event_id = $1', [
    eventId,
  ])
  assert.equal(attempt!.status, '200')
  assert.equal(attempt!.answer!.slice(0, 3), '\ufffdéx')
  assert.equal(Buffer.byteLength(attempt!.answer!), 2048 + 2)
  assert.ok(Number(attempt!.duration_ms) < 900)
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('a redirect is not followed', async () => {
  const secret = await receiver()
  const target = await receiver((_arrival, response) => {
    response.writeHead(302, { location: secret.url }).end()
    return undefined
  })
  const id = await events.endpoint(target.url)
  const eventId = await events.event()
  assert.ok(await attempted(eventId, 1))
  assert.deepEqual([(await deliveryOf(eventId))!.failures, secret.arrivals.length], ['1', 0])
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

test('nothing of an answer about an erased person is kept', async () => {
  const profile = `pro_${randomUUID()}`
  await query(`insert into profiles (project_id, id, created_at, updated_at) values ($1, $2, db_clock(), db_clock())`, [
    PROJECT,
    profile,
  ])
  const target = await receiver((_arrival, response) => {
    response.writeHead(200).end('hello ada@example.com')
    return undefined
  })
  const id = await events.endpoint(target.url)
  const answerOf = async (eventId: string) =>
    (await query('select answer from webhook_attempts where event_id = $1', [eventId]))[0]!.answer
  const known = await events.event({ profile_id: profile })
  assert.ok(await attempted(known, 1))
  assert.equal(await answerOf(known), 'hello ada@example.com')
  await query('update profiles set anonymized_at = db_clock() where id = $1', [profile])
  const erased = await events.event({ profile_id: profile })
  assert.ok(await attempted(erased, 1))
  assert.equal(await answerOf(erased), null)
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})

/** A receiver whose answers wait until they are called. */
async function holdingReceiver() {
  const held: (() => void)[] = []
  const target = await receiver((_arrival, response) => {
    held.push(() => response.writeHead(200).end('hello ada'))
    return undefined
  })
  return { target, held }
}

test('nothing is kept of an answer to an event that an erasure has emptied meanwhile', async () => {
  const { target, held } = await holdingReceiver()
  const id = await events.endpoint(target.url)
  const { db } = events.app
  const project = { id: PROJECT, organizationId: ORGANIZATION }
  // Somebody else's subscription, which came out of a session of hers.
  await insert(db, project, { ...BASICS, ...person('ada') })
  await insert(db, project, {
    profiles: [{ id: 'bob' }],
    subscriptions: [{ id: 'bought', profile_id: 'bob', session_id: 'session-of-ada' }],
  })
  const data = { id: 'bought', session: { id: 'session-of-ada', user_agent: 'of ada' } }
  const eventId = await events.event({ type: 'subscription.created', object_id: 'bought', profile_id: 'bob', data })
  assert.ok(await arrived(target))
  await reapply(db, join(events.dataDir, 'ledger'), entries())
  for (const answer of held) answer()
  assert.ok(await attempted(eventId, 1))
  const attempts = await query('select status, answer from webhook_attempts where event_id = $1', [eventId])
  assert.deepEqual(
    attempts.map(({ status, answer }) => [status, answer]),
    [['200', null]],
  )
  await db.tx((q) => removeEndpoint(q, PROJECT, id))

  async function* entries() {
    yield { project_id: PROJECT, profile_id: 'ada', erased_at: '2026-01-02T03:04:05Z' }
  }
})

test('an answer waits for an erasure that is emptying its event', async () => {
  const { target, held } = await holdingReceiver()
  const id = await events.endpoint(target.url)
  const eventId = await events.event()
  assert.ok(await arrived(target))
  await events.app.db.tx(async (emptying) => {
    await emptying(`update events set data = '{"id":"x"}' where id = $1`, [eventId])
    for (const answer of held) answer()
    await untilLocked(events.app.db.query, 'webhook_attempts')
  })
  assert.ok(await attempted(eventId, 1))
  const [attempt] = await query('select answer from webhook_attempts where event_id = $1', [eventId])
  assert.equal(attempt!.answer, null)
  await events.app.db.tx((q) => removeEndpoint(q, PROJECT, id))
})
