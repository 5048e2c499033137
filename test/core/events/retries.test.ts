// Deliveries that fail: when they are tried again, when they are given up, and when their endpoint is disabled.
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { runOperation } from '../../../src/cli/commands/operations.ts'
import { sendAgain } from '../../../src/core/events/endpoints.ts'
import { PROJECT } from '../../support/events.ts'
import { openDeliveries } from './deliveries.ts'

const events = await openDeliveries()
after(() => events.close())
afterEach(events.clear)
// A machine may be so busy that the next attempt has begun before a test looks: each failure is kept.
await events.query('create table failed (event_id uuid, failures int, status text, wait numeric)')
await events.query(`create function keep_failure() returns trigger language plpgsql as $$ begin
  insert into failed values
    (new.event_id, new.failures, new.status, extract(epoch from new.next_attempt_at - new.scheduled_at));
  return null; end $$`)
await events.query(`create trigger keep_failure after update on webhook_deliveries for each row
  when (new.failures > old.failures) execute function keep_failure()`)

test('a failure is tried again after 5 s, byte for byte the same, until it succeeds', async () => {
  let failures = 2
  const target = await events.receiver(() => (failures-- > 0 ? 500 : 200))
  const id = await events.endpoint(target.url)
  const eventId = await events.event()
  for (const n of [1, 2]) {
    assert.ok(await events.attempted(eventId, n))
    await events.hurry(eventId)
  }
  assert.ok(await events.became(eventId, 'succeeded'))
  const failed = await events.query('select failures, status, wait from failed where event_id = $1 order by failures', [
    eventId,
  ])
  assert.deepEqual(
    failed.map(({ failures, status, wait }) => `${failures} ${status} ${Math.round(Number(wait))}`),
    ['1 pending 5', '2 pending 300'],
  )
  const bodies = new Set(target.arrivals.map(({ body }) => body))
  assert.deepEqual([target.arrivals.length, bodies.size], [3, 1])
  const attempts = await events.query(
    'select number, status from webhook_attempts where event_id = $1 order by number',
    [eventId],
  )
  assert.deepEqual(
    attempts.map((row) => row.status),
    ['500', '500', '200'],
  )
  const [endpoint] = await events.query('select failing_since from webhook_endpoints where id = $1', [id])
  assert.equal(endpoint!.failing_since, null, 'a success ends the failing')
})

test('a delivery that fails at the end of the schedule has failed; it can be sent again, under the same id', async () => {
  let status = 503
  const target = await events.receiver(() => status)
  const { eventId } = await events.attemptedOnce(target)
  await events.query('update webhook_deliveries set failures = 9 where event_id = $1', [eventId])
  await events.hurry(eventId)
  assert.ok(await events.became(eventId, 'failed'))
  status = 200
  assert.equal(await events.app.db.tx((q) => sendAgain(q, PROJECT, eventId)), 1)
  assert.ok(await events.became(eventId, 'succeeded'))
  assert.deepEqual(new Set(target.arrivals.map(({ headers }) => headers['webhook-id'])), new Set([eventId]))
})

test('an event that is sent again during its last attempt is sent again, whatever that attempt ends with', async () => {
  let end: (() => void) | undefined
  const target = await events.receiver((_arrival, response) => {
    if (target.arrivals.length === 1) return 500
    if (target.arrivals.length > 2) return 200
    end = () => response.writeHead(500).end()
    return undefined
  })
  const { eventId } = await events.attemptedOnce(target)
  await events.query('update webhook_deliveries set failures = 9 where event_id = $1', [eventId])
  await events.hurry(eventId)
  assert.ok(await events.arrived(target, 2))
  // The endpoint is failing, so it gets nothing more until it has responded.
  assert.equal(await events.app.db.tx((q) => sendAgain(q, PROJECT, eventId)), 1)
  end!()
  assert.ok(await events.attempted(eventId, 2))
  assert.notEqual((await events.deliveryOf(eventId))!.status, 'failed')
  assert.ok(await events.became(eventId, 'succeeded'))
  assert.equal(target.arrivals.length, 3)
})

test('Retry-After puts off the next attempt', async () => {
  const target = await events.receiver((_arrival, response) => {
    response.writeHead(429, { 'retry-after': '600' }).end('later')
    return undefined
  })
  const { eventId } = await events.attemptedOnce(target)
  assert.match((await events.deliveryOf(eventId))!.wait!, /^00:(09:59\.9|10:00)/)
})

test('410 disables the endpoint; waiting events are delivered once it is enabled again', async () => {
  let status = 410
  const target = await events.receiver(() => status)
  const { id, eventId } = await events.attemptedOnce(target)
  const [off] = await events.query('select enabled, disabled_because from webhook_endpoints where id = $1', [id])
  assert.deepEqual(off, { enabled: 'f', disabled_because: 'gone' })
  await events.hurry(eventId)
  await events.endpoint((await events.receiver()).url)
  // The second is taken after all that was due with the first.
  for (let n = 0; n < 2; n += 1) assert.ok(await events.attempted(await events.event(), 1))
  const queued = await events.query('select event_id, attempts from webhook_deliveries where endpoint_id = $1', [id])
  assert.deepEqual(
    queued,
    [{ event_id: eventId, attempts: '1' }],
    'nothing is queued for an endpoint that is off, or sent',
  )
  status = 200
  await events.set(id, { enabled: true })
  assert.ok(await events.arrived(target, 2))
})

test('enabling an endpoint, or giving it another address, sends what waits for its next attempt at once', async () => {
  let status = 500
  const target = await events.receiver(() => status)
  const id = await events.endpoint(target.url)
  for (const change of [{ enabled: true }, { url: `${target.url}/other` }]) {
    status = 500
    const eventId = await events.event()
    assert.ok(await events.attempted(eventId, 1))
    if (change.enabled) await events.set(id, { enabled: false })
    await events.query(
      `update webhook_deliveries set next_attempt_at = db_clock() + interval '20 hours', failures = 8 where event_id = $1`,
      [eventId],
    )
    status = 200
    await events.set(id, change)
    assert.ok(await events.became(eventId, 'succeeded'))
  }
})

test('enabling an endpoint, or giving it another address, begins the schedule of what waits anew', async () => {
  const target = await events.receiver(() => 500)
  const id = await events.endpoint(target.url)
  for (const change of [{ enabled: true }, { url: `${target.url}/other` }]) {
    const eventId = await events.event()
    assert.ok(await events.attempted(eventId, 1))
    await events.query(
      `update webhook_deliveries set next_attempt_at = db_clock() + interval '20 hours', failures = 9 where event_id = $1`,
      [eventId],
    )
    if (change.enabled) await events.set(id, { enabled: false })
    await events.set(id, change)
    assert.ok(await events.attempted(eventId, 2))
    const { status, failures } = (await events.deliveryOf(eventId))!
    assert.deepEqual([status, failures], ['pending', '1'])
  }
})

test('an attempt keeps the URL to which it was made; one of an older program has the present URL', async () => {
  let status = 500
  const target = await events.receiver(() => status)
  const id = await events.endpoint(`${target.url}/first`)
  const eventId = await events.event()
  const pathsOf = async (group: string, operation: string, request: object) => {
    const { data } = (await runOperation(group, operation, events.app, request)) as { data: { url: string }[] }
    return data.map(({ url }) => new URL(url).pathname)
  }
  const attempts = () =>
    pathsOf('event', 'listAttempts', { params: { project_id: PROJECT, event_id: eventId }, query: {} })
  const deliveries = () =>
    pathsOf('delivery', 'listDeliveries', { params: { project_id: PROJECT }, query: { event_id: eventId } })
  assert.ok(await events.attempted(eventId, 1))
  assert.deepEqual(await deliveries(), ['/first'])
  status = 200
  await events.set(id, { url: `${target.url}/second` })
  assert.ok(await events.became(eventId, 'succeeded'))
  await events.set(id, { url: `${target.url}/third` })
  assert.deepEqual(await attempts(), ['/second', '/first'])
  assert.deepEqual(await deliveries(), ['/second'])
  await events.query('update webhook_attempts set url = null where event_id = $1', [eventId])
  assert.deepEqual(await attempts(), ['/third', '/third'])
  assert.deepEqual(await deliveries(), ['/third'])
})

test('an attempt in progress while the endpoint is enabled again, or gets another address, neither postpones nor ends its delivery', async () => {
  let isDown = true
  const held: (() => void)[] = []
  const target = await events.receiver((_, response) => {
    if (!isDown) return 200
    held.push(() => response.writeHead(500).end())
    return undefined
  })
  const id = await events.endpoint(target.url)
  for (const change of [{ enabled: true }, { url: `${target.url}/other` }]) {
    isDown = true
    const before = target.arrivals.length
    const eventId = await events.event()
    assert.ok(await events.arrived(target, before + 1))
    if (change.enabled) await events.set(id, { enabled: false })
    isDown = false
    await events.set(id, change)
    for (const fail of held.splice(0)) fail()
    assert.ok(await events.became(eventId, 'succeeded'))
    const [{ failures }] = (await events.query('select failures from webhook_deliveries where event_id = $1', [
      eventId,
    ])) as [{ failures: string }]
    assert.equal(failures, '0')
  }
})

test('5 days of failures disable the endpoint, 4 days do not', async () => {
  const target = await events.receiver(() => 500)
  const id = await events.endpoint(target.url)
  const off = async () =>
    (await events.query('select enabled, disabled_because from webhook_endpoints where id = $1', [id]))[0]
  for (const [days, expected] of [
    [4, { enabled: 't', disabled_because: null }],
    [5.01, { enabled: 'f', disabled_because: 'failing' }],
  ] as const) {
    await events.query(
      `update webhook_endpoints set failing_since = db_clock() - $2::float8 * interval '1 day' where id = $1`,
      [id, String(days)],
    )
    assert.ok(await events.attempted(await events.event(), 1))
    assert.deepEqual(await off(), expected)
  }
})

test('410 of an address that has been replaced in between does not disable the endpoint', async () => {
  const responses: (() => void)[] = []
  const old = await events.receiver((_, response) => {
    responses.push(() => response.writeHead(410).end())
    return undefined
  })
  const target = await events.receiver()
  const id = await events.endpoint(old.url)
  const eventId = await events.event()
  assert.ok(await events.arrived(old))
  await events.set(id, { url: target.url })
  for (const respond of responses) respond()
  assert.ok(await events.attempted(eventId, 2))
  const [endpoint] = await events.query('select enabled, failing_since from webhook_endpoints where id = $1', [id])
  assert.deepEqual(endpoint, { enabled: 't', failing_since: null })
  assert.ok(await events.became(eventId, 'succeeded'))
})

test('another address is not disabled for the failures of the one before', async () => {
  const target = await events.receiver(() => 500)
  const id = await events.endpoint('http://127.0.0.1:1')
  await events.query("update webhook_endpoints set failing_since = db_clock() - interval '6 days' where id = $1", [id])
  await events.set(id, { url: target.url })
  assert.ok(await events.attempted(await events.event(), 1))
  const [endpoint] = await events.query('select enabled from webhook_endpoints where id = $1', [id])
  assert.deepEqual(endpoint, { enabled: 't' })
})

test('reading or changing an endpoint waits for no delivery that is being made, and holds none up', async () => {
  const id = await events.endpoint('http://127.0.0.1:1')
  const params = { project_id: PROJECT, webhook_id: id }
  await events.app.db.tx(async (query) => {
    // As the foreign key of a new delivery does.
    await query('select from webhook_endpoints where id = $1 for key share', [id])
    assert.equal(((await runOperation('webhook', 'getWebhook', events.app, { params })) as { id: string }).id, id)
    await events.set(id, { kinds: [] })
  })
})
