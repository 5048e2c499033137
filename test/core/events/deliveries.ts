// Deliveries of events to receivers of a test: what arrived, what was recorded, and making the next attempt due.
import { deliverEvents } from '../../../src/core/events/dispatcher.ts'
import { removeEndpoint } from '../../../src/core/events/endpoints.ts'
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
  const query = async (text: string, params: string[] = []) => app.db.query(text, params)
  return {
    ...events,
    query,
    async receiver(response?: Respond) {
      const receiver = await startReceiver(response)
      receivers.push(receiver)
      return receiver
    },
    /** Removes an endpoint with all of its deliveries. */
    async remove(endpointId: string) {
      await app.db.tx((inTransaction) => removeEndpoint(inTransaction, PROJECT, endpointId))
      while (await deleteSome(app.db));
    },
    arrived: (target: { arrivals: unknown[] }, n = 1) => eventually(() => target.arrivals.length >= n),
    /** The only delivery of an event; `wait` is the time from its last attempt to the next one. */
    deliveryOf: async (eventId: string) =>
      (
        await query('select *, next_attempt_at - scheduled_at as wait from webhook_deliveries where event_id = $1', [
          eventId,
        ])
      )[0],
    attempted: (eventId: string, n: number) =>
      eventually(
        async () => (await query('select 1 from webhook_attempts where event_id = $1', [eventId])).length >= n,
      ),
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
