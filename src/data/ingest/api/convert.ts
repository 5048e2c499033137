// Turns the records of another service with this API into lines of an import, whatever of the published variations it has.
import type { Fields } from '../../../core/records/import/fields.ts'
import { priceSchema } from '../../../core/records/price.ts'
import { KINDS } from '../../../core/records/records.ts'
import { JsonNumber } from '../../../lib/json/read.ts'
import type { Line } from '../line-import.ts'
import { rawNumber } from '../stripe/convert.ts'

export type Json = Record<string, unknown>

/**
 * The kinds of objects that are read, each with the name of its table, which is that of its list at the service: a list of the API, or a
 * row of the report. `replies` are those of one session.
 */
export const NAMES = {
  funnel: 'funnels',
  experiment: 'experiments',
  product: 'products',
  profile: 'profiles',
  session: 'sessions',
  replies: 'replies',
  subscription: 'subscriptions',
  transaction: 'transactions',
  payment: 'payments',
}
export type ItemKind = keyof typeof NAMES

export interface Item {
  kind: ItemKind
  data: Json
}

/** What was read, and what it counts in the sums: its month and currency, and its amount as decimal text. */
export interface Noted {
  kind: ItemKind
  id: string
  label: string
  amount: string
}

export interface Converted {
  /** Missing for lines that count nothing. */
  noted?: Noted
  lines: Line[]
}

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)

/** The object in `{data, status, req_id}`, as some services wrap every response. */
export function unwrapped(body: unknown): unknown {
  return isObject(body) && 'data' in body && ('status' in body || 'req_id' in body) && !('pagination' in body)
    ? body.data
    : body
}

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** The id of an object in the API, or of the row of the report; undefined if it has none. */
export function idOf(kind: ItemKind, item: Json): string | undefined {
  if (kind === 'payment') return textOf(item.trx_id)?.toLowerCase()
  return textOf(kind === 'replies' ? item.session_id : item.id)
}

/** The lines of an object. Values of a wrong type are left for the import, which rejects the line and says why. */
export function convert(kind: ItemKind, item: Json, id: string): Converted {
  const plain = { noted: { kind, id, label: '', amount: '0' } }
  if (kind === 'replies') {
    const replies = repliesOf(id, item.replies)
    return { noted: { ...plain.noted, amount: String(replies.length) }, lines: replies }
  }
  const data = DATA[kind]?.(item) ?? item
  const line = lineOf(kind, data)
  const { currency, created_at } = line.data
  if (kind === 'subscription') return { noted: { ...plain.noted, label: `|${currency}` }, lines: [line] }
  if (kind === 'transaction') {
    const label = `${monthOf(created_at)}|${currency}`
    return { noted: { ...plain.noted, label, amount: decimalText(line.data.price) }, lines: [line] }
  }
  if (kind === 'payment') {
    const { psp_transaction_type, status, psp_date, trx_created_at, currency_code, amount } = line.data
    const label = `${monthOf(psp_date ?? trx_created_at)}|${String(currency_code).toUpperCase()}|${psp_transaction_type} ${status}`
    return { noted: { ...plain.noted, label, amount: decimalText(amount) }, lines: [line] }
  }
  return { ...plain, lines: [line] }
}

/** A line with the fields that the import has; others of the service are left out. */
export function lineOf(record: string, data: Json): Line {
  return { record, data: pick(FIELDS.get(record)!, data) }
}

const FIELDS: ReadonlyMap<string, Fields> = new Map(KINDS.map(({ name, fields }) => [name, fields]))

function pick(fields: Fields, data: Json): Json {
  const picked: Json = {}
  for (const { name, type } of fields) {
    const value = data[name]
    if (value === undefined) continue
    picked[name] =
      type.fields && isObject(value) ? pick(type.fields, value) : name.endsWith('_at') ? timeOf(value) : value
  }
  return picked
}

const LAST_SECOND = 253_402_300_799

/** Some services write times in details as whole seconds. */
const timeOf = (value: unknown) =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= LAST_SECOND
    ? new Date((value as number) * 1000).toISOString()
    : value

/** An item of a list with what its detail shows; a time as text is the more exact one. */
export function withDetail(item: Json, detail: Json | undefined): Json {
  const times = Object.entries(item).filter(([name, value]) => name.endsWith('_at') && textOf(value) !== undefined)
  const exact = times.filter(([name]) => Number.isSafeInteger(detail?.[name]))
  return { ...item, ...detail, ...Object.fromEntries(exact) }
}

const DATA: Partial<Record<ItemKind, (item: Json) => Json>> = {
  product: (item) => ({ ...item, prices: Array.isArray(item.prices) ? item.prices.map(priceOf) : item.prices }),
  // Where the visitor was is an object here, and flat elsewhere.
  session: (item) => ({
    ...item,
    postal_code: item.postal_code ?? item.postal,
    ...(isObject(item.attributes) && item.attributes),
  }),
  subscription: (item) => ({
    ...amounts(item, ['price', 'price_usd']),
    profile_id: nestedId(item, 'profile'),
    product_id: nestedId(item, 'product'),
    funnel_id: nestedId(item, 'funnel'),
    session_id: nestedId(item, 'session'),
    experiment_id: nestedId(item, 'experiment'),
  }),
  transaction: (item) => ({ ...amounts(item, ['price', 'price_usd']), funnel_id: nestedId(item, 'funnel') }),
  payment: (item) => ({
    ...amounts(item, ['amount', 'amount_usd']),
    ...clientFields(item),
    psp: textOf(item.psp) ?? 'unknown',
    psp_transaction_type: textOf(item.psp_transaction_type) ?? (item.status === 'refunded' ? 'refund' : 'sale'),
    pm_data_first6: digits(item.pm_data_first6, 6),
    pm_data_last4: digits(item.pm_data_last4, 4),
  }),
}

/** The id of an object that is nested in lists and details; undefined, which changes nothing, where neither is shown. */
function nestedId(item: Json, name: string): unknown {
  const nested = item[name]
  if (isObject(nested)) return nested.id
  return item[`${name}_id`] ?? (nested === null ? null : undefined)
}

const PRICE = (priceSchema as unknown as { properties: Record<string, { properties?: object }> }).properties
const TRIAL = PRICE.trial!.properties!

function priceOf(price: unknown): unknown {
  if (!isObject(price)) return price
  const known = only(PRICE, amounts(price, ['amount']))
  return isObject(known.trial) ? { ...known, trial: only(TRIAL, amounts(known.trial, ['price'])) } : known
}

const only = (known: object, data: Json): Json =>
  Object.fromEntries(Object.entries(data).filter(([name]) => Object.hasOwn(known, name)))

/** Amounts that are texts as numbers with the same digits. */
function amounts(item: Json, names: string[]): Json {
  const changed: Json = { ...item }
  for (const name of names) {
    const value = item[name]
    if (typeof value === 'string' && DECIMAL.test(value)) changed[name] = rawNumber(value)
  }
  return changed
}

/** The ids that the client's service gave have its short name in their own names: `meta_client_NAME_session_id`. */
const clientFields = (item: Json): Json =>
  Object.fromEntries(
    Object.entries(item).flatMap(([name, value]) => {
      const what = CLIENT_FIELD.exec(name)?.[1]
      return what === undefined ? [] : [[`meta_client_svc_${what}`, value]]
    }),
  )

const CLIENT_FIELD = /^meta_client_[a-z0-9]+_((?:project|session|price)_id)$/

const DECIMAL = /^(0|[1-9][0-9]{0,14})(\.[0-9]{1,9})?$/

/** Some services show more digits of a card, or fewer: the payment counts also without them. */
const digits = (value: unknown, count: number) =>
  typeof value === 'string' && new RegExp(`^[0-9]{${count}}$`).test(value) ? value : null

function repliesOf(session_id: string, replies: unknown): Line[] {
  if (!Array.isArray(replies)) return []
  return replies.filter(isObject).map(({ element, screen, state, value }) => ({
    record: 'reply',
    data: {
      session_id,
      ...lineOf('reply', { element, screen }).data,
      value: (isObject(state) ? state.value : value) ?? null,
    },
  }))
}

/** `2026-10`; '' for what is no time, whose line is rejected. */
const monthOf = (time: unknown) => (typeof time === 'string' ? monthIn(time) : '')

function monthIn(time: string): string {
  const ms = Date.parse(time)
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString().slice(0, 7)
}

/** The digits of a number; '0' for what is none, whose line is rejected. */
function decimalText(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return /^-?[0-9]{1,20}(\.[0-9]{1,20})?$/.test(text) ? text : '0'
}
