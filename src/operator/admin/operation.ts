// An operation of the operator's API. One declaration makes the route, its description, the command and the audit entry.
import type { App } from '../../app.ts'
import { type Actor, addEntry, audited, type Entry } from '../../core/audit/audit.ts'
import type { Access, Right } from '../../core/tenants/access.ts'
import { refuseLeaving } from '../../core/tenants/leaving.ts'
import { sharingSums } from '../../data/figures/combined.ts'
import { ApiError, invalidValue, Refusal, UsageError } from '../../lib/errors.ts'
import type { Json } from '../../lib/json/json.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { ObjectSchema, Schema, Typed } from '../../lib/shape/schema.ts'
import { requireTenant } from './exist.ts'
import { requireReach, requireRight } from './reach.ts'

type Fields = Record<string, unknown>

type NamesIn<Path> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

/** The parameters of a path: those that it names, if it is written out where the operation is declared. */
export type ParamsOf<Path extends string> = Record<string extends Path ? string : NamesIn<Path>, string>

/** The input of a call: parameters of the path, the query and the body as their schemas read them. */
export interface Input<Path extends string = string, Query = Fields, Body = Fields> {
  params: ParamsOf<Path>
  query: Query
  body: Body
  /** The same body with the digits of its numbers as they were sent, for amounts. If left out, `body` is exact. */
  exact?: Fields
  /** Of the operator who calls. */
  access: Access
}

interface Declared<I extends string, T, P extends string, In> {
  /** The operationId in OpenAPI. */
  id: I
  /** What a role must have for it. */
  right: Right
  /**
   * Whether the result has only what is within the caller's reach, so that it is also open to those who do not reach all that it
   * is about: a whole organization, or the installation if the path names no tenant.
   */
  narrows?: boolean
  /** Whether it concerns the organization of the project in the path as a whole, which those who reach single projects do not. */
  ofOrganization?: boolean
  /** The command: `webhook create`. */
  command: string
  /** The path below `/admin/v1`, with `:names` for parameters. */
  path: P
  tag: string
  summary: string
  description?: string
  /** The schema of the response. */
  response: Schema<T>
  /** Checks what the schemas cannot, before anything is looked up: a malformed request is a 400 for any tenant. */
  checkInput?(input: In, app: App): void
}

/** Changes nothing. */
export interface Reading<I extends string = string, T = unknown, P extends string = string, Q = Fields>
  extends Declared<I, T, P, Input<P, Q>> {
  method: 'GET'
  query?: ObjectSchema & Typed<Q>
  /** Whether it can be refused with a 409, which a change always can. */
  mayRefuse?: boolean
  /** The fields that the table of a list shows at the command line; --json has all. */
  columns?: readonly string[]
  /** The response as the command line shows it without --json, if it is another. */
  shown?(response: Record<string, unknown>): Record<string, unknown>
  run(app: App, input: Input<P, Q>): Promise<object | Json<object>>
}

/** Changes the database in one transaction with its audit entry, which the type requires. */
export interface Change<I extends string = string, T = unknown, P extends string = string, B = Fields>
  extends Declared<I, T, P, Input<P, Fields, B>> {
  method: 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  body?: ObjectSchema & Typed<B>
  change(query: Query, input: Input<P, Fields, B>, app: App): Promise<{ entry: Entry; result: object }>
}

/** Runs more than one transaction. Its audit entry is written first, so that the attempt is known whatever happens. */
export interface Act<I extends string = string, T = unknown, P extends string = string, B = Fields>
  extends Declared<I, T, P, Input<P, Fields, B>> {
  method: 'POST'
  body?: ObjectSchema & Typed<B>
  entry(input: Input<P, Fields, B>): Entry
  act(app: App, input: Input<P, Fields, B>, actor: Actor): Promise<object>
  /** Set if it cannot be undone: says what will happen, and the command asks for confirmation. It throws as `act` would. */
  describe?(app: App, input: Input<P, Fields, B>): Promise<string>
}

export type Operation = Reading | Change | Act

// Each declares an operation. Its input has the types of its path and schemas; its id and the type of its response are kept for callers in
// this process.
export const reading = <const I extends string, T, const P extends string, Q = Fields>(
  declared: Omit<Reading<I, T, P, Q>, 'method'>,
): Reading<I, T> => ({ ...declared, method: 'GET' }) as Reading<I, T>
export const change = <const I extends string, T, const P extends string, B = Fields>(declared: Change<I, T, P, B>) =>
  declared as Change<I, T>
export const act = <const I extends string, T, const P extends string, B = Fields>(declared: Act<I, T, P, B>) =>
  declared as Act<I, T>

export const isReading = (operation: Operation): operation is Reading => operation.method === 'GET'

/** Performs an operation for the API and for commands. */
export async function perform(
  operation: Operation,
  app: App,
  actor: Actor,
  input: Input,
): Promise<object | Json<object>> {
  requireRight(operation, input.access)
  try {
    operation.checkInput?.(input, app)
    await requireReach(app.db.query, operation, input)
    if (isReading(operation)) {
      await requireTenant(app.db.query, input.params)
      return await operation.run({ ...app, db: sharingSums(app.db) }, input)
    }
    if ('change' in operation) {
      const result = await audited(app, actor, async (query) => {
        await refuseLeaving(query, input.params)
        await requireTenant(query, input.params)
        return operation.change(query, input, app)
      })
      // The change may concern a key or its rate limit.
      app.keys.forget()
      return result
    }
    await refuseLeaving(app.db.query, input.params)
    await addEntry(app, actor, operation.entry(input))
    await requireTenant(app.db.query, input.params)
    return await operation.act(app, input, actor)
  } catch (error) {
    // Functions that are shared with commands throw the errors of commands.
    if (error instanceof UsageError) throw invalidValue(error.message)
    if (error instanceof Refusal) throw new ApiError(409, 'operation_refused', error.message)
    throw error
  }
}
