// Cases that repeat one request: pages of lists, a subscription, a profile.
import assert from 'node:assert/strict'
import { alternate, type Result, type Run, type Sample } from './measure.ts'
import type { Options } from './options.ts'
import { record } from './record.ts'
import { type Program, type Rig, startOurs, startReference } from './rig.ts'
import { limit, load, type Tools } from './tools.ts'

// The connections of one of our processes for short reads.
const READ_CONNECTIONS = 3

export interface Servers {
  rig: Rig
  ours: Program
  plain: Program
  wire: Program
}

export interface RequestCase {
  name: string
  path: string
  /** Whether it is a page in the middle of the list, not the first. */
  later?: boolean
}

const WINDOW = 'filter[updated_at.from]=2025-12-31T20:00:00Z&filter[updated_at.to]=2025-12-31T22:00:00Z'
const PAGES = [20, 500].flatMap((items) => [
  { name: `subscriptions-${items}-first`, path: `/subscriptions?limit=${items}` },
  { name: `subscriptions-${items}-later`, path: `/subscriptions?limit=${items}`, later: true },
  { name: `subscriptions-${items}-status`, path: `/subscriptions?limit=${items}&filter[status]=active` },
  { name: `subscriptions-${items}-window`, path: `/subscriptions?limit=${items}&${WINDOW}` },
  { name: `transactions-${items}-first`, path: `/transactions?limit=${items}` },
  { name: `transactions-${items}-later`, path: `/transactions?limit=${items}`, later: true },
  { name: `transactions-${items}-window`, path: `/transactions?limit=${items}&${WINDOW}` },
])

/** The cases for a project of this size. */
export function requestCases(size: number): RequestCase[] {
  const middle = idOf('sub', size / 2)
  return [
    ...PAGES,
    { name: 'subscriptions-20-email', path: '/subscriptions?filter[email]=person0@example.com' },
    { name: 'one-subscription', path: `/subscriptions/${middle}` },
    { name: 'one-profile', path: `/profiles/${idOf('pro', 0)}` },
  ]
}

/** An id as the generator makes it. */
export const idOf = (prefix: string, n: number) => `${prefix}_${String(Math.floor(n)).padStart(12, '0')}`

export async function startServers(rig: Rig, { workers }: Options): Promise<Servers> {
  const ours = await startOurs(rig, { workers })
  const plain = await startReference(rig, 'plain.ts', workers)
  const wire = await startReference(rig, 'wire.ts')
  return { rig, ours, plain, wire }
}

/** Measures a case and its references, after checking that ours and plain send the same response. */
export async function measureRequest(
  { rig, ours, plain, wire }: Servers,
  tools: Tools,
  { name, path, later }: RequestCase,
  options: Options,
): Promise<Result> {
  const headers = { 'Service-Secret': rig.key }
  const place = later ? await findMiddle(ours.url, headers, path, options.size) : undefined
  const paths = { ours: path + (place?.ours ?? ''), plain: path + (place?.plain ?? '') }
  const url = `${ours.url}/public/v1${paths.ours}`
  const answer = await compare(url, headers, plain.url + paths.plain)
  const { statements } = await record(rig, { path: `/public/v1${paths.ours}`, headers })
  const { connections } = options
  const fire =
    (address: string, given: Record<string, string>): Run =>
    (seconds) =>
      load(tools, address, given, seconds, connections)
  const { pgbench } = tools
  const pgbenchWith = (clients: number) =>
    withCpu(rig, undefined, (seconds) => limit(pgbench!, rig.databaseUrl, statements, seconds, clients))
  return alternate(
    name,
    'requests',
    {
      ours: withCpu(rig, ours, fire(url, headers)),
      ...(pgbench && { limit: pgbenchWith(connections), few: pgbenchWith(READ_CONNECTIONS * options.workers) }),
      plain: withCpu(rig, plain, fire(plain.url + paths.plain, {})),
      wire: () => fire(`${wire.url}/${Buffer.byteLength(answer)}`, {})(1),
    },
    options,
  )
}

/** The cursor after an item in the middle, in our form and in that of plain. */
export async function findMiddle(url: string, headers: Record<string, string>, path: string, size: number) {
  const list = /^\/(\w+)/.exec(path)![1]!
  const id = idOf(list === 'transactions' ? 'trn' : 'sub', size / 2)
  const answer = await fetch(`${url}/public/v1${path}&cursor=${id}`, { headers })
  const { data, pagination } = (await answer.json()) as {
    data: { id: string; created_at: string }[]
    pagination: { next_cursor: string; total: number }
  }
  const last = data.at(-1)!
  const place = { at: last.created_at, id: last.id, total: pagination.total }
  const plain = Buffer.from(JSON.stringify(place)).toString('base64url')
  return { ours: `&cursor=${pagination.next_cursor}`, plain: `&cursor=${plain}` }
}

/** Fails unless both send the same response, except for the form of cursors. Returns ours. */
export async function compare(ours: string, headers: Record<string, string>, plain: string): Promise<string> {
  const answers = await Promise.all([fetch(ours, { headers }), fetch(plain)])
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  const [oursParsed, plainParsed] = texts.map(withoutCursors)
  assert.deepEqual(plainParsed, oursParsed, `The plain server sends another response than ours: ${plain}`)
  return texts[0]!
}

function withoutCursors(text: string): unknown {
  return JSON.parse(text, (name, value) => (name === 'next_cursor' || name === 'cursor' ? typeof value : value))
}

/** Adds to a run the CPU seconds of the server, if there is one, and of PostgreSQL for 1,000 of its unit. */
export function withCpu(rig: Rig, server: Program | undefined, run: Run): Run {
  return async (seconds) => {
    const used = async () =>
      [(await server?.cpuSeconds()) ?? 0, await rig.postgresSeconds(), performance.now()] as const
    const [serverBefore, postgresBefore, begunMs] = await used()
    const sample: Sample = await run(seconds)
    const [serverAfter, postgresAfter, endedMs] = await used()
    const thousands = (sample.perSecond * (endedMs - begunMs)) / 1000 / 1000
    const cpu = {
      server: (serverAfter - serverBefore) / thousands,
      postgres: (postgresAfter - postgresBefore) / thousands,
    }
    return { ...sample, cpu }
  }
}
