// Stores what was read of a service: together with the records that it refers to, by the same import as files.
import type { App } from '../../../app.ts'
import type { Actor } from '../../../core/audit/audit.ts'
import { importLines, type Line } from '../line-import.ts'
import { idIn } from '../stripe/convert.ts'
import { fitLines } from '../stripe/fit.ts'
import { reject } from '../stripe/tally.ts'
import { type Converted, convert, type Item, idOf } from './convert.ts'
import { type Customers, nameCustomers, noteOwners, type Owners } from './customers.ts'
import { eraseErased } from './erased.ts'
import type { Ledger } from './ledger.ts'
import type { Piece } from './read-records.ts'
import { type Completing, complete, experimentIn, storedHere } from './references.ts'
import type { ApiSource } from './source.ts'
import type { ApiImportState } from './state.ts'

export interface Storing {
  app: Pick<App, 'db' | 'log' | 'audit' | 'config'>
  state: Pick<ApiImportState, 'organizationId' | 'projectId' | 'pass' | 'notes' | 'place'>
  source: ApiSource
  ledger: Ledger
  actor: Actor
  customers: Customers
  /** Of a dry run: whose the sessions and subscriptions are that were read. */
  owners?: Owners
  /** Whether the service is another Tundish, whose changes come with all that they refer to. */
  hasExport: boolean
  signal: AbortSignal
  emitEvents: boolean
  onRejected?: ((line: string) => void) | undefined
}

/** The lines of a piece with all that they refer to, and what to note of it. */
export async function prepare(storing: Storing, piece: Piece): Promise<Converted[]> {
  const { app, state, source, ledger, hasExport } = storing
  const { notes } = state
  const rejecting = { tally: notes, onRejected: storing.onRejected }
  for (const [id, reason] of piece.odd ?? []) reject(rejecting, id, reason)
  if (piece.total) notes.totals[piece.total[0]] ??= piece.total[1]
  const converted = piece.items.flatMap((item) => convertedOf(storing, item))
  const completing: Completing = {
    source,
    ledger,
    stored: storedHere(app, state.projectId),
    again: !hasExport && state.pass > 1,
    reject: (id, reason) => reject(rejecting, id, reason),
  }
  const all = await complete(completing, converted)
  const lines = all.flatMap((one) => one.lines)
  fitLines(rejecting, lines)
  if (storing.owners) noteOwners(storing.owners, lines)
  const payments = lines.filter(({ record }) => record === 'payment')
  if (payments.length === 0) return all
  const { lines: links, unknown } = await nameCustomers(app, state, storing.customers, payments, storing.owners)
  if (unknown > 0) notes.unnamed = (notes.unnamed ?? 0) + unknown
  for (const line of links) all.push({ lines: [line] })
  return all
}

function convertedOf({ state, hasExport, onRejected }: Storing, { kind, data }: Item): Converted[] {
  const id = idOf(kind, data)
  if (id === undefined) {
    reject({ tally: state.notes, onRejected }, kind, 'has no id')
    return []
  }
  const one = convert(kind, data, id)
  return kind === 'subscription' && !hasExport ? [...experimentIn(data), one] : [one]
}

/** Imports a piece. Its place is saved afterwards: a killed import repeats it, which changes nothing. */
export async function store(storing: Storing, piece: Piece): Promise<Converted[]> {
  const { app, state, signal, emitEvents } = storing
  const all = await prepare(storing, piece)
  const lines = all.flatMap((one) => one.lines)
  if (lines.length === 0) return all
  // After the first pass clients may sync already: changes are stamped now.
  const isFeed = state.pass > 1
  if (isFeed) keepPaidAt(lines)
  await eraseErased(storing, lines)
  const { erased } = await importLines(app, state, [lines], {
    live: isFeed,
    emitEvents,
    signal,
    onRejected: (line, _code, reason) =>
      reject({ tally: state.notes, onRejected: storing.onRejected }, idIn(line), reason),
  })
  state.notes.erased += erased
  return all
}

/** A live row gets the present time; the payment was made when the service says. */
function keepPaidAt(lines: Line[]): void {
  for (const { record, data } of lines) if (record === 'payment') data.psp_date ??= data.trx_created_at
}
