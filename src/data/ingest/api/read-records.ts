// Reads the records of a service: from the export that another Tundish has, or from the lists of the specification.
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../../../lib/errors.ts'
import { readExact } from '../../../lib/json/exact.ts'
import { type Item, type ItemKind, isObject, type Json, textOf } from './convert.ts'
import { detailed } from './details.ts'
import type { Ledger } from './ledger.ts'
import { hasList, type ListName, pagesOf } from './pages.ts'
import { type ApiSource, Broken, Unreachable } from './source.ts'
import type { Place } from './state.ts'

/** Items to store together, and the position behind them. */
export interface Piece {
  items: Item[]
  /** null behind the last one. */
  at: string | null
  /** The time up to which the service shows all changes, when it says so. */
  next?: string | null
  /** How many records the list has. */
  total?: [ItemKind, number]
  /** Objects that cannot be read, each with the reason. */
  odd?: [id: string, reason: string][]
  /** The service has lost the changes since this time, which were read: begin anew. */
  voidFrom?: string
  /** The items were read in this pass before, with less. */
  again?: true
}

export interface Reading {
  source: ApiSource
  ledger: Ledger
  place: Place
  /** Adds a sentence about what the service does not show. */
  missing(sentence: string): void
}

export interface RecordStep {
  name: string
  read(reading: Reading): AsyncIterable<Piece>
}

const EXPORT = '/export'
const MAX_BREAKS = 5

/** Asks for the export of a window without records. */
export const askExport = (source: ApiSource) => source.get(EXPORT, { to: '0001-01-01T00:00:01Z' })

/** Whether the service is another Tundish, whose export has all of each record. */
export async function hasExport(source: ApiSource): Promise<boolean> {
  const response = await askExport(source).catch((error) => {
    // Read by lists, a Tundish that is away for a moment would lose what only its export has.
    if (error instanceof Refusal && !(error instanceof Unreachable && error.isOutage)) return undefined
    throw error
  })
  return isObject(response?.body) && typeof response.body.horizon === 'string'
}

export const EXPORT_STEPS: readonly RecordStep[] = [{ name: 'records', read: readExport }]

const KINDS_OF: Record<string, ItemKind> = {
  funnel: 'funnel',
  experiment: 'experiment',
  product: 'product',
  profile: 'profile',
  session: 'session',
  session_replies: 'replies',
  subscription: 'subscription',
  transaction: 'transaction',
}
// The number of records stored together: what is repeated after a kill.
const BATCH = 2000

async function* readExport({ source, place }: Reading): AsyncGenerator<Piece> {
  let cursor = place.at
  let items: Item[] = []
  for (let breaks = 0; ; ) {
    try {
      let page: Item[] = []
      const query = { ...(place.since !== null && { from: place.since }), ...(cursor !== null && { cursor }) }
      let voidFrom: string | null = null
      const onHeaders = (headers: Headers) => {
        voidFrom = headers.get('x-void-from')
        checkProject(place, headers.get('x-project-id'))
      }
      for await (const text of source.lines(EXPORT, query, onHeaders)) {
        if (voidFrom !== null) return yield { items: [], at: null, voidFrom }
        const line = lineOf(source, text)
        const data = line.data
        if (typeof line.record === 'string' && isObject(data)) {
          const kind = KINDS_OF[line.record]
          if (kind) page.push({ kind, data })
          continue
        }
        if (typeof line.horizon === 'string') {
          yield { items: [...items, ...page], at: null, next: line.horizon }
          return
        }
        if (typeof line.cursor !== 'string') throw strange(source)
        cursor = line.cursor
        breaks = 0
        items.push(...page)
        page = []
        if (items.length < BATCH) continue
        yield { items, at: cursor }
        items = []
      }
      throw new Broken('it ended before its last line')
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      breaks += 1
      if (breaks > MAX_BREAKS)
        throw new Refusal(
          `${source.url}${EXPORT} broke off ${breaks} times in a row (${error.message}). Run the command again: it continues where it stopped.`,
        )
      await sleep(200 * breaks)
    }
  }
}

/** Of another project only what changed since the last pass would be read. */
function checkProject(place: Place, sent: string | null): void {
  if (sent === null) return
  place.project ??= sent
  if (place.project !== sent)
    throw new Refusal(
      `This import is of the project "${place.project}", and the key is of "${sent}": give a key of that project, or import into another project here.`,
    )
}

function lineOf(source: ApiSource, text: string): Json {
  try {
    const line = readExact(text)
    if (isObject(line)) return line
  } catch {
    // Below.
  }
  throw strange(source)
}

const strange = ({ url }: ApiSource) =>
  new Refusal(`${url}${EXPORT} sent a line that is not one of an export. What was read before it is stored.`)

/** By the specification; the lists of profiles and sessions, which it does not have, where the service has them. */
export const LIST_STEPS: readonly RecordStep[] = [
  listStep('funnels', { kind: 'funnel', path: '/funnels', query: { 'filter[deleted]': 'true' } }),
  listStep('products', { kind: 'product', path: '/products' }),
  listStep('profiles', { kind: 'profile', path: '/profiles' }, 'only those of subscriptions and transactions are read'),
  listStep('sessions', { kind: 'session', path: '/sessions' }, 'only those of subscriptions and transactions are read'),
  listStep('subscriptions', { kind: 'subscription', path: '/subscriptions' }),
  listStep('transactions', { kind: 'transaction', path: '/transactions' }),
  { name: 'payments of subscriptions', read: readLinks },
]

/** `without`: what it means that an optional list is not there. */
function listStep(name: string, list: ListName, without?: string): RecordStep {
  return {
    name,
    async *read({ source, place, missing }) {
      const { since } = place
      const wanted: ListName[] = []
      if (since !== null) wanted.push({ ...list, query: { ...list.query, 'filter[updated_at.from]': since } })
      if (list.query) wanted.push(list)
      const chosen = await firstOf(source, wanted)
      const plain: ListName = { kind: list.kind, path: list.path }
      if (!chosen && without !== undefined && !(await hasList(source, plain)))
        return missing(`The service has no list of ${name}: ${without}.`)
      let at = place.at
      for await (const page of pagesOf(source, chosen ?? plain, at)) {
        const odd: Piece['odd'] = []
        const items: Item[] = []
        for (const data of page.items) {
          if (textOf(data.id) === undefined) odd.push([name, 'has an item without an id'])
          else items.push(...(await detailed(source, list, data)))
        }
        if (page.odd > 0) odd.push([name, `has ${page.odd} items that are no objects`])
        at = page.next
        const isWhole = since === null && page.total !== undefined
        yield { items, at, odd, ...(isWhole && { total: [list.kind, page.total!] }) }
      }
    },
  }
}

/** The first of these lists that the service has. */
async function firstOf(source: ApiSource, lists: ListName[]): Promise<ListName | undefined> {
  for (const list of lists) if (await hasList(source, list)) return list
  return undefined
}

const NOBODY = 'no-subscription-has-this-id'
const TRANSACTIONS: ListName = { kind: 'transaction', path: '/transactions' }
const LINK_BATCH = 100

/** Which subscription a transaction paid for: items do not say it, only the filter does. */
async function* readLinks({ source, ledger, place, missing }: Reading): AsyncGenerator<Piece> {
  const of = (id: string): ListName => ({ ...TRANSACTIONS, query: { 'filter[subscription_id]': id } })
  const none = await source.get(TRANSACTIONS.path, { ...of(NOBODY).query, limit: '1' })
  const isFiltered = none.status === 404 || (isObject(none.body) && (none.body.data as unknown[])?.length === 0)
  if (!isFiltered)
    return missing(
      'The service cannot filter transactions by subscription: they are stored without their subscription.',
    )
  let after = place.at ?? ''
  for (;;) {
    const ids = await ledger.list('subscription', after, LINK_BATCH)
    if (ids.length === 0) return
    const items: Item[] = []
    for (const id of ids) {
      for await (const page of pagesOf(source, of(id), null))
        items.push(
          ...page.items.map((data) => ({ kind: 'transaction' as const, data: { ...data, subscription_id: id } })),
        )
    }
    after = ids.at(-1)!
    yield { items, at: after, again: true }
  }
}

/** The time of the service, a little earlier, since which changes are read in the next pass. */
export async function timeOf(source: ApiSource): Promise<string> {
  const { headers } = await source.get('/products', { limit: '1' })
  const ms = Date.parse(headers.get('date') ?? '')
  return new Date((Number.isNaN(ms) ? Date.now() : ms) - OVERLAP_MS).toISOString()
}

// Changes that the service stamped before, and committed later.
const OVERLAP_MS = 5 * 60_000
