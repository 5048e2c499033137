// An operation of the operator's side, declared once: from it come the route, its description, the command, and the audit.

import type { App } from '../app.ts'
import { type Actor, audited, type Entry } from '../audit/audit.ts'
import { ApiError, Refusal, UsageError } from '../lib/errors.ts'
import type { Query } from '../lib/pg/types.ts'
import type { ObjectSchema, Schema } from '../lib/shape/schema.ts'

/** What a caller brings: parts of the path, the query as its schema reads it, the body as its schema lets it pass. */
export interface Input {
  params: Record<string, string>
  query: Record<string, unknown>
  body: Record<string, unknown>
  /** The same body with the digits of its numbers as they were sent, for amounts. Left out: `body` has them. */
  exact?: Record<string, unknown>
}

interface Declared {
  /** Its name for programs, in OpenAPI. */
  id: string
  /** Its words at the command line: `webhook create`. */
  command: string
  /** Below `/admin/v1`, with `:names` of its parameters. */
  path: string
  tag: string
  summary: string
  description?: string
  answer: Schema
}

/** Changes nothing. Answers an object, or the JSON text of one. */
export interface Reading extends Declared {
  method: 'GET'
  query?: ObjectSchema
  /** The fields that the table of a list shows at the command line; --json has all. */
  columns?: readonly string[]
  run(app: App, input: Input): Promise<object | string>
}

/** Changes the database, in one transaction with the audit's entry: without an entry there is no way to declare it. */
export interface Change extends Declared {
  method: 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  body?: ObjectSchema
  change(query: Query, input: Input, app: App): Promise<{ entry: Entry; result: object }>
}

/** Does more than one transaction can hold. Its entry is written first: what was tried is known, whatever becomes of it. */
export interface Act extends Declared {
  method: 'POST'
  body?: ObjectSchema
  entry(input: Input): Entry
  act(app: App, input: Input, actor: Actor): Promise<object>
}

export type Operation = Reading | Change | Act

export const isReading = (operation: Operation): operation is Reading => operation.method === 'GET'

/** Does it, for whomever, from wherever. */
export async function perform(operation: Operation, app: App, actor: Actor, input: Input): Promise<object | string> {
  try {
    if (isReading(operation)) return await operation.run(app, input)
    if ('change' in operation) {
      const answer = await audited(app, actor, (query) => operation.change(query, input, app))
      // It may have been a key, or the limit of one.
      app.keys.forget()
      return answer
    }
    await audited(app, actor, async () => ({ entry: operation.entry(input), result: undefined }))
    return await operation.act(app, input, actor)
  } catch (error) {
    // What the shared verbs refuse in the words of the command line.
    if (error instanceof UsageError) throw new ApiError(400, 'invalid_value', error.message)
    if (error instanceof Refusal) throw new ApiError(409, 'operation_refused', error.message)
    throw error
  }
}
