// Pages of Stripe's list endpoints: newest first, `limit`, `starting_after`, `ending_before` and ranges of `created`.
import { type Call, type Dialect, inPath, integer, type Route, route, text } from './call.ts'
import { invalid, missing } from './errors.ts'
import { isReference, type Kind, type Objects } from './state.ts'

/** The parameters of every list. */
export const LIST_PARAMS = ['limit', 'starting_after', 'ending_before', 'created'] as const

interface List<T> {
  object: 'list'
  url: string
  has_more: boolean
  data: T[]
}

/**
 * The routes that read a kind: a list by the fields that a call names, and one object by its id.
 * @param show the object as the API shows it
 */
export function readRoutes<K extends Kind>(
  path: string,
  kind: K,
  fields: readonly string[],
  show: (object: Objects[K]) => { id: string; created?: number } = (object) => object,
): Route[] {
  return [
    route('GET', path, [...LIST_PARAMS, ...fields], (dialect, call) =>
      list(call, matching(dialect, call, kind, fields).map(show)),
    ),
    route('GET', `${path}/:id`, [], (dialect, call) => show(inPath(dialect, call, kind))),
  ]
}

/** The objects whose fields have the values that the call names, oldest first. An object that it names has to exist, as at Stripe. */
export function matching<K extends Kind>({ state }: Dialect, call: Call, kind: K, fields: readonly string[]) {
  const named = fields.filter((field) => text(call, field))
  for (const field of named)
    if (isReference(field) && field !== 'source' && !state.find(field, text(call, field)!))
      throw missing(field, text(call, field)!, field, 400)
  const indexed = named.find(isReference)
  const found = indexed ? state.related(kind, indexed, text(call, indexed)!) : state.all(kind)
  return found.filter((one) =>
    named.every((field) => (one as object as Record<string, unknown>)[field] === text(call, field)),
  )
}

/** @param objects oldest first, filtered by everything but `created` */
export function list<T extends { id: string; created?: number }>(call: Call, objects: readonly T[]): List<T> {
  const newestFirst = objects.filter(isCreatedWithin(call)).reverse()
  const limit = integer(call, 'limit') ?? 10
  if (limit < 1 || limit > 100) throw invalid('Invalid limit: must be between 1 and 100', { param: 'limit' })
  const [after, before] = [text(call, 'starting_after'), text(call, 'ending_before')]
  const response = (data: T[], has_more: boolean): List<T> => ({ object: 'list', url: call.path, has_more, data })
  if (before !== undefined) {
    const end = position(newestFirst, before, 'ending_before')
    return response(newestFirst.slice(Math.max(0, end - limit), end), end > limit)
  }
  const start = after === undefined ? 0 : position(newestFirst, after, 'starting_after') + 1
  return response(newestFirst.slice(start, start + limit), newestFirst.length > start + limit)
}

function position(objects: readonly { id: string }[], id: string, param: string): number {
  const at = objects.findIndex((object) => object.id === id)
  if (at < 0) throw invalid(`No such object: '${id}'`, { code: 'resource_missing', param })
  return at
}

const comparisons: Record<string, (created: number, bound: number) => boolean> = {
  gt: (created, bound) => created > bound,
  gte: (created, bound) => created >= bound,
  lt: (created, bound) => created < bound,
  lte: (created, bound) => created <= bound,
}

function isCreatedWithin(call: Call): (object: { created?: number }) => boolean {
  const given = call.params['created']
  if (given === undefined) return () => true
  if (Array.isArray(given)) throw invalid('Invalid created', { param: 'created' })
  const bounds = typeof given === 'string' ? { gte: given, lte: given } : given
  const tests = Object.entries(bounds).map(([name, bound]) => {
    const compare = Object.hasOwn(comparisons, name) ? comparisons[name] : undefined
    if (!compare || typeof bound !== 'string' || !/^[0-9]{1,12}$/.test(bound)) {
      throw invalid('Invalid timestamp: must be an integer Unix timestamp', { param: `created[${name}]` })
    }
    return (created: number) => compare(created, Number(bound))
  })
  return ({ created }) => created !== undefined && tests.every((test) => test(created))
}
