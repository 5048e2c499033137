// Measures what the exact total adds to a page, alone and while other processes write: pages that compute it in turn with pages
// that have it in their cursor; and the sum of the counters on its own connection.
import { Agent } from 'node:http'
import { type Call, requestText, timeTurns } from './client.ts'
import { PROJECT } from './generate.ts'
import { call, type Grown } from './growth-cases.ts'
import { percentile, type Result } from './measure.ts'
import type { Options } from './options.ts'
import { startProgram, TUNDISH } from './rig.ts'

/** The field in `counts`, the filter in the path and its value. */
const FILTERS = {
  unfiltered: ['', '', ''],
  status: ['status', 'status', 'active'],
  funnel: ['funnel_id', 'funnel_id', 'funnel_3'],
  product: ['product_id', 'product_id', 'product_7'],
  provider: ['payment_provider', 'psp', 'stripe'],
} as const

/** The sweep of counters runs in a separate process, as in an installation with several processes. */
export async function measureTotals(grown: Grown, options: Options, say: (text: string) => void): Promise<Result> {
  const { rig, size } = grown
  const worker = await startProgram(['worker'], rig.env, rig.closers, TUNDISH, /background work has begun/)
  say('Totals without writers…')
  const alone = await addedByTotals(grown, options)
  say('Totals beside writers…')
  const writers = await startProgram([], rig.env, rig.closers, 'writers.ts', /writing/)
  const besideWriters = await addedByTotals(grown, options)
  for (const { child } of [writers, worker]) child.kill('SIGTERM')
  const figures = { subscriptions: size, alone, 'beside writers': besideWriters }
  return { name: 'totals', unit: 'requests', contenders: {}, ratios: {}, figures }
}

/** Milliseconds, for each filter. */
async function addedByTotals(grown: Grown, { seconds, rounds }: Options) {
  const added: Record<string, object> = {}
  for (const [name, [field, filter, value]] of Object.entries(FILTERS)) {
    const calls = await firstAndSecond(grown, filter === '' ? '' : `&filter[${filter}]=${value}`)
    const [first, second] = (await timeTurns(calls.map(sender), seconds * rounds)) as [number[], number[]]
    const [sums] = (await timeTurns([() => sum(grown, field, value)], seconds)) as [number[]]
    added[name] = {
      'added at p50': percentile(first, 0.5)! - percentile(second, 0.5)!,
      'added at p99': percentile(first, 0.99)! - percentile(second, 0.99)!,
      'sum p50': percentile(sums, 0.5)!,
      'sum p99': percentile(sums, 0.99)!,
    }
  }
  return added
}

const sender = ({ url, headers }: Call) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return () => requestText(agent, url, headers)
}

/** The statement of a page for its total. */
const sum = ({ rig }: Grown, field: string, value: string) =>
  rig.app.db.readLong(
    {
      name: 'total',
      text: `select coalesce(sum(n), 0) from counts
        where project_id = $1 and list = 'subscriptions' and field = $2 and value = $3`,
    },
    [PROJECT, field, value],
  )

/** The first page, and the second, which differs only in that its cursor has the total. */
async function firstAndSecond(grown: Grown, filter: string): Promise<Call[]> {
  const path = `/subscriptions?limit=20${filter}`
  const first = call(grown, path)
  const { pagination } = JSON.parse(await requestText(new Agent(), first.url, first.headers)) as {
    pagination: { next_cursor: string }
  }
  return [first, call(grown, `${path}&cursor=${pagination.next_cursor}`)]
}
