// Imports a Stripe account: reads its lists one after the other, stores them page by page, and then follows its events.
import type { App } from '../../../app.ts'
import { DAY_MS } from '../../../lib/days.ts'
import { Refusal } from '../../../lib/errors.ts'
import { type Importing, Interrupted } from '../load.ts'
import { type Changed, changedBy, type StripeEvent } from './changed.ts'
import { type Context, storedOf } from './context.ts'
import { storedFees } from './fees.ts'
import type { Held } from './hold.ts'
import { type Refreshed, refresh } from './refresh.ts'
import { Seen } from './seen.ts'
import { createdSince, secondsOf } from './since.ts'
import { CursorGone, type StripeSource, Unreachable } from './source.ts'
import { type ImportState, isLeftBehind, isStopped, saveState, targetOptions } from './state.ts'
import { leaveOut, STEPS, type Step } from './steps.ts'
import { countStored, storeLines } from './store.ts'
import { countWhenDone, emptyTally, type Rejecting, reject } from './tally.ts'
import { forEachServed, whileOthersAreServed, whyLeft } from './unserved.ts'

export interface RunOptions {
  signal: AbortSignal
  /** Called when something was stored. */
  onProgress?: (state: ImportState) => void
  /** Called for an object that cannot be imported: its id and the reason. */
  onRejected?: (line: string) => void
  /** How long to wait before looking for new events. */
  pollMs?: number
  /** Looks for events once, and leaves following to a later run. */
  once?: boolean
  /** The events that earlier runs of the import have read. */
  seen?: Seen
  /** Whether lists are read further. Asked after each batch. */
  hasTurn?: () => boolean
}

/** The step after all lists: imports changes since the start, and with `follow` all later changes. */
const EVENTS = 'events'
// The number of objects stored by one import.
const BATCH = 500
const POLL_MS = 2000
// Stripe may list an event some moments after newer ones; seen events are skipped.
const OVERLAP_SECONDS = 120
// How many these moments are. In a burst their events fill several pages.
const LATE_SECONDS = 20

export const FIRST_STEP = STEPS[0]!.name
const fromTheStart = () => ({ step: FIRST_STEP, after: null, tally: emptyTally() })

/** Thrown when the import was stopped by an operator, or leaves its place to another one. */
export class Stopped extends Error {}

/**
 * Runs an import from its saved state, and returns when it is done; with `follow` only after the signal, also during a call.
 * Throws if the signal comes before. The state is saved after each batch: an import that was killed repeats at most one batch.
 */
export async function runImport(
  app: Shared,
  held: Held,
  source: StripeSource,
  state: ImportState,
  options: RunOptions,
): Promise<ImportState> {
  const run: Run = { app, held, source, state, options }
  try {
    if (isLeftBehind(state)) await save(run, { ...fromTheStart(), eventsSince: new Date().toISOString() })
    while (state.step !== EVENTS) await readLists(run)
    await catchUp(run)
    return state
  } catch (error) {
    if (options.signal.aborted && state.status === 'following') return state
    if (error instanceof Refusal && !(error instanceof Interrupted) && !options.signal.aborted) {
      Object.assign(state, failureOf(state, error))
      await saveState(held.query, state).catch(() => {})
    }
    throw error
  }
}

/** How an error is shown in the state of an import. The server continues it after an outage of Stripe; a command ends. */
export function failureOf({ background, status }: ImportState, error: unknown): Pick<ImportState, 'status' | 'error'> {
  if (background && error instanceof Unreachable)
    return { status, error: `Stripe has not been readable for some minutes (it ${error.why}). The server tries again.` }
  const sentence = error instanceof Refusal ? error.message : 'Internal error: see the log of the server.'
  return { status: 'failed', error: sentence }
}

type Shared = Importing & Pick<App, 'clock'>

interface Run {
  app: Shared
  held: Held
  source: StripeSource
  state: ImportState
  options: RunOptions
}

async function readLists(run: Run): Promise<void> {
  const { state } = run
  await save(run, { status: 'running', error: null })
  const place = STEPS.findIndex(({ name }) => name === state.step)
  // A newer program may have left it at a step that this one does not know.
  if (place === -1) return save(run, fromTheStart())
  try {
    for (const step of STEPS.slice(place)) {
      await readList(run, step).catch((error) => leaveOut(step, contextOf(run), error))
      await savePlace(run, { step: STEPS[STEPS.indexOf(step) + 1]?.name ?? EVENTS, after: null })
    }
  } catch (error) {
    if (!(error instanceof CursorGone)) throw error
    await save(run, fromTheStart())
  }
}

async function readList(run: Run, step: Step): Promise<void> {
  const { app, source, state, options } = run
  const { signal } = options
  const created = createdSince(step, secondsOf(state.options.since))
  const pages = source.pages<{ id: string }>(step.path, { ...step.params, ...created }, state.after ?? undefined)
  for await (const objects of batches(pages)) {
    await countWhenDone(contextOf(run), async (ofBatch) => {
      const storeSome = async (some: object[], rejecting: Rejecting) => {
        const context = { ...contextOf(run), ...rejecting }
        const lines = await step.convert(context, some as never[])
        await storeLines(app, context, lines, { live: false, signal })
        await countStored(app, context, step.name, lines)
      }
      const left = await forEachServed(source, step, objects, (some) =>
        countWhenDone(ofBatch, (rejecting) => storeSome(some, rejecting)),
      )
      for (const { object, error } of left) reject(ofBatch, object.id, whyLeft(error))
      ofBatch.tally.read += objects.length
    })
    await savePlace(run, { after: objects.at(-1)!.id })
    if (run.options.hasTurn?.() === false) throw new Stopped()
  }
}

/** Events are read since Stripe's time when the lists were begun: the clock of the database may be ahead of it. */
function savePlace(run: Run, place: Partial<Pick<ImportState, 'step' | 'after'>>): Promise<void> {
  const sinceMs = Math.min(Date.parse(run.state.eventsSince), run.source.begunMs)
  return save(run, { ...place, eventsSince: new Date(sinceMs).toISOString() })
}

async function* batches<T>(pages: AsyncIterable<T[]>): AsyncGenerator<T[]> {
  let batch: T[] = []
  for await (const page of pages) {
    batch.push(...page)
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** Reads objects again that changed since the import began; with `follow` until the signal. */
async function catchUp(run: Run): Promise<void> {
  const { app, state, options } = run
  const { follow } = state.options
  const { seen = new Seen() } = options
  for (let first = true; ; first = false) {
    await readEvents(run, seen)
    if (!follow) return save(run, { status: 'done', error: null })
    if (first) await save(run, { status: 'following', error: null })
    if (options.once) return
    await app.clock.sleep(options.pollMs ?? POLL_MS, options.signal)
    if (options.signal.aborted) return
    if (await isStopped(run.held.query, state)) throw new Stopped()
  }
}

/** The remembered part of an event, whose objects may be large. */
interface Noted {
  id: string
  created: number
  changed: Changed[]
}

/** Reads events, newest first, until a page has only seen ones that are not of the last moments. */
async function readEvents(run: Run, seen: Seen): Promise<void> {
  const { app, source, state, options } = run
  const from = Math.floor(Date.parse(state.eventsSince) / 1000)
  seen.forgetLost(from, state)
  const fresh: Noted[] = []
  const created = { gte: from - OVERLAP_SECONDS }
  for await (const page of source.pages<StripeEvent & Noted>('/v1/events', { created })) {
    const unseen = page.filter(({ id }) => !seen.has(id))
    fresh.push(...unseen.map((event) => ({ id: event.id, created: event.created, changed: changedBy(event) })))
    const isRecent = page.some((event) => event.created > source.nowMs / 1000 - LATE_SECONDS)
    if (unseen.length === 0 && !isRecent) break
  }
  if (fresh.length === 0) {
    // An account without events is not left behind.
    const yesterday = Date.now() - DAY_MS
    if (from * 1000 < yesterday - DAY_MS) await save(run, { eventsSince: new Date(yesterday).toISOString() })
    return
  }
  const left = fresh.filter(({ id }) => !seen.isStored(id))
  const changed = left.flatMap((event) => event.changed)
  const result = await refresh(app, { ...contextOf(run), tally: emptyTally() }, changed, options.signal)
  if (result.error !== undefined) {
    seen.addStored(
      left.filter((event) => !event.changed.some((one) => result.left.has(one))),
      state,
    )
    await leaveUnserved(run, result)
  }
  const times = fresh.map((one) => one.created).filter((createdS) => Number.isSafeInteger(createdS))
  const newest = times.reduce((one, other) => Math.max(one, other), from)
  seen.addRead(fresh, newest - OVERLAP_SECONDS)
  await save(run, { eventsSince: new Date(newest * 1000).toISOString() })
}

/** Leaves out the objects that Stripe does not serve. Throws if they are to be read again: after an outage, and by an import that follows. */
async function leaveUnserved(run: Run, { error, left, isOutage }: Refreshed): Promise<void> {
  if (isOutage || !(error instanceof Unreachable)) throw error
  if (run.state.options.follow) throw whileOthersAreServed(error)
  const reasons = new Map<string, string>()
  for (const [{ id }, why] of left) {
    if (!(why instanceof Unreachable)) throw why
    reasons.set(id, whyLeft(why))
  }
  await run.source.page('/v1/events', { limit: 1 })
  for (const [id, reason] of reasons) reject(contextOf(run), id, reason)
}

async function save(run: Run, change: Partial<ImportState>): Promise<void> {
  Object.assign(run.state, change)
  if (!(await saveState(run.held.query, run.state))) throw new Stopped()
  run.options.onProgress?.(run.state)
}

const contextOf = ({ app, source, state, options: { onRejected } }: Run): Context =>
  contextFor(app, source, state, { tally: state.tally, onRejected })

/** The context of an import that stores what it reads. */
export function contextFor(app: Shared, source: StripeSource, state: ImportState, rejecting: Rejecting): Context {
  const { organizationId, projectId, merchantId, options, step } = state
  const target = { organizationId, projectId, merchantId, ...targetOptions(options) }
  return {
    ...storedOf(app.db, target),
    fees: storedFees(app, target),
    source,
    target,
    sinceS: secondsOf(options.since),
    emitEvents: options.follow === true && step === EVENTS,
    ...rejecting,
  }
}
