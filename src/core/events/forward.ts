// Forwards the new events of a project to one address without an endpoint: for trying webhooks on a development machine.
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Statement } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { eventBody } from './queue.ts'
import { type Outcome, resolverFor, send } from './send.ts'
import { deliveryHeaders } from './signature.ts'
import { signingKeys } from './signing-keys.ts'

interface Target {
  projectId: string
  url: string
  kinds: readonly string[]
  signal: AbortSignal
}

export interface Forwarded {
  id: string
  type: string
  outcome: Outcome
  durationMs: number
}

const PAUSE_MS = 300
const DEADLINE_MS = 10_000

/**
 * Posts each event that is committed from now on once, oldest first, with the body, headers and deadline of a delivery, to
 * any address. Yields the outcome of each. Calls `begin` when it is ready. Ends when the signal aborts.
 */
export async function* forwardEvents(
  { db, seal }: { db: Db; seal: Seal },
  { projectId, url, kinds, signal }: Target,
  begin: () => void,
): AsyncGenerator<Forwarded> {
  const rows = await db.query('select 1 from projects where id = $1', [projectId])
  if (rows.length === 0) throw new Refusal(`There is no project "${projectId}".`)
  // A transaction that began earlier may commit an event with an earlier stamp, so seen events are remembered by id.
  let seen = new Set((await db.query(RECENT, [projectId])).map(({ id }) => id!))
  begin()
  while (!signal.aborted) {
    const recent = await db.query(RECENT, [projectId])
    for (const event of recent) {
      if (signal.aborted || seen.has(event.id!) || !kinds.includes(event.type!)) continue
      const keys = (await signingKeys({ db, seal }, new Set([projectId]))).get(projectId)
      if (!keys)
        throw new Refusal(`The secret key of the project "${projectId}" cannot be decrypted: run "tundish doctor".`)
      if (keys.length === 0)
        throw new Refusal(
          `The project "${projectId}" has no full key, so its webhooks cannot be signed: "tundish keys create --project ${projectId}" makes one.`,
        )
      const body = eventBody(event)
      const beganMs = performance.now()
      const headers = deliveryHeaders(event.id!, Math.floor(Date.now() / 1000), body, keys)
      const outcome = await send(url, headers, body, { ...LOCAL, signal })
      yield { id: event.id!, type: event.type!, outcome, durationMs: performance.now() - beganMs }
    }
    seen = new Set(recent.map(({ id }) => id!))
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => {})
  }
}

const LOCAL = { allowPrivate: true, resolve: resolverFor({ allowPrivate: true }), deadlineMs: DEADLINE_MS }

// Longer than any transaction that writes events should take.
const RECENT: Statement = {
  name: 'find recent events',
  text: `
  select project_id, id, id as event_id, type, created_at, sequence, data from events
  where project_id = $1 and created_at > db_clock() - interval '1 hour' order by created_at, id`,
}
