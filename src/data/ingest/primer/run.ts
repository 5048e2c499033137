// Imports the payments of a Primer account: reads them month by month, and stores each month before the next.
import type { App } from '../../../app.ts'
import { isUuid } from '../../../lib/ids.ts'
import { readDecimal, toMinor } from '../../../lib/money.ts'
import { countLost, storeLost } from '../../../payments/providers/lost-movements.ts'
import { chargesOf } from '../../../payments/providers/primer/movements.ts'
import { ownIds, type Payment } from '../../../payments/providers/primer/objects.ts'
import type { PrimerProvider } from '../../../payments/providers/primer/primer.ts'
import { ProviderError } from '../../../payments/providers/provider.ts'
import { fieldsOf } from '../../../payments/providers/transport.ts'
import { importLines, type Line } from '../line-import.ts'
import { idIn, recordId } from '../stripe/convert.ts'
import { fitLines } from '../stripe/fit.ts'
import { countPayments, KINDS } from '../stripe/store.ts'
import { add, reject, type Tally } from '../stripe/tally.ts'
import { externalIdOf, type Known, type PrimerTarget, paymentLines, personLines } from './convert.ts'

export interface PrimerImport {
  app: Pick<App, 'db' | 'log' | 'clock'>
  provider: Pick<PrimerProvider, 'page' | 'payment' | 'savedTokens'>
  target: PrimerTarget
  tally: Tally
  signal: AbortSignal
  /** Reads and checks everything, and stores nothing. */
  isDry: boolean
  onProgress(tally: Tally): void
  onRejected(line: string): void
  /** Called when everything created before `until` is stored. */
  save(until: string): Promise<void>
}

const WINDOW_MS = 30 * 86_400_000
// How many payments are read at once; most of the time is spent waiting for Primer.
const AT_ONCE = 8
// The rows of so many payments are stored together.
const BATCH = 250
// Retries for some minutes: after half a second at first, then twice as long each time.
const TRIES = 10
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 60_000

/**
 * Imports the payments created in a span of time. The order of Primer's list and the life of its cursors are not documented, so an
 * import that was killed begins the month again; what is stored already stays as it is.
 */
export async function importPayments(
  run: PrimerImport,
  { since, until }: { since: string; until: string },
): Promise<void> {
  const endMs = Date.parse(until)
  for (let atMs = Date.parse(since); atMs < endMs; atMs += WINDOW_MS) {
    const to = new Date(Math.min(atMs + WINDOW_MS, endMs)).toISOString()
    await importWindow(run, new Date(atMs).toISOString(), to)
    await run.save(to)
  }
}

async function importWindow(run: PrimerImport, from_date: string, to_date: string): Promise<void> {
  const { provider, tally } = run
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await retried(run, () => provider.page({ from_date, to_date, cursor }, run.signal))
    // A payment at the edge of two months is in both; the import changes nothing the second time, but sums would.
    const fresh = page.items.filter(({ id, date }) => {
      const isNew = typeof id === 'string' && !seen.has(id) && !(typeof date === 'string' && isAt(date, to_date))
      if (isNew) seen.add(id)
      return isNew
    })
    const others = await foreign(run, fresh)
    for (let n = 0; n < others.length; n += BATCH) await storePayments(run, others.slice(n, n + BATCH))
    tally.read += fresh.length
    run.onProgress(tally)
    cursor = page.next
  } while (cursor !== undefined)
}

const isAt = (date: string, instant: string) =>
  Date.parse(/Z|[+-]\d\d:?\d\d$/.test(date) ? date : `${date}Z`) === Date.parse(instant)

/** The ids of payments that Tundish did not make. Its own records are authoritative; those without an order here are kept as lost. */
async function foreign(run: PrimerImport, summaries: Record<string, unknown>[]): Promise<string[]> {
  const { app, target, tally } = run
  const all = summaries.map((one) => ({ id: String(one['id']), ...ownIds(fieldsOf(one)) }))
  const orders = all.flatMap(({ reference }) => reference ?? []).filter(isUuid)
  const rows = await app.db.query(
    'select order_id from orders where organization_id = $1 and order_id = any($2::uuid[])',
    [target.organizationId, orders],
  )
  const here = new Set(rows.map(({ order_id }) => order_id))
  const away = all.filter(({ reference }) => !here.has(reference?.toLowerCase()))
  const idsOf = (isOwn: boolean) => away.flatMap(({ id, key }) => ((key !== null) === isOwn ? id : []))
  const others = idsOf(false)
  tally.own += all.length - others.length
  await keepLost(run, idsOf(true))
  return others
}

/** Stores those of these payments that charged a card, and counts them: a backup has lost their orders, or another installation made them. */
async function keepLost(run: PrimerImport, ids: string[]): Promise<void> {
  const { app, target, tally, isDry } = run
  const payments = (await inParallel(ids, (id) => readOne(run, id))).filter((one) => one !== undefined)
  const charges = payments.flatMap(chargesOf).filter(({ isPending, hasFailed }) => !isPending && !hasFailed)
  const account = { ...target, psp: 'primer' }
  if (!isDry) await storeLost(app.db.query, account, charges)
  tally.lost = (tally.lost ?? 0) + (await countLost(app.db.query, account, charges))
}

async function storePayments(run: PrimerImport, ids: string[]): Promise<void> {
  const { app, target, tally, signal, isDry } = run
  const payments = (await inParallel(ids, (id) => readOne(run, id))).filter((one) => one !== undefined)
  const tokens = await savedTokens(run, payments)
  const profiles = await profilesOf(run, payments)
  const people = await peopleLines(run, payments, profiles)
  const lines = payments.flatMap((payment) =>
    converted(run, payment, {
      isSaved: payment.token !== null && tokens.has(payment.token),
      profileId: profiles.get(externalIdOf(payment)) ?? recordId(externalIdOf(payment)),
    }),
  )
  if (lines.length === 0) return
  fitLines(run, [...people, ...lines])
  for (const line of lines) count(tally, line)
  const { erased } = await importLines(app, target, [[...people, ...lines]], {
    ...{ live: false, dryRun: isDry, signal },
    onRejected: (line, _code, reason) => reject(run, idIn(line), reason),
  })
  tally.erased += erased
  const rows = lines.filter(({ record }) => record === 'payment').map(({ data }) => String(data['trx_id']))
  if (!isDry) await countPayments(app, tally, target.organizationId, rows)
}

/** A payment; undefined for one that cannot be read, which is named. */
async function readOne(run: PrimerImport, id: string): Promise<Payment | undefined> {
  try {
    return await retried(run, () => run.provider.payment(id, run.signal))
  } catch (error) {
    // What Primer sent cannot be read; an outage ends the import.
    if (!(error instanceof ProviderError) || mayPass(error)) throw error
    reject(run, id, error.message)
    return undefined
  }
}

function converted(run: PrimerImport, payment: Payment, known: Known): Line[] {
  try {
    return paymentLines(payment, run.target, known)
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error
    reject(run, payment.id, error.message)
    return []
  }
}

/** The tokens that are still saved for the customers of these payments: others cannot be charged. */
async function savedTokens(run: PrimerImport, payments: Payment[]): Promise<ReadonlySet<string>> {
  const customers = [...new Set(payments.flatMap(({ customer }) => customer ?? []))]
  const each = await inParallel(customers, (one) => retried(run, () => run.provider.savedTokens(one, run.signal)))
  return new Set(each.flatMap((tokens) => [...tokens]))
}

/** The profiles of the customers of these payments that are here: null for one without a profile. */
async function profilesOf({ app, target }: PrimerImport, payments: Payment[]) {
  const customers = await app.db.query<{ external_id: string; profile_id: string | null }>(
    'select external_id, profile_id from customers where organization_id = $1 and external_id = any($2)',
    [target.organizationId, payments.map(externalIdOf)],
  )
  return new Map(customers.map(({ external_id, profile_id }) => [external_id, profile_id]))
}

/** Profiles of people who have none here, and customers who are not here yet. */
async function peopleLines({ app, target }: PrimerImport, payments: Payment[], profiles: Map<string, string | null>) {
  const people = new Map(payments.map((payment) => [externalIdOf(payment), payment]))
  const here = await app.db.query('select id from profiles where project_id = $1 and id = any($2)', [
    target.projectId,
    [...people.keys()].map(recordId),
  ])
  const isHere = new Set(here.map(({ id }) => id))
  return [...people].flatMap(([id, payment]) =>
    profiles.get(id) ? [] : personLines(payment, { isCustomer: profiles.has(id), isProfile: isHere.has(recordId(id)) }),
  )
}

/** Adds a row to the sums of what Primer lists. */
function count(tally: Tally, { record, data }: Line): void {
  if (record !== 'payment') return
  const kind = KINDS[`${data['psp_transaction_type']} ${data['status']}`]!
  const currency = String(data['currency_code'])
  const month = String(data['psp_date']).slice(0, 7)
  const { rawJSON } = data['amount'] as { rawJSON: string }
  add(tally, 'stripe', { kind, month, currency }, 1, toMinor(readDecimal(rawJSON)!, currency)!)
}

async function inParallel<T, R>(items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let n = 0; n < items.length; n += AT_ONCE)
    results.push(...(await Promise.all(items.slice(n, n + AT_ONCE).map(work))))
  return results
}

/** Whether a later call may succeed: not for a key that is rejected, or an object that cannot be read. Another body is that of a proxy. */
const mayPass = ({ message }: ProviderError) =>
  !/^returned (status 4(?!08|09|29)\d\d(?! with a body)|a|an|\d)/.test(message)

async function retried<T>({ app, signal }: PrimerImport, call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted()
    try {
      return await call()
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof ProviderError) || !mayPass(error) || attempt === TRIES) throw error
      await app.clock.sleep(Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS), signal)
    }
  }
}
