// Delivers events to webhook endpoints: fans out, takes due deliveries, sends many concurrently; no endpoint delays another.
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Clock } from '../../lib/clock.ts'
import { watchClock } from '../../lib/pg/clock-watch.ts'
import type { Db } from '../../lib/pg/db.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import { repeat } from '../../lib/repeat.ts'
import type { Seal } from '../../lib/secrets.ts'
import { fanOut } from './fan-out.ts'
import { anythingDue, giveBack, type Lane, makeDue, settle, type Taken, take } from './queue.ts'
import { type Resolve, resolverFor, send } from './send.ts'
import { deliveryHeaders } from './signature.ts'
import { signingKeys } from './signing-keys.ts'

interface Shared {
  db: Db
  clock: Clock
  log: Logger
  seal: Seal
  config: Pick<Config, 'webhookAllowPrivate'>
}

export interface DeliveryOptions {
  resolve?: Resolve
  /** How long an attempt may last. */
  deadlineMs?: number
}

// A receiver has this long to respond.
const DEADLINE_MS = 10_000
// The pause between polls. It is most of the delay between a commit and its delivery.
const POLL_MS = 150
// The pause while there is work: long enough to take several deliveries at once.
const BUSY_POLL_MS = 20
// An attempt that lasts longer leaves the fast lane to others.
const SLOW_MS = 1000
// Concurrent attempts: those not known to be slow; those of failing endpoints; and all, slow ones included.
const FAST_LANE = 256
const FAILING_LANE = 128
const MAX_AT_WORK = 1024
// Concurrent attempts per endpoint: enough to be fast, too few to overload it. A failing endpoint gets one at a time.
const PER_ENDPOINT = 8
const PER_FAILING_ENDPOINT = 1
// An hour, because the repair reads all pending deliveries.
const READINGS_FOR_REPAIR = 1800
// Attempts still running when the program stops may take this long.
const STOP_MS = 2000

/** Starts to deliver, alongside any number of other processes; returns the function that stops it. */
export function deliverEvents(app: Shared, options: DeliveryOptions = {}): () => Promise<void> {
  const dispatcher = openDispatcher(app, options)
  const stopPolling = repeat(app, { pauseMs: POLL_MS, failure: 'Webhook deliveries failed.' }, async () => {
    const begunMs = app.clock.monotonicMs()
    const isBusy = await dispatcher.poll()
    // The pause is as long as the poll took, so that polling takes at most half of the time.
    return isBusy ? Math.max(BUSY_POLL_MS, app.clock.monotonicMs() - begunMs) : POLL_MS
  })
  const stopWatch = watchClock(app, { readings: READINGS_FOR_REPAIR }, () => makeDue(app.db))
  return async () => {
    await Promise.all([stopPolling(), stopWatch()])
    await dispatcher.close()
  }
}

interface AtWork {
  taken: Taken
  failing: boolean
  slow: boolean
}

function openDispatcher(app: Shared, { resolve, deadlineMs = DEADLINE_MS }: DeliveryOptions) {
  const { db, clock } = app
  const stop = new AbortController()
  const allowPrivate = app.config.webhookAllowPrivate
  const sendOptions = {
    allowPrivate,
    resolve: resolve ?? resolverFor({ allowPrivate }),
    deadlineMs,
    signal: stop.signal,
  }
  const atWork = new Map<AtWork, Promise<void>>()

  /** Takes and starts due deliveries; returns whether there were any. */
  async function poll(): Promise<boolean> {
    if (!(await anythingDue(db))) return false
    const more = await fanOut(db)
    let begun = 0
    for (const failing of [false, true]) {
      const taken = await take(db, lane([...atWork.keys()], failing))
      begun += taken.length
      startAll(taken, failing, await signingKeys(app, new Set(taken.map(({ project_id }) => project_id))))
    }
    return more || begun > 0
  }

  function startAll(taken: Taken[], failing: boolean, keys: Map<string, string[]>): void {
    for (const one of taken) {
      const ofProject = keys.get(one.project_id)
      if (ofProject) start({ taken: one, failing, slow: false }, ofProject)
      // Due again when its lease ends: another process may have the right master key.
      else app.log.error({ project_id: one.project_id }, UNREADABLE_KEY)
    }
  }

  function start(work: AtWork, keys: string[]): void {
    const timer = setTimeout(() => {
      work.slow = true
    }, SLOW_MS)
    const done = attempt(work.taken, keys)
      .catch((error) => {
        // An attempt that is not recorded is due again when its lease ends.
        if (!isUnavailable(error))
          app.log.error({ err: error }, 'The outcome of a webhook delivery could not be recorded.')
      })
      .finally(() => {
        clearTimeout(timer)
        atWork.delete(work)
      })
    atWork.set(work, done)
  }

  async function attempt(taken: Taken, keys: string[]): Promise<void> {
    const begun = clock.monotonicMs()
    const outcome = keys.length > 0 ? await sendSigned(taken, keys) : NO_KEY
    if (stop.signal.aborted && outcome.status === undefined) return giveBack(db, taken)
    await settle(db, taken, outcome, clock.monotonicMs() - begun)
  }

  function sendSigned(taken: Taken, keys: string[]) {
    const headers = deliveryHeaders(taken.event_id, taken.nowSeconds, taken.body, keys)
    return send(taken.url, headers, taken.body, sendOptions)
  }

  return {
    poll,
    async close() {
      const timer = setTimeout(() => stop.abort(), STOP_MS)
      await Promise.all(atWork.values())
      clearTimeout(timer)
    },
  }
}

// Counts as a failure, because nothing is sent unsigned: repeated on the usual schedule. The doctor names the project.
const NO_KEY = {
  status: undefined,
  error: 'The project has no secret key to sign with.',
  answer: undefined,
  retryAfter: undefined,
}

const UNREADABLE_KEY =
  'The secret key of a project cannot be decrypted, so its webhooks are not sent: run "tundish doctor".'

/** How many deliveries a lane may take now, given the attempts in progress. */
function lane(atWork: AtWork[], failing: boolean): Lane {
  const mine = atWork.filter((work) => work.failing === failing)
  const counted = failing ? mine.length : mine.filter(({ slow }) => !slow).length
  const free = (failing ? FAILING_LANE : FAST_LANE) - counted
  const busy = new Map<string, number>()
  // A slow attempt occupies all slots of its endpoint, which gets nothing more until it has responded.
  for (const { taken, slow } of atWork) {
    busy.set(taken.endpoint_id, (busy.get(taken.endpoint_id) ?? 0) + (slow ? PER_ENDPOINT : 1))
  }
  return {
    failing,
    limit: Math.min(free, MAX_AT_WORK - atWork.length),
    perEndpoint: failing ? PER_FAILING_ENDPOINT : PER_ENDPOINT,
    busy,
  }
}
