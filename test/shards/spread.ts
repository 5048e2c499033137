// What a page and a charge cost at HAProxy, Tundish and PostgreSQL while the same load is on one, two and three shards.
import { randomUUID } from 'node:crypto'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds } from '../../bench/cpu.ts'
import { median } from '../../bench/measure.ts'
import { table } from '../../bench/table.ts'
import { lastServer } from '../../src/lib/embedded/server.ts'
import type { Shop } from '../failover/clients.ts'
import { fillShop } from '../failover/shop.ts'
import { type Installation, mapsLoaded, NAMES, type Name } from './installation.ts'

// Divisible by one, two and three.
const ORGANIZATIONS = 6
const ROUNDS = 5
const PAGES = 300
const CHARGES = 60
const IDLE_MS = 10_000

/** CPU seconds so far, by place. */
interface Cpu {
  haproxy: number
  tundish: Record<Name, number>
  postgres: Record<Name, number>
}

type Request = (shop: Shop) => Promise<void>
interface Load {
  what: string
  /** How many requests each organization sends in a round, one after another. */
  requests: number
  send: Request
}

const LOADS: readonly Load[] = [
  { what: 'page of 20', requests: PAGES, send: readPage },
  { what: 'charge', requests: CHARGES, send: charge },
]

interface Sample {
  haproxyMs: number
  tundishMs: number
  postgresMs: number
  /** Of the CPU of all shards, the part of the busiest one. */
  busiest: number
}

/** Prints a table of milliseconds of CPU for each request: the median of the rounds, with the least and the most. */
export async function measureSpread(installation: Installation): Promise<number> {
  const shops = new Map<number, Shop[]>()
  for (const count of [1, 2, 3]) shops.set(count, await fillShards(installation, count))
  await mapsLoaded(installation)
  for (const { send } of LOADS) for (const all of shops.values()) await sendAll(all, 5, send)
  const idle = await measureIdle(installation)
  process.stdout.write(`${ORGANIZATIONS} organizations, each with one request at a time. Load: ${load()}.\n`)
  const samples = new Map<string, Sample[]>()
  for (let round = 0; round < ROUNDS; round += 1)
    for (const one of LOADS)
      for (const [count, all] of shops) {
        const key = `${one.what}, ${count} ${count === 1 ? 'shard' : 'shards'}`
        samples.set(key, [...(samples.get(key) ?? []), await measure(installation, all, one, idle)])
      }
  const heads = ['CPU of a request', 'HAProxy ms', 'Tundish ms', 'PostgreSQL ms', 'busiest shard']
  const rows = [...samples].map(([key, all]) => [
    key,
    spread(all.map(({ haproxyMs }) => haproxyMs)),
    spread(all.map(({ tundishMs }) => tundishMs)),
    spread(all.map(({ postgresMs }) => postgresMs)),
    `${Math.round(median(all.map(({ busiest }) => busiest))! * 100)} %`,
  ])
  process.stdout.write(`${table(heads, rows)}\nLoad at the end: ${load()}.\n`)
  return 0
}

/** Organizations on the first `count` shards in turn. */
async function fillShards({ shards, url }: Installation, count: number): Promise<Shop[]> {
  const shops: Shop[] = []
  for (let n = 0; n < ORGANIZATIONS; n += 1) {
    const { env } = shards[NAMES[n % count]!]
    shops.push({ url, ...(await fillShop(env, `of-${count}-${n}`)) })
  }
  return shops
}

async function sendAll(shops: Shop[], requests: number, send: Request): Promise<void> {
  await Promise.all(
    shops.map(async (shop) => {
      for (let n = 0; n < requests; n += 1) await send(shop)
    }),
  )
}

async function readPage(shop: Shop): Promise<void> {
  const status = await statusOfPage(shop)
  if (status !== 200) throw new Error(`A page had the status ${status}.`)
}

async function statusOfPage({ url, projectKey }: Shop): Promise<number> {
  const response = await fetch(`${url}/public/v1/transactions?limit=20`, { headers: { 'Service-Secret': projectKey } })
  await response.arrayBuffer()
  return response.status
}

async function charge({ url, organizationId, billingKey, customers }: Shop): Promise<void> {
  const response = await fetch(`${url}/${organizationId}/v1/payment/one_off_charge`, {
    method: 'POST',
    headers: { 'Service-Secret-Key': billingKey, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      external_id: customers[0],
      amount: '1.00',
      currency_code: 'USD',
      idempotency_key: randomUUID(),
    }),
  })
  const { checkout_status, message } = (await response.json()) as { checkout_status?: string; message?: string }
  if (checkout_status !== 'succeeded') throw new Error(`A charge ended as ${checkout_status ?? message}.`)
}

/** CPU seconds of a second in which no request comes. */
async function measureIdle(installation: Installation): Promise<Cpu> {
  const before = await readCpu(installation)
  await sleep(IDLE_MS)
  return differenceOf(await readCpu(installation), before, (after, earlier) => ((after - earlier) / IDLE_MS) * 1000)
}

async function measure(
  installation: Installation,
  shops: Shop[],
  { requests, send }: Load,
  idle: Cpu,
): Promise<Sample> {
  const [before, beginMs] = [await readCpu(installation), performance.now()]
  await sendAll(shops, requests, send)
  const seconds = (performance.now() - beginMs) / 1000
  const used = differenceOf(await readCpu(installation), before, (after, earlier) => after - earlier)
  const own = differenceOf(used, idle, (all, aSecond) => Math.max(0, all - aSecond * seconds))
  const ofShards = NAMES.map((name) => own.tundish[name] + own.postgres[name])
  const each = (total: number) => (total * 1000) / (shops.length * requests)
  return {
    haproxyMs: each(own.haproxy),
    tundishMs: each(sum(Object.values(own.tundish))),
    postgresMs: each(sum(Object.values(own.postgres))),
    busiest: Math.max(...ofShards) / sum(ofShards),
  }
}

async function readCpu({ haproxy, shards }: Installation): Promise<Cpu> {
  const ofEach = async (pid: (name: Name) => number) => {
    const all = NAMES.map(async (name) => [name, await cpuSeconds(pid(name))] as const)
    return Object.fromEntries(await Promise.all(all)) as Record<Name, number>
  }
  return {
    haproxy: await cpuSeconds(haproxy.pid()),
    tundish: await ofEach((name) => shards[name].server.process.pid!),
    postgres: await ofEach((name) => lastServer(shards[name].cluster.data)!.pid),
  }
}

function differenceOf(one: Cpu, other: Cpu, of: (one: number, other: number) => number): Cpu {
  const each = (mine: Record<Name, number>, theirs: Record<Name, number>) =>
    Object.fromEntries(NAMES.map((name) => [name, of(mine[name], theirs[name])])) as Record<Name, number>
  return {
    haproxy: of(one.haproxy, other.haproxy),
    tundish: each(one.tundish, other.tundish),
    postgres: each(one.postgres, other.postgres),
  }
}

const sum = (numbers: number[]) => numbers.reduce((total, n) => total + n, 0)
const load = () => loadavg()[0]!.toFixed(1)

function spread(numbers: number[]): string {
  const fixed = (n: number) => n.toFixed(2)
  return `${fixed(median(numbers)!)} (${fixed(Math.min(...numbers))}–${fixed(Math.max(...numbers))})`
}
