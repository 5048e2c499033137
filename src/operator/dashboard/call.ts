// Calls operations of the operator's API for pages and forms, with the checks of the API.

import type { App } from '../../app.ts'
import type { Actor } from '../../core/audit/audit.ts'
import { sharingSums } from '../../data/figures/combined.ts'
import { invalidValue } from '../../lib/errors.ts'
import { bodyCheck } from '../../lib/http/body.ts'
import { Json } from '../../lib/json/json.ts'
import type { Page } from '../admin/list.ts'
import { type Input, isReading, type Operation, perform } from '../admin/operation.ts'
import { operationOf, type Responses } from '../admin/operations.ts'
import { requireRight } from '../admin/reach.ts'
import type { Session } from './sessions.ts'

/** What an operation returns: `Response<'getProject'>`. */
export type Response<I extends keyof Responses> = Responses[I]

/** The operations that are lists in pages. */
export type ListId = { [I in keyof Responses]: Responses[I] extends Page<unknown> ? I : never }[keyof Responses]

/** An item of a list: `Item<'listOrders'>`. */
export type Item<I extends ListId> = Responses[I]['data'][number]

/** Performs the operation with this id, such as `getProject`. */
export interface Call {
  <I extends keyof Responses>(id: I, input?: Partial<Input>): Promise<Responses[I]>
  /** The same with all digits of amounts of finance, which may be text: those of large sums fit no double. */
  exactly<I extends keyof Responses>(id: I, input?: Partial<Input>): Promise<Exact<Responses[I]>>
}

const AMOUNTS = [
  ...(['gross', 'refunded', 'charged_back', 'corrected', 'net', 'net_reported', 'net_without_rate', 'fee'] as const),
  ...(['amount', 'amount_reported', 'dashboard', 'finance', 'difference'] as const),
]

/** A response with its amounts as numbers or as text. */
export type Exact<T> = T extends object
  ? { [K in keyof T]: K extends (typeof AMOUNTS)[number] ? T[K] | string : Exact<T[K]> }
  : T

/** Returns the function that calls operations as this operator, for one page. */
export function openCall(app: App, actor: Actor, session: Session): Call {
  const forReading = { ...app, db: sharingSums(app.db) }
  async function run(id: string, input: Partial<Input> = {}): Promise<object> {
    const operation = operationOf(id)
    requireRight(operation, session.access)
    const whole: Input = { params: {}, query: {}, body: {}, ...input, access: session.access }
    checkInput(operation, whole)
    return perform(operation, isReading(operation) ? forReading : app, actor, whole)
  }
  const call = async (id: string, input?: Partial<Input>) => {
    const result = await run(id, input)
    return result instanceof Json ? result.value() : result
  }
  const exactly = async (id: string, input?: Partial<Input>) => {
    const result = await run(id, input)
    return result instanceof Json ? exactValue(result) : result
  }
  return Object.assign(call, { exactly }) as Call
}

/** The response of an operation as `Call.exactly` has it. */
export const exactValue = <T>(json: Json<T>): Exact<T> => JSON.parse(json.text(), keepDigits as never)

/** A reviver; the engine passes it the text of each number. */
const keepDigits = (name: string, value: unknown, { source }: { source?: string }): unknown =>
  typeof value === 'number' && String(value) !== source && (AMOUNTS as string[]).includes(name) ? source : value

const checks = new Map<string, (value: unknown) => void>()

/** Checks the input as the API does, because a form can contain anything. */
function checkInput(operation: Operation, { params, query, body }: Input): void {
  const schema = isReading(operation) ? operation.query : operation.body
  const check = checks.get(operation.id) ?? bodyCheck(schema ?? {})
  checks.set(operation.id, check)
  check(isReading(operation) ? query : body)
  if (JSON.stringify([params, query, body]).includes('\\u0000'))
    throw invalidValue('A text must not contain the character U+0000.')
}

// For lists of keys and merchant accounts, of which one tenant has few. Further ones are not shown. Ended keys stay in their lists, so that
// hourly ones are thousands after a year.
const MAX_ITEMS = 10_000

/** Reads all pages of a list, up to ten thousand items. */
export const allOf = async <I extends ListId>(call: Call, id: I, input: Partial<Input> = {}): Promise<Item<I>[]> =>
  (await rowsOf(call, id, input, MAX_ITEMS)).items

/** Reads the pages of a list until it ends or has `max` items. */
export async function rowsOf<I extends ListId>(
  call: Call,
  id: I,
  input: Partial<Input>,
  max: number,
): Promise<{ items: Item<I>[]; isWhole: boolean }> {
  const items: Item<I>[] = []
  let cursor: string | undefined
  do {
    const query = { ...input.query, limit: 100, ...(cursor !== undefined && { cursor }) }
    const { data, pagination }: Page<Item<I>> = await call(id, { ...input, query })
    items.push(...data)
    cursor = pagination.next_cursor
  } while (cursor !== undefined && items.length < max)
  return { items, isWhole: cursor === undefined }
}
