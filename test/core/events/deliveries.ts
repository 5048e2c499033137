// Deliveries of events to receivers of a test: what arrived, what was recorded, and making the next attempt due.
import assert from 'node:assert/strict'
import { deliverEvents } from '../../../src/core/events/dispatcher.ts'
import { removeEndpoint, setEndpoint } from '../../../src/core/events/endpoints.ts'
import { deleteSome } from '../../../src/core/events/retention.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { openEvents, PROJECT } from '../../support/events.ts'
import { type Respond, startReceiver } from '../../support/receiver.ts'
import { eventually } from '../../support/time.ts'

export type Deliveries = Awaited<ReturnType<typeof openDeliveries>>

/** Shorter than a lease, and longer than a receiver of a test takes on a busy machine. */
export const DEADLINE_MS = 25_000

/** The app of `events.ts`, which delivers events until `close`. */
export async function openDeliveries({ clock = systemClock, deadlineMs = DEADLINE_MS } = {}) {
  const events = await openEvents()
  const { app } = events
  const receivers: { close(): Promise<unknown> }[] = []
  const stop = deliverEvents({ ...app, clock }, { deadlineMs })
  const made: string[] = []
  const query = async (text: string, params: string[] = []) => app.db.query(text, params)
  const endpoint: typeof events.endpoint = async (url, kinds, project = PROJECT) => {
    const id = await events.endpoint(url, kinds, project)
    if (project === PROJECT) made.push(id)
    return id
  }
  const attempted = (eventId: string, n: number) =>
    eventually(async () => (await query('select 1 from webhook_attempts where event_id = $1', [eventId])).length >= n)
  return {
    ...events,
    query,
    endpoint,
    async receiver(response?: Respond) {
      const receiver = await startReceiver(response)
      receivers.push(receiver)
      return receiver
    },
    /** Changes an endpoint. */
    set: (id: string, change: Parameters<typeof setEndpoint>[3]) =>
      app.db.tx((inTransaction) => setEndpoint(inTransaction, PROJECT, id, change, { allowPrivate: true })),
    /** Removes the endpoints that were made so far with all of their deliveries. */
    async clear() {
      for (const id of made.splice(0)) await app.db.tx((inTransaction) => removeEndpoint(inTransaction, PROJECT, id))
      while (await deleteSome(app.db));
    },
    /** A new event for a new endpoint, after the first attempt to deliver it. */
    async attemptedOnce({ url }: { url: string }) {
      const id = await endpoint(url)
      const eventId = await events.event()
      assert.ok(await attempted(eventId, 1))
      return { id, eventId }
    },
    arrived: (target: { arrivals: unknown[] }, n = 1) => eventually(() => target.arrivals.length >= n),
    /** The only delivery of an event; `wait` is the time from its last attempt to the next one. */
    deliveryOf: async (eventId: string) =>
      (
        await query('select *, next_attempt_at - scheduled_at as wait from webhook_deliveries where event_id = $1', [
          eventId,
        ])
      )[0],
    attempted,
    became: (eventId: string, status: string) =>
      eventually(async () => {
        const [row] = await query('select status from webhook_deliveries where event_id = $1', [eventId])
        return row?.status === status
      }),
    /** Waits until no event and no delivery is due. */
    idle: () =>
      eventually(async () => {
        const due = `select from events where pending union all select from webhook_deliveries where status = 'pending'`
        return (await query(due)).length === 0
      }),
    /** Makes a waiting delivery due now. */
    hurry: (eventId: string) =>
      query(`update webhook_deliveries set next_attempt_at = db_clock() where event_id = $1 and status = 'pending'`, [
        eventId,
      ]),
    async close() {
      await stop()
      for (const receiver of receivers) await receiver.close()
      await events.close()
    },
  }
}
