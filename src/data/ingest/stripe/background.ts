// Runs imports from Stripe on the server, and keeps them up to date by Stripe's events and notifications.
import type { App } from '../../../app.ts'
import { Refusal } from '../../../lib/errors.ts'
import { isUnavailable } from '../../../lib/pg/errors.ts'
import { repeat } from '../../../lib/repeat.ts'
import { NotPermitted, ProviderError } from '../../../payments/providers/provider.ts'
import { Interrupted } from '../load.ts'
import { type Changed, changedBy, type StripeEvent } from './changed.ts'
import { type Held, holdImport } from './hold.ts'
import { refresh } from './refresh.ts'
import { contextFor, failureOf, type RunOptions, runImport, Stopped } from './run.ts'
import { Seen } from './seen.ts'
import { NotPermitted as ListNotPermitted, type SourceOptions, Unreachable } from './source.ts'
import { openSource } from './start.ts'
import { backgroundStates, findState, followersOf, type ImportState, isInBackground, saveState } from './state.ts'
import { emptyTally } from './tally.ts'

type Shared = Pick<App, 'db' | 'audit' | 'seal' | 'config' | 'clock' | 'log' | 'simulatorUrls' | 'providers'>

const PAUSE_MS = 2000
// Each holds a connection and reads at its own rate.
const AT_ONCE = 2
// Then an import leaves its place to those that wait: the lists of a large account take hours.
const TURN_MS = 5 * 60_000
// Some seconds. Notifications are tried again by themselves, and the next ones of the account wait for these.
const REFRESH_TRIES = 5

/**
 * Starts to run imports in the background. Each import is run by one process at a time, the one that holds its lock.
 * Returns the function that stops it.
 */
export function carryOutImports(app: Shared): () => Promise<void> {
  const running = new Map<string, Promise<void>>()
  const seen = new Map<string, Seen>()
  const options = { pauseMs: PAUSE_MS, failure: 'Looking for imports from Stripe failed.' }
  let waiting = 0
  const stop = repeat(app, options, async (signal) => {
    let left = 0
    // Those that were not run for the longest time are first.
    for (const state of await backgroundStates(app.db.query)) {
      const name = JSON.stringify([state.organizationId, state.projectId, state.merchantId])
      if (running.has(name)) continue
      if (running.size >= AT_ONCE) {
        left += 1
        continue
      }
      const events = seen.get(name) ?? new Seen()
      seen.set(name, events)
      const endMs = app.clock.monotonicMs() + TURN_MS
      const hasTurn = () => waiting === 0 || app.clock.monotonicMs() < endMs
      running.set(
        name,
        carryOut(app, state, { seen: events, hasTurn, signal }).finally(() => running.delete(name)),
      )
    }
    waiting = left
  })
  return async () => {
    await stop()
    await Promise.all(running.values())
  }
}

type Running = Pick<RunOptions, 'seen' | 'hasTurn' | 'signal'>

/** Continues an import, unless another process does. Never rejects. */
async function carryOut(app: Shared, due: ImportState, options: Running): Promise<void> {
  const { signal } = options
  const about = { project: due.projectId, merchant_account: due.merchantId }
  try {
    const held = await holdImport(app.db, due)
    if (!held) return
    try {
      const state = await findState(held.query, due)
      if (state && isInBackground(state))
        await goOn(app, held, state, options).catch((error) => giveUp(held, state, error, signal))
    } finally {
      await held.release()
    }
  } catch (error) {
    if (isOver(error, signal)) return
    if (error instanceof Unreachable) app.log.warn({ ...about, why: error.why }, 'Stripe cannot be read for an import.')
    else app.log.error({ ...about, err: error }, 'An import from Stripe failed.')
  }
}

async function goOn(app: Shared, held: Held, state: ImportState, options: Running): Promise<void> {
  const { signal } = options
  const about = { project: state.projectId, merchant_account: state.merchantId }
  const onRejected = (line: string) => app.log.warn({ ...about, object: line }, 'A change at Stripe was not imported.')
  const provider = await app.providers.of(state.organizationId, 'stripe', state.merchantId)
  const source = await openSource(app, state, signal, { takeTurn: provider?.takeTurn?.bind(provider) })
  await runImport(app, held, source, state, { ...options, once: true, onRejected }).finally(() => source.close())
}

/** Whether an import ended without a failure: by a lost or frozen connection to the database, or by a stop. */
const isOver = (error: unknown, signal: AbortSignal) =>
  signal.aborted || error instanceof Stopped || error instanceof Interrupted || isUnavailable(error)

/** Stores the failure: except after an outage of Stripe, the import is not retried without end. */
async function giveUp(held: Held, state: ImportState, error: unknown, signal: AbortSignal): Promise<never> {
  if (!isOver(error, signal)) await saveState(held.query, { ...state, ...failureOf(state, error) })
  throw error
}

interface RefreshOptions {
  takeTurn?: SourceOptions['takeTurn']
  onRejected?: (line: string) => void
  onStored?: (event: StripeEvent) => void
}

/**
 * Imports the objects of an account's events again, into every project that follows it. For notifications: the event is
 * only a hint, each object is read at Stripe. Returns how many objects were read; `onRejected` receives each that cannot be stored.
 * Throws `ProviderError` if one cannot be read, or not before the signal, and calls `onStored` before with the events that are done.
 */
export async function refreshFromStripe(
  app: Shared,
  account: { organizationId: string; merchantId: string },
  events: StripeEvent[],
  signal: AbortSignal,
  { takeTurn, onRejected, onStored }: RefreshOptions = {},
): Promise<number> {
  const changed = new Map(events.map((event) => [event, changedBy(event)]))
  const all = [...changed.values()].flat()
  const followers = all.length > 0 ? await followersOf(app.db.query, account) : []
  if (followers.length === 0) return 0
  const source = await openSource(app, account, signal, { takeTurn, tries: REFRESH_TRIES })
  const left = new Set<Changed>()
  const errors: unknown[] = []
  let count = 0
  try {
    for (const state of followers) {
      const context = contextFor(app, source, state, { tally: emptyTally(), onRejected })
      const result = await refresh(app, context, all, signal)
      count += result.count
      for (const one of result.left.keys()) left.add(one)
      if (result.error !== undefined) errors.push(result.error)
    }
    for (const [event, its] of changed) if (!its.some((one) => left.has(one))) onStored?.(event)
    if (errors.length > 0) throw errors.find((error) => !(error instanceof ListNotPermitted)) ?? errors[0]
  } catch (error) {
    if (error instanceof ListNotPermitted) throw new NotPermitted(error.permission)
    if (error instanceof Unreachable) throw new ProviderError(error.why)
    if (error instanceof Refusal || signal.aborted) throw new ProviderError(`could not be read: ${String(error)}`)
    throw error
  } finally {
    source.close()
  }
  return count
}
