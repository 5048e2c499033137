// Tests an import from another service: reads everything and runs one import that stores nothing.
import { importLines, type Line } from '../line-import.ts'
import { idIn } from '../stripe/convert.ts'
import { reject } from '../stripe/tally.ts'
import type { Noted } from './convert.ts'
import { addOrders } from './customers.ts'
import { ledgerInMemory } from './ledger.ts'
import { hasExport } from './read-records.ts'
import { type ApiImport, stepsOf, storingOf } from './run.ts'
import type { ApiImportState } from './state.ts'
import { prepare } from './store.ts'

/** Reads and checks everything, and stores nothing: one import that is rolled back. */
export async function dryRunApi(
  given: Omit<ApiImport, 'query' | 'follow'>,
  state: Pick<ApiImportState, 'organizationId' | 'projectId' | 'pass' | 'notes' | 'place'>,
): Promise<Noted[]> {
  const { app, source, billing, customers, signal, onRejected, onProgress } = given
  const isTundish = await hasExport(source)
  const ledger = ledgerInMemory()
  const storing = storingOf({ ...given, follow: false } as ApiImport, state, ledger, isTundish)
  storing.owners = new Map()
  if (billing) await addOrders(billing, customers)
  const read = new Map<string, Noted>()
  async function* lines(): AsyncGenerator<Line[]> {
    for (const step of stepsOf(source, billing, ledger, state, isTundish)) {
      for await (const piece of step.read()) {
        const converted = await prepare(storing, piece)
        const noted = converted.flatMap((one) => one.noted ?? [])
        await ledger.note(noted)
        for (const one of noted) read.set(`${one.kind} ${one.id}`, one)
        state.notes.read += piece.again ? 0 : piece.items.length
        onProgress?.(step.name, state.notes.read)
        const all = converted.flatMap((one) => one.lines)
        for (const { record, data } of all) if (record === 'profile') data.anonymized_at = null
        yield all
      }
      state.place.at = null
    }
  }
  const options = {
    dryRun: true,
    signal,
    onRejected: (line: Line, _code: string, reason: string) =>
      reject({ tally: state.notes, onRejected }, idIn(line), reason),
  }
  const { erased } = await importLines(app, state, lines(), options)
  state.notes.erased += erased
  return [...read.values()]
}
