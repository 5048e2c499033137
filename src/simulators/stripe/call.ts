// One call of the API: its parameters and the routes that serve it.
import type { Form, FormField } from '../../lib/http/form.ts'
import { invalid, missing } from './errors.ts'
import type { EventType, Objects, State } from './state.ts'

export interface Call {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  params: Form
  /** The id in the path, or ''. */
  id: string
}

/** The context of a handler. */
export interface Dialect {
  state: State
  livemode: boolean
  /** Records an event with the object as it is now, and has it delivered; `previous` has the earlier values of changed fields. Returns the object. */
  emit<T extends object>(type: EventType, object: T, previous?: object): T
}

/** Runs a call within one turn of the event loop, so that no two calls interleave. Throws `StripeError`. */
export type Handler = (dialect: Dialect, call: Call) => object

export interface Route {
  method: Call['method']
  pattern: RegExp
  /** The parameters it takes besides `expand`. */
  params: readonly string[]
  handler: Handler
}

/** @param path with `:id` in place of an object's id */
export function route(method: Call['method'], path: string, params: readonly string[], handler: Handler): Route {
  return { method, pattern: new RegExp(`^${path.replace(':id', '([^/]+)')}$`), params, handler }
}

/** The call, and the route that serves it. */
export function match(routes: readonly Route[], method: string, path: string, params: Form) {
  for (const route of routes) {
    const found = route.method === method ? route.pattern.exec(path) : null
    if (found) return { call: { method: route.method, path, params, id: found[1] ?? '' }, route }
  }
  return undefined
}

/** Calls the API from within. */
export function perform<T = { id: string }>(
  dialect: Dialect,
  routes: readonly Route[],
  method: Call['method'],
  path: string,
  params: Form,
): T {
  const matched = match(routes, method, path, params)
  if (!matched) throw new Error(`Bug: no route for ${path}`)
  return matched.route.handler(dialect, matched.call) as T
}

/** A dialect for work that happened in the past: no events are recorded of it. */
export const quiet = ({ state, livemode }: Dialect): Dialect => ({
  state,
  livemode,
  emit: (_type, object) => object,
})

/** Stripe refuses parameters that an endpoint does not know. */
export function checkNames(call: Call, route: Route): void {
  const unknown = Object.keys(call.params).find((name) => name !== 'expand' && !route.params.includes(name))
  if (unknown !== undefined) {
    throw invalid(`Received unknown parameter: ${unknown}`, { code: 'parameter_unknown', param: unknown })
  }
}

export function text(call: Call, name: string): string | undefined {
  const value = call.params[name]
  if (value === undefined || typeof value === 'string') return value
  throw invalid(`Invalid string: ${name}`, { param: name })
}

/** A call whose parameters are the fields of this parameter; undefined if the parameter has none. */
export function within(call: Call, name: string): Call | undefined {
  const given = call.params[name]
  return typeof given === 'object' && !Array.isArray(given) ? { ...call, params: given } : undefined
}

export function required(call: Call, name: string): string {
  const value = text(call, name)
  if (value) return value
  throw invalid(`Missing required param: ${name}.`, { code: 'parameter_missing', param: name })
}

export function integer(call: Call, name: string): number | undefined {
  const value = text(call, name)
  if (value === undefined) return undefined
  if (!/^-?[0-9]{1,15}$/.test(value)) {
    throw invalid(`Invalid integer: ${value}`, { code: 'parameter_invalid_integer', param: name })
  }
  return Number(value)
}

export function flag(call: Call, name: string): boolean {
  const value = text(call, name)
  if (value === undefined || value === 'false') return false
  if (value === 'true') return true
  throw invalid(`Invalid boolean: ${value}`, { param: name })
}

export function oneOf<const Value extends string>(call: Call, name: string, values: readonly Value[]): Value | null {
  const value = text(call, name)
  if (value === undefined) return null
  const known = values.find((one) => one === value)
  if (known === undefined) throw invalid(`Invalid ${name}: must be one of ${values.join(', ')}`, { param: name })
  return known
}

/** The object's metadata after this call: named keys are set, empty ones removed. */
export function metadata(call: Call, before: Record<string, string> | null = {}): Record<string, string> {
  const given = call.params['metadata'] ?? {}
  if (given === '') return {}
  if (typeof given !== 'object' || Array.isArray(given)) throw invalid('Invalid hash', { param: 'metadata' })
  const merged: Record<string, FormField> = { ...before, ...given }
  if (Object.keys(merged).length > 50) throw invalid('Metadata can have up to 50 keys.', { param: 'metadata' })
  const kept = Object.entries(merged).filter(([, value]) => value !== '')
  for (const [key, value] of kept) {
    if (typeof value !== 'string' || value.length > 500 || key.length > 40) {
      throw invalid(`Invalid metadata: ${key}`, { param: `metadata[${key}]` })
    }
  }
  return Object.fromEntries(kept) as Record<string, string>
}

/** The object whose id is in the path. Throws 404. */
export function inPath<K extends keyof Objects>(dialect: Dialect, call: Call, kind: K): Objects[K] {
  return existing(dialect, kind, call.id, 'id', 404)
}

/** The object that a parameter names: 400 if it does not exist, as at Stripe. */
export function existing<K extends keyof Objects>(
  { state }: Dialect,
  kind: K,
  id: string,
  param: string,
  status = 400,
): Objects[K] {
  const object = state.find(kind, id)
  if (object === undefined) throw missing(kind, id, param, status)
  return object
}

/** Changes the description and the metadata of an object. */
export const describing =
  (kind: 'charge' | 'payment_intent'): Handler =>
  (dialect, call) => {
    const before = inPath(dialect, call, kind)
    const description = text(call, 'description') ?? before.description
    return dialect.state.put({ ...before, description, metadata: metadata(call, before.metadata) })
  }
