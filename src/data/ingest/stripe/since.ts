// An import with `since` stores nothing that is older, also where an event or a changed card names it.
import { DAY_S } from '../../../lib/days.ts'
import type { Params } from '../../../payments/providers/stripe/api.ts'
import type { Context } from './context.ts'
import { recordId, uuidOf } from './convert.ts'
import type { Step } from './steps.ts'

/** The instant in seconds, as Stripe has it; undefined without one. */
export const secondsOf = (since: string | null | undefined): number | undefined =>
  since ? Math.floor(Date.parse(since) / 1000) : undefined

// They are no records: they only link payments, which are left out by their own time.
const LINKING = ['invoices', 'checkout/sessions']
// An invoice that is sent, or whose payment fails at first, is paid up to some months after it was made.
const PAID_WITHIN_S = 100 * DAY_S

/** The filter of a step's list. */
export function createdSince({ name }: Step, sinceS: number | undefined): Params {
  if (sinceS === undefined) return {}
  return { created: { gte: LINKING.includes(name) ? sinceS - PAID_WITHIN_S : sinceS } }
}

/** Leaves out objects that were made before `since`, except those that are stored: they are kept up to date. */
export async function withoutOlder(context: Context, step: Step, objects: object[]): Promise<object[]> {
  const { sinceS } = context
  const all = objects as { id: string; created: number }[]
  if (sinceS === undefined || LINKING.includes(step.name)) return objects
  const older = all.filter(({ created }) => created < sinceS).map(({ id }) => id)
  if (older.length === 0) return objects
  const stored = await storedOf(context, step.name, older)
  return all.filter(({ id, created }) => created >= sinceS || stored.has(id))
}

const TABLES = { products: 'products', customers: 'profiles', subscriptions: 'subscriptions' } as const

const MOVEMENTS: Record<string, (id: string) => string[]> = {
  charges: (id) => [uuidOf('payment', id)],
  refunds: (id) => [uuidOf('payment', id), uuidOf('failure', id)],
  disputes: (id) => [uuidOf('payment', `${id} chargeback`)],
}

/** Those of these ids at Stripe whose objects are stored. */
async function storedOf({ db, known, target }: Context, step: string, ids: string[]): Promise<Set<string>> {
  const table = TABLES[step as keyof typeof TABLES]
  if (table) {
    const found = await known(table, ids.map(recordId))
    return new Set(ids.filter((id) => found.has(recordId(id))))
  }
  const rowsOf = MOVEMENTS[step]
  if (!rowsOf) return new Set()
  const rows = await db.query(
    'select trx_id from report_transactions where organization_id = $1 and trx_id = any($2::uuid[])',
    [target.organizationId, ids.flatMap(rowsOf)],
  )
  const found = new Set(rows.map(({ trx_id }) => trx_id!))
  return new Set(ids.filter((id) => rowsOf(id).some((one) => found.has(one))))
}
