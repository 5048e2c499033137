// Calls operations of the operator's API for pages and forms, with the checks of the API.

import type { App } from '../../app.ts'
import type { Actor } from '../../core/audit/audit.ts'
import { ApiError } from '../../lib/errors.ts'
import { bodyCheck } from '../../lib/http/body.ts'
import { type Input, isReading, type Operation, perform } from '../admin/operation.ts'
import { operations } from '../admin/operations.ts'
import { requireRight } from '../admin/reach.ts'
import type { Session } from './sessions.ts'

// biome-ignore lint/suspicious/noExplicitAny: the type of a result is the response schema of its operation.
export type Result = any

/** Performs the operation with this id, such as `getProject`. */
export type Call = (id: string, input?: Partial<Input>) => Promise<Result>

/** Returns the function that calls operations as this operator. */
export const openCall =
  (app: App, actor: Actor, session: Session): Call =>
  (id, input = {}) =>
    callOperation(app, actor, session, id, input)

async function callOperation(app: App, actor: Actor, session: Session, id: string, input: Partial<Input>) {
  const operation = operations.find((one) => one.id === id)
  if (!operation) throw new Error(`Bug: there is no operation ${id}.`)
  requireRight(operation, session.access)
  const whole: Input = { params: {}, query: {}, body: {}, ...input, access: session.access }
  checkInput(operation, whole)
  const result = await perform(operation, app, actor, whole)
  return typeof result === 'string' ? JSON.parse(result) : result
}

const checks = new Map<string, (value: unknown) => void>()

/** Checks the input as the API does, because a form can contain anything. */
function checkInput(operation: Operation, { params, query, body }: Input): void {
  const schema = isReading(operation) ? operation.query : operation.body
  const check = checks.get(operation.id) ?? bodyCheck(schema ?? {})
  checks.set(operation.id, check)
  check(isReading(operation) ? query : body)
  if (JSON.stringify([params, query, body]).includes('\\u0000'))
    throw new ApiError(400, 'invalid_value', 'A text must not contain the character U+0000.')
}

// For lists of keys and merchant accounts, of which one tenant has few. Further ones are not shown.
const MAX_ITEMS = 1000

/** Reads all pages of a list, up to a thousand items. */
export const allOf = async (call: Call, id: string, input: Partial<Input> = {}): Promise<Result[]> =>
  (await rowsOf(call, id, input, MAX_ITEMS)).items

/** Reads the pages of a list until it ends or has `max` items. */
export async function rowsOf(
  call: Call,
  id: string,
  input: Partial<Input>,
  max: number,
): Promise<{ items: Result[]; isWhole: boolean }> {
  const items: Result[] = []
  let cursor: string | undefined
  do {
    const query = { ...input.query, limit: 100, ...(cursor !== undefined && { cursor }) }
    const { data, pagination } = await call(id, { ...input, query })
    items.push(...data)
    cursor = pagination.next_cursor
  } while (cursor !== undefined && items.length < max)
  return { items, isWhole: cursor === undefined }
}
