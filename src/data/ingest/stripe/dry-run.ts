// Tests an import from Stripe: reads everything and runs one import that stores nothing.

import type { App } from '../../../app.ts'
import { importLines } from '../line-import.ts'
import { type Context, lookupInMemory, type Referred, storedIds } from './context.ts'
import { idIn, type Line, type Target } from './convert.ts'
import { feesNowhere } from './fees.ts'
import { fitLines } from './fit.ts'
import { createdSince, secondsOf } from './since.ts'
import type { StripeSource } from './source.ts'
import { leaveOut, STEPS } from './steps.ts'
import { countWhenDone, emptyTally, type Rejecting, reject, type Tally } from './tally.ts'
import { forEachServed, whyLeft } from './unserved.ts'

interface Options {
  since: string | undefined
  signal: AbortSignal
  onProgress: (step: string, read: number) => void
  onRejected: (line: string) => void
}

/** Returns a tally whose figures have only Stripe's side, because nothing is stored. */
export async function dryRun(
  app: Pick<App, 'db' | 'log'>,
  source: StripeSource,
  target: Target,
  { since, signal, onProgress, onRejected }: Options,
): Promise<Tally> {
  const tally = emptyTally()
  const sets = () => new Set<string>()
  const coming = { profiles: sets(), products: sets(), subscriptions: sets(), transactions: sets() }
  const context: Context = {
    db: app.db,
    source,
    target,
    tally,
    onRejected,
    links: lookupInMemory(),
    checkouts: lookupInMemory(),
    fees: feesNowhere,
    keepLost: async () => {},
    async known(table, ids) {
      const stored = await storedIds(app.db, table, target.projectId, ids)
      return new Set(ids.filter((id) => stored.has(id) || coming[table].has(id)))
    },
  }
  async function* pages() {
    for (const step of STEPS) {
      const created = createdSince(step, secondsOf(since))
      try {
        for await (const objects of source.pages<{ id: string }>(step.path, { ...step.params, ...created })) {
          const converted: Line[] = []
          const convert = async (some: object[], rejecting: Rejecting) =>
            converted.push(...(await step.convert({ ...context, ...rejecting }, some as never[])))
          const left = await forEachServed(source, step, objects, async (some) => {
            await countWhenDone(context, (rejecting) => convert(some, rejecting))
          })
          for (const { object, error } of left) reject(context, object.id, whyLeft(error))
          fitLines(context, converted)
          for (const line of converted) note(coming, line)
          tally.read += objects.length
          onProgress(step.name, tally.read)
          yield converted
        }
      } catch (error) {
        leaveOut(step, context, error)
      }
    }
  }
  const options = {
    dryRun: true,
    signal,
    onRejected: (line: Line, _code: string, reason: string) => reject(context, idIn(line), reason),
  }
  const { erased } = await importLines(app, target, pages(), options)
  tally.erased += erased
  return tally
}

const TABLES: Record<string, Referred> = { profile: 'profiles', product: 'products', subscription: 'subscriptions' }

function note(coming: Record<Referred, Set<string>>, { record, data }: Line): void {
  const table = TABLES[record]
  if (table) coming[table].add(String(data.id))
}
