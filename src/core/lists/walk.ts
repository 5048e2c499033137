// A walk through a list: the conditions of its filters, its order, and the counter that has its total.
import type { Param } from '../../lib/pg/types.ts'
import type { Filter, List } from './list.ts'

const SYNC_FILTERS = ['updated_at.from', 'updated_at.to'] as const

export interface Walk {
  list: List
  projectId: string
  given: Record<string, unknown>
  /** Ordered by updated_at, ascending. */
  bySync: boolean
  /** Whether an index finds the rows of a page directly. Otherwise the read may be slow, and does not use the pipelines. */
  indexed: boolean
  /** Whether its statements are prepared. Each connection keeps every plan, and there are many combinations of filters. */
  isPrepared: boolean
  /** The conditions of filters that leave only a few rows. */
  selective: string[]
  /** Identifies this walk's tenant, list and filters; see `writeCursor`. */
  binding: string
  conditions: string[]
  params: Param[]
  /** The key in `counts` that has the total, if there is one. */
  counter: Counter | undefined
}

export interface Counter {
  field: string
  /** Whether it counts the value of the only given filter. */
  filtered: boolean
}

/** The walk of a query that `listQuery` describes. */
export function startWalk(list: List, projectId: string, query: Record<string, unknown>): Walk {
  const given: Record<string, unknown> = {}
  for (const name of [...Object.keys(list.filters), ...SYNC_FILTERS]) {
    const value = query[`filter[${name}]`]
    if (value !== undefined) given[name] = value
  }
  const params: Param[] = [projectId]
  const conditions = [`${list.alias}.project_id = $1`]
  const selective: string[] = []
  for (const [name, value] of Object.entries(given)) {
    const filter = list.filters[name]
    const condition = filter
      ? filter.where(`$${params.length + 1}`)
      : syncCondition(list.alias, name, params.length + 1)
    if (condition === '') continue
    conditions.push(condition)
    if (filter?.selective) selective.push(condition)
    params.push(filter?.param ? filter.param(value as never) : (value as Param))
  }
  const byDefault = list.defaultFilter?.(given)
  const bySync = SYNC_FILTERS.some((name) => name in given)
  const filters = restricting(list, given)
  if (byDefault?.where) conditions.push(byDefault.where)
  return {
    list,
    projectId,
    given,
    bySync,
    indexed: isIndexed(filters, bySync),
    isPrepared: filters.length <= 1,
    selective,
    binding: JSON.stringify([projectId, list.name, given]),
    conditions,
    params,
    counter: counterOf(filters, bySync, byDefault?.counter),
  }
}

function syncCondition(alias: string, name: string, n: number): string {
  return `${alias}.updated_at ${name === 'updated_at.from' ? '>=' : '<'} $${n}`
}

/** The given filters that exclude anything, apart from the window. */
function restricting({ filters }: List, given: Record<string, unknown>): Filter[] {
  const used = Object.keys(given).flatMap((name) => filters[name] ?? [])
  return used.filter(({ where }) => where('$1') !== '')
}

/** Each filter alone has an index in the order of creation; those that are counted have one in the order of changes too. */
function isIndexed(filters: Filter[], bySync: boolean): boolean {
  if (filters.length === 0 || filters.some(({ selective }) => selective)) return true
  return filters.length === 1 && (!bySync || filters[0]!.counter !== undefined)
}

/** Undefined for windows and for combinations without a counter: their totals are counted from the rows. */
function counterOf(filters: Filter[], bySync: boolean, defaultCounter: string | undefined): Counter | undefined {
  if (bySync) return undefined
  if (filters.length === 0) return { field: defaultCounter ?? '', filtered: false }
  const counter = filters.length === 1 && defaultCounter === undefined ? filters[0]!.counter : undefined
  return counter === undefined ? undefined : { field: counter, filtered: true }
}

/** Whether the total is a sum of counters, or a count of one person's rows. */
export const isCountShort = ({ counter, selective }: Walk) => counter !== undefined || selective.length > 0
