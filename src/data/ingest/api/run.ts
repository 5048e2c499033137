// Imports from another service with this API: pass after pass, each step from its saved place.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../../app.ts'
import type { Actor } from '../../../core/audit/audit.ts'
import { inTransaction } from '../../../lib/pg/in-transaction.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { type Converted, idOf, type Noted } from './convert.ts'
import { addOrders, type Customers } from './customers.ts'
import { type Ledger, ledgerOf } from './ledger.ts'
import { totalOf } from './pages.ts'
import { askExport, EXPORT_STEPS, hasExport, LIST_STEPS, type Piece, type RecordStep, timeOf } from './read-records.ts'
import { readReport } from './read-report.ts'
import { type ApiSource, Unreachable } from './source.ts'
import { type ApiImportState, beginAnew, saveState } from './state.ts'
import { type Storing, store } from './store.ts'

export interface ApiImport {
  app: Pick<App, 'db' | 'log' | 'audit' | 'config'>
  /** The connection that holds the turn of the import. */
  query: Query
  source: ApiSource
  /** The organization's billing API, if payments are read. */
  billing: ApiSource | undefined
  customers: Customers
  actor: Actor
  signal: AbortSignal
  follow: boolean
  pollMs?: number
  onProgress?: (step: string, read: number) => void
  onRejected?: (line: string) => void
  /** Called while the service cannot be reached during `follow`, and when it has lost changes. */
  onTrouble?: (sentence: string) => void
}

const POLL_MS = 5000
/** The position behind the last piece of a step. */
const READ = ''
/** The step behind all steps of a pass. */
const END = 'end'
const PAYMENTS = 'payments'

/** Runs passes from the saved place: one, or with `follow` one after the other until the signal. */
export async function runApiImport(given: ApiImport, state: ApiImportState): Promise<void> {
  const { source, billing, customers, query, signal } = given
  const isTundish = await hasExport(source)
  const ledger = ledgerOf(query, state)
  const storing = storingOf(given, state, ledger, isTundish)
  if (billing) await addOrders(billing, customers)
  try {
    for (;;) {
      await readPass(given, storing, state, isTundish)
      state.status = given.follow ? 'following' : 'done'
      await saveState(query, state)
      given.onProgress?.(state.status, state.notes.read)
      if (!given.follow) return
      await untilReachable(given, isTundish)
      if (signal.aborted) return
    }
  } catch (error) {
    if (given.follow && state.place.since !== null && signal.aborted) return
    if (!signal.aborted) await saveState(query, { ...state, status: 'failed' }).catch(() => {})
    throw error
  }
}

/** Pauses between two passes, and continues only when the service responds. */
async function untilReachable({ source, signal, pollMs = POLL_MS, onTrouble }: ApiImport, isTundish: boolean) {
  for (;;) {
    await sleep(pollMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    try {
      // A key that ended since is refused by the next pass, which says so.
      await (isTundish ? askExport(source) : timeOf(source))
      return
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof Unreachable)) throw error
      onTrouble?.(error.message)
    }
  }
}

async function readPass(given: ApiImport, storing: Storing, state: ApiImportState, isTundish: boolean): Promise<void> {
  const { source, billing, query } = given
  const { place, notes } = state
  const steps = stepsOf(source, billing, storing.ledger, state, isTundish)
  if (place.step === '')
    Object.assign(place, { step: steps[0]!.name, at: null, next: isTundish ? null : await timeOf(source) })
  const begun = place.step === END ? steps.length : steps.findIndex(({ name }) => name === place.step)
  for (const [n, { name, read }] of steps.entries()) {
    if (n < begun) continue
    let useless = 0
    // A run that was killed behind the last piece would read them all again.
    for await (const piece of place.at === READ ? [] : read()) {
      if (piece.voidFrom !== undefined) {
        given.onTrouble?.(`${source.url} has lost its changes since ${piece.voidFrom}: everything is read again.`)
        await beginAnew(query, state, piece.voidFrom)
        return readPass(given, storing, state, isTundish)
      }
      const converted = await store(storing, piece)
      const repeated = await keep(given, storing.ledger, state, piece, converted, name === PAYMENTS)
      useless = piece.items.length > 0 && repeated >= piece.items.length ? useless + 1 : 0
      if (useless === MOST_USELESS) {
        notes.missing.push(`The list of ${name} returned the same records again and again: it was not read to its end.`)
        break
      }
      given.onProgress?.(name, notes.read)
    }
    place.step = steps[n + 1]?.name ?? END
    place.at = null
    await saveState(query, state)
  }
  await askTotals(source, state)
  if (place.since === null && state.pass > 1) notes.anew = state.pass
  Object.assign(place, { step: '', since: place.next, next: null })
  state.pass += 1
  await saveState(query, state)
}

// Pages in a row whose every record was read in this pass already.
const MOST_USELESS = 20

interface Step {
  name: string
  read(): AsyncIterable<Piece>
}

export function stepsOf(
  source: ApiSource,
  billing: ApiSource | undefined,
  ledger: Ledger,
  { place, notes }: Pick<ApiImportState, 'place' | 'notes'>,
  isTundish: boolean,
): Step[] {
  const missing = (sentence: string) => {
    if (!notes.missing.includes(sentence)) notes.missing.push(sentence)
  }
  const records = (isTundish ? EXPORT_STEPS : LIST_STEPS).map(({ name, read }: RecordStep) => ({
    name,
    read: () => read({ source, ledger, place, missing }),
  }))
  return billing ? [...records, { name: PAYMENTS, read: () => readReport(billing, ledger, place) }] : records
}

/** Notes what was stored, and saves the place behind it, both or neither. Returns how many objects came again. */
async function keep(
  { query }: ApiImport,
  ledger: Ledger,
  state: ApiImportState,
  piece: Piece,
  converted: Converted[],
  isReport: boolean,
): Promise<number> {
  const { notes, place } = state
  const noted = new Map<string, Noted>()
  // What these refer to was read by its id, and may come again.
  const listed = new Set(piece.items.map(({ kind, data }) => `${kind} ${idOf(kind, data)}`))
  let repeated = 0
  for (const { noted: one } of converted) {
    if (!one) continue
    const key = `${one.kind} ${one.id}`
    if (noted.has(key) && listed.has(key)) repeated += repeat(notes, piece, key)
    noted.set(key, one)
  }
  await inTransaction(query, async () => {
    for (const key of await ledger.note([...noted.values()])) if (listed.has(key)) repeated += repeat(notes, piece, key)
    notes.read += piece.again ? 0 : piece.items.length
    if (isReport) place.report = piece.at ?? place.report
    else place.at = piece.at ?? READ
    if (piece.next) place.next = piece.next
    await saveState(query, state)
  })
  return repeated
}

const MAX_REPEATS = 100

function repeat(notes: ApiImportState['notes'], { again }: Piece, key: string): 0 | 1 {
  if (again) return 0
  notes.repeated += 1
  if (notes.repeats.length < MAX_REPEATS) notes.repeats.push(key)
  return 1
}

const COUNTED = [
  { kind: 'funnel', path: '/funnels', query: { 'filter[deleted]': 'true' } },
  { kind: 'product', path: '/products' },
  { kind: 'profile', path: '/profiles' },
  { kind: 'session', path: '/sessions' },
  { kind: 'subscription', path: '/subscriptions' },
  { kind: 'transaction', path: '/transactions' },
] as const

/** How many records the service says it has now. */
async function askTotals(source: ApiSource, { notes }: ApiImportState): Promise<void> {
  for (const list of COUNTED) {
    const total = await totalOf(source, list)
    if (total !== undefined) notes.totals[list.kind] = total
  }
}

export function storingOf(given: ApiImport, state: Storing['state'], ledger: Ledger, isTundish: boolean): Storing {
  const { app, source, customers, actor, signal, onRejected } = given
  return {
    app,
    state,
    source,
    ledger,
    actor,
    customers,
    hasExport: isTundish,
    signal,
    get emitEvents() {
      return given.follow && state.pass > 1
    },
    onRejected,
  }
}
