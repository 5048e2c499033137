// A day's traffic to a receiver that fails a third of the time and is restarted, as is Tundish: every event, once by id.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { eventTypes } from '../../../src/core/events/catalogue.ts'
import { deliverEvents } from '../../../src/core/events/dispatcher.ts'
import { freePort } from '../../support/cli.ts'
import { openEvents, PROJECT } from '../../support/events.ts'
import { type Respond, startReceiver } from '../../support/receiver.ts'
import { eventually } from '../../support/time.ts'

const EVENTS = 300
const SEED = 20260131

const events = await openEvents()
after(() => events.close())

/** Numbers from 0 to 1 that are the same at every run. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

test('every event of a day arrives, and is handled once by its id', async () => {
  const random = numbers(SEED)
  const webhook = new Webhook(`whsec_${Buffer.from(events.secretKey).toString('base64')}`)
  const handled = new Map<string, number>()
  const failures = { refused: 0, silent: 0, broken: 0, unverified: 0 }
  // What the receiver remembers survives its restarts, as its own database would.
  const receive: Respond = ({ headers, body }, response) => {
    try {
      webhook.verify(body, headers as Record<string, string>)
    } catch {
      failures.unverified += 1
      return 401
    }
    const luck = random()
    const id = String(headers['webhook-id'])
    if (luck < 0.11) {
      failures.refused += 1
      return 503
    }
    // The worst: it has done the work and does not say so.
    if (!handled.has(id)) handled.set(id, 0)
    handled.set(id, handled.get(id)! + 1)
    if (luck < 0.22) {
      failures.broken += 1
      response.socket!.destroy()
      return undefined
    }
    if (luck < 0.33) {
      failures.silent += 1
      return undefined
    }
    return 204
  }

  const port = await freePort()
  let receiver = await startReceiver(receive, port)
  await events.endpoint(receiver.url)
  let worker = deliverEvents(events.app, { deadlineMs: 300 })
  const ids: string[] = []
  for (let n = 0; n < EVENTS; n += 1) {
    ids.push(await events.event({ type: eventTypes[n % (eventTypes.length - 1)]!, object_id: `object-${n % 40}` }))
    if (n === 100 || n === 200) {
      await receiver.close()
      receiver = await startReceiver(receive, port)
    }
    if (n === 150) {
      await worker()
      worker = deliverEvents(events.app, { deadlineMs: 300 })
    }
  }
  const done = await eventually(async () => {
    // The night passes: whatever waits for its next attempt is due.
    await events.app.db.query(
      `update webhook_deliveries set next_attempt_at = db_clock() where status = 'pending' and failures > 0
         and next_attempt_at > db_clock() + interval '1 second' and attempts = (
           select count(*) from webhook_attempts a where a.event_id = webhook_deliveries.event_id)`,
    )
    const [left] = await events.app.db.query(
      `select (select count(*) from webhook_deliveries where status <> 'succeeded') +
         (select count(*) from events where pending) as n`,
    )
    return left!.n === '0'
  })
  await worker()
  await receiver.close()
  assert.ok(done)
  assert.deepEqual([...handled.keys()].sort(), [...ids].sort())
  assert.equal(failures.unverified, 0)
  for (const [kind, n] of Object.entries(failures)) assert.ok(kind === 'unverified' || n > EVENTS / 20, `${kind}: ${n}`)
  assert.ok(
    [...handled.values()].some((times) => times > 1),
    'some came more than once, under the same id',
  )
  const [row] = await events.app.db.query('select count(*) as n from webhook_deliveries where project_id = $1', [
    PROJECT,
  ])
  assert.equal(row!.n, String(EVENTS))
})
