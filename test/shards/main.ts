// npm run test:deep shards: three shards behind HAProxy; moves an organization under charges, reads and a copy, makes outages, and judges.
// npm run test:deep shards -- suite [FILES]: the tests of the APIs through HAProxy.
// npm run test:deep shards -- spread: the CPU of pages and charges at each place, on one, two and three shards.
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Shop, startClients } from '../failover/clients.ts'
import type { Copy } from '../failover/copy.ts'
import { judge } from '../failover/judge.ts'
import { fillShop } from '../failover/shop.ts'
import { spawnTundish } from '../support/cli.ts'
import { until } from '../support/time.ts'
import { HAPROXY, WITHOUT_HAPROXY } from './haproxy-path.ts'
import { type Installation, mapsLoaded, type Name, openInstallation } from './installation.ts'
import { afterOutage, type Loads, makeOutages } from './outages.ts'
import { measureSpread } from './spread.ts'
import { runSuite } from './suite.ts'

const { values, positionals } = parseArgs({
  options: { records: { type: 'string', default: '100000' } },
  allowPositionals: true,
})
const SHOPS: Record<Name, string> = { a: 'north', b: 'south', c: 'west' }
const LOAD_MS = 5000

process.exitCode = await main()

async function main(): Promise<number> {
  if (!HAPROXY) {
    process.stderr.write(WITHOUT_HAPROXY)
    return 2
  }
  const [first, ...files] = positionals
  if (first === 'suite') return runSuite(files)
  const installation = await openInstallation()
  try {
    return await (first === 'spread' ? measureSpread(installation) : run(installation))
  } finally {
    await installation.close()
  }
}

async function run(installation: Installation): Promise<number> {
  const shops = new Map<Name, Shop>()
  for (const [name, id] of Object.entries(SHOPS) as [Name, string][]) {
    shops.set(name, { url: installation.url, ...(await fillShop(installation.shards[name].env, id)) })
  }
  const shop = shops.get('a')!
  await addSessions(installation, shop, Number(values.records))
  await mapsLoaded(installation)
  print(`Three shops on three shards. ${values.records} sessions in "${shop.organizationId}". Load: ${load()}.`)

  const all = [...shops].map(([name, one]) => ({ name, clients: startClients(one) }))
  await sleep(LOAD_MS)
  const startMs = performance.now()
  const moved = await moveShop(installation, shop)
  const own = all.find(({ name }) => name === 'a')!.clients
  await until(
    'charges on the new shard',
    () => own.outageMs(performance.now() - LOAD_MS, performance.now()) < LOAD_MS / 2,
  )
  const outage = seconds(own.outageMs(startMs, performance.now()))
  print(
    `Moved ${moved.rows} rows in ${seconds(moved.tookMs)}; requests refused for ${seconds(moved.refusedMs)}, ${outage} between two of its charges that succeeded. Load: ${load()}.`,
  )
  await sleep(LOAD_MS)
  const outages = await makeOutages(installation, all)
  for (const { what, others, own, backMs } of outages)
    print(`${what}: charges of other shops meanwhile ${others}, of its own ${own}; all again after ${seconds(backMs)}.`)
  for (const { clients } of all) await clients.stop()

  const places: Record<string, Name> = { [SHOPS.a]: 'b', [SHOPS.b]: 'b', [SHOPS.c]: 'c' }
  const broken = [
    ...outages.flatMap((one) => one.broken),
    ...(await judgeAll(installation, all)),
    ...(await strays(installation, places)),
  ]
  print(broken.length === 0 ? 'Nothing was lost, charged twice, missed or repeated.' : `Broken:\n${broken.join('\n')}`)
  return broken.length === 0 ? 0 : 1
}

/** Sessions of a project, so that a move has something to copy. */
async function addSessions({ shards }: Installation, { organizationId }: Shop, records: number): Promise<void> {
  await shards.a.cluster.query(`
    insert into sessions (project_id, id, created_at, updated_at, profile_id, origin, user_agent, query_params)
    select '${organizationId}-app', 'old-' || n, at, at, 'user-0', 'https://example.com/', 'Mozilla/5.0', '{"utm": "x"}'
    from generate_series(1, ${records}) n, lateral (select db_clock() - make_interval(secs => n) as at) stamped`)
}

async function moveShop(installation: Installation, { organizationId }: Shop) {
  const words = ['shards', 'move', organizationId, '--in', installation.settings, '--from', 'a', '--to', 'b', '--json']
  const startMs = performance.now()
  const { rows, refused_ms: refusedMs } = JSON.parse(await output(words))
  return { rows, refusedMs, tookMs: performance.now() - startMs }
}

/** What a command prints, however long it takes. */
async function output(words: string[]): Promise<string> {
  const program = spawnTundish(words, {}, ['ignore', 'pipe', 'inherit'])
  let text = ''
  program.stdout!.setEncoding('utf8').on('data', (piece) => {
    text += piece
  })
  const [code] = await once(program, 'close')
  if (code !== 0) throw new Error(`tundish ${words.join(' ')} ended with ${code}.`)
  return text
}

/** All shops together, as if the shards were one database. */
async function judgeAll({ shards, simulatorUrl }: Installation, all: Loads): Promise<string[]> {
  const query = async (text: string) =>
    (await Promise.all(Object.values(shards).map(({ cluster }) => cluster.query(text)))).flat()
  await until('every charge to be decided', async () => {
    const rows = await query(`select 1 from orders where status = 'processing'`)
    return rows.length === 0
  })
  for (const { name, clients } of all) {
    const responses = [...clients.statuses].sort().map(([what, n]) => `${what}: ${n}`)
    print(
      `${SHOPS[name]}: ${clients.charges.length} keys, ${clients.copy.transactions.length} transactions and ${clients.copy.sessions.size} sessions copied; ${responses.join(', ')}.`,
    )
  }
  const charges = all.flatMap(({ clients }) => clients.charges)
  const copied = all.flatMap(({ clients }) => clients.copy.transactions)
  const { broken } = await judge({
    clients: { ...all[0]!.clients, charges, inProgress: [], copy: { ...all[0]!.clients.copy, transactions: copied } },
    query,
    simulatorUrl,
  })
  const statuses = all.flatMap(({ clients }) => [...clients.statuses.keys()])
  const sessions = all.flatMap(({ name, clients }) => judgeSessions(SHOPS[name], clients.copy, query))
  broken.push(...(await Promise.all(sessions)).flat())
  return [...broken, ...statuses.filter((status) => !afterOutage(status))]
}

/** The copy has every session once, as it is in the database. */
async function judgeSessions(organization: string, { sessions, repeated }: Copy, query: Query): Promise<string[]> {
  const stored = await query(`
    select id, to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as stamp
    from sessions where project_id = '${organization}-app'`)
  const missed = stored.filter(({ id, stamp }) => sessions.get(id!) !== stamp).length
  const strange = sessions.size - (stored.length - stored.filter(({ id }) => !sessions.has(id!)).length)
  const counts = { missed, 'in the copy, and nowhere else': strange, repeated: repeated.length }
  return Object.entries(counts).flatMap(([what, n]) => (n === 0 ? [] : [`sessions of ${organization} ${what}: ${n}`]))
}

type Query = (text: string) => Promise<Record<string, string>[]>

/** Rows of an organization on another shard than its own. */
async function strays({ shards }: Installation, places: Record<string, Name>): Promise<string[]> {
  const found = Object.values(shards).flatMap(({ name, cluster }) =>
    Object.entries(places).map(async ([organization, place]) => {
      const [row] = await cluster.query(`
        select (select count(*) from orders where organization_id = '${organization}')
          + (select count(*) from transactions where project_id = '${organization}-app')
          + (select count(*) from organizations where id = '${organization}') as n`)
      return name === place || Number(row!.n) === 0 ? [] : [`${row!.n} rows of ${organization} are on ${name}`]
    }),
  )
  return (await Promise.all(found)).flat()
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function load(): string {
  return loadavg()[0]!.toFixed(1)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
