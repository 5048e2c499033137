// The pages that can be requested of a list, from its description, and what their plans must not do.
import assert from 'node:assert/strict'
import type { Node } from '../../support/plans.ts'
import type { Operation } from './description.ts'

export interface PlanCase {
  path: string
  table: string
  filters: Record<string, string>
  limit: number
}

// For each filter a value that most rows have, if there is one, and a value that few rows have.
const VALUES: Record<string, string[]> = {
  status: ['active', 'unpaid'],
  psp: ['stripe', 'rare'],
  funnel_id: ['funnel-1', 'funnel-rare'],
  product_id: ['product-1', 'product-rare'],
  created_after: ['2000-01-01T00:00:00Z', '2025-12-31T23:00:00Z'],
  title: ['quiz', 'rare'],
  type: ['default', 'rare'],
  deleted: ['true', 'false'],
  alias: ['alias-7'],
  profile_id: ['pro-7'],
  subscription_id: ['sub-7'],
  email: ['person7@example.com'],
}
// Filters by a person or by one of their objects: these have few rows, which may be sorted and filtered.
const SELECTIVE = ['profile_id', 'subscription_id', 'email']
const OF_A_PERSON = 250
// Each of these has its own index for windows.
const WITH_WINDOW = ['status', 'psp', 'funnel_id', 'product_id']
const WINDOWS: PlanCase['filters'][] = [
  { 'updated_at.from': '2000-01-01T00:00:00Z' },
  { 'updated_at.to': '2030-01-01T00:00:00Z' },
  { 'updated_at.from': '2025-12-30T00:00:00Z', 'updated_at.to': '2025-12-30T06:00:00Z' },
  { 'updated_at.from': '2000-01-01T00:00:00Z', 'updated_at.to': '2030-01-01T00:00:00Z' },
]

export const isList = ({ method, path, parameters }: Operation) =>
  method === 'GET' && /^\/(public|\{org_id\})\/v1\//.test(path) && parameters.some(({ name }) => name === 'limit')

/** Each filter alone, the window alone, each filter with the window, and pairs of filters; at the default limit and the largest. */
export function casesOf({ path, parameters }: Operation): PlanCase[] {
  const names = parameters.flatMap(({ name }) => /^filter\[(.+)\]$/.exec(name)?.[1] ?? [])
  const filters = names.filter(isFilter)
  const singles = filters.flatMap((name) => {
    const values = VALUES[name]
    assert.ok(values, `${path} has a filter that has no values here: ${name}`)
    return values.map((value) => ({ [name]: value }) as PlanCase['filters'])
  })
  const windows = filters.length < names.length ? WINDOWS : []
  const both = singles.flatMap((single) => windows.map((window) => ({ ...single, ...window })))
  const often = filters.map((name) => ({ [name]: VALUES[name]![0]! }) as PlanCase['filters'])
  const pairs = often.flatMap((one, n) => often.slice(n + 1).map((other) => ({ ...one, ...other })))
  const { maximum } = parameters.find(({ name }) => name === 'limit')!.schema
  const name = path.split('/').at(-1)!
  const table = TABLES[name] ?? name
  const cases = (limit: number, ...filters: PlanCase['filters'][]) =>
    filters.map((filters) => ({ path, table, filters, limit }))
  const exact = [{}, ...singles, ...windows, ...both]
  return [...cases(20, ...exact, ...pairs), ...cases(maximum, ...exact)]
}

/** The cases of the payment report, whose filters are UUIDs by number. */
export const REPORT_CASES: PlanCase[] = [{}, { subs_id: '7' }, { order_id: '7' }, { oneoff_id: '7' }].flatMap(
  (filters) =>
    [20, 500].map((limit) => ({
      path: '/{org_id}/v1/transaction_report',
      table: 'report_transactions',
      filters: filters as PlanCase['filters'],
      limit,
    })),
)

// Lists whose items are rows of another table.
const TABLES: Record<string, string> = { replies: 'sessions' }

const isFilter = (name: string) => !name.startsWith('updated_at')

/** The faults of a plan: it reads a whole table, sorts a growing number of rows, or reads rows that are not on the page. */
export function faultsOf({ table, filters, limit }: PlanCase, nodes: Node[]): string[] {
  const names = Object.keys(filters).filter(isFilter)
  const windowed = names.length < Object.keys(filters).length
  const selective = names.some((name) => SELECTIVE.includes(name))
  // Funnels are few; deleted ones are skipped in the order of the index.
  const maySift = table === 'funnels' || (windowed && names.some((name) => !WITH_WINDOW.includes(name)))
  const rules = {
    read: selective ? OF_A_PERSON : limit + 1,
    sort: selective ? OF_A_PERSON : limit + 1,
    sift: selective ? 2 * OF_A_PERSON : maySift ? Infinity : 0,
  }
  // With two filters, one finds the rows by its index, and the other filters them.
  const may = names.length > 1 ? { read: Infinity, sort: Infinity, sift: Infinity } : rules
  return nodes.flatMap((node) => {
    const { 'Node Type': type, 'Relation Name': relation, 'Actual Loops': loops = 1 } = node
    const about = `${type} ${node['Index Name'] ?? relation ?? ''}`
    const rows = Math.round((node['Actual Rows'] ?? 0) * loops)
    const removed = Math.round((node['Rows Removed by Filter'] ?? 0) * loops)
    const faults: string[] = []
    if (type === 'Seq Scan' && (relation === table || relation === 'profiles')) faults.push(about)
    if (/Sort/.test(type) && rows > may.sort) faults.push(`${about} of ${rows}`)
    if (relation === table && rows > may.read) faults.push(`${about} of ${rows}`)
    if (removed > may.sift) faults.push(`${about} without ${removed}`)
    return faults
  })
}
