// Outages under load: of a shard, of its network and of HAProxy; what others notice meanwhile, and whether each shop is served again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clients } from '../failover/clients.ts'
import { until } from '../support/time.ts'
import type { Installation, Name } from './installation.ts'

export type Loads = { name: Name; clients: Clients }[]

interface Outage {
  what: string
  /** Whose organizations cannot be served meanwhile. */
  shops: readonly Name[]
  begin(installation: Installation): Promise<void> | void
  end(installation: Installation): Promise<void> | void
}

const LASTS_MS = 10_000
// Of requests that arrived before the outage.
const UNDER_WAY_MS = 1000

// Shard c has one shop; those of the others are on b, after the move.
const OUTAGES: readonly Outage[] = [
  {
    what: 'PostgreSQL of a shard killed',
    shops: ['c'],
    begin: ({ shards }) => shards.c.cluster.stop('SIGQUIT'),
    end: ({ shards }) => shards.c.cluster.start(),
  },
  {
    what: 'a shard frozen, its server and PostgreSQL (SIGSTOP)',
    shops: ['c'],
    begin({ shards }) {
      shards.c.server.process.kill('SIGSTOP')
      shards.c.cluster.freeze()
    },
    end({ shards }) {
      shards.c.cluster.thaw()
      shards.c.server.process.kill('SIGCONT')
    },
  },
  {
    what: 'the network to a shard cut',
    shops: ['c'],
    begin: ({ network }) => network.freeze(),
    async end({ network }) {
      await network.cut()
      await network.mend()
    },
  },
  {
    what: 'HAProxy killed',
    shops: ['a', 'b', 'c'],
    begin: ({ haproxy }) => haproxy.kill(),
    end: ({ haproxy }) => haproxy.start(),
  },
]

export interface Noticed {
  what: string
  /** Charges that succeeded during the outage, of the shops that it does not concern and of those it does. */
  others: number
  own: number
  /** From its end to the last of the first charges of all shops. */
  backMs: number
  broken: string[]
}

/** Makes one outage after another, each until every shop is charged again. */
export async function makeOutages(installation: Installation, all: Loads): Promise<Noticed[]> {
  const noticed: Noticed[] = []
  const early = all.flatMap(({ clients }) => [...clients.statuses.keys()].filter((what) => !EXPECTED.test(what)))
  if (early.length > 0) throw new Error(`Before any outage: ${early.join(', ')}`)
  for (const outage of OUTAGES) noticed.push(await makeOutage(installation, all, outage))
  return noticed
}

async function makeOutage(installation: Installation, all: Loads, { what, shops, begin, end }: Outage) {
  const before = all.map(({ clients }) => refused(clients))
  await begin(installation)
  await sleep(UNDER_WAY_MS)
  const counts = all.map(({ clients }) => succeeded(clients))
  await sleep(LASTS_MS)
  const more = all.map(({ name, clients }, n) => ({ name, charges: succeeded(clients) - counts[n]! }))
  await end(installation)
  const endedMs = performance.now()
  // Each customer has one charge at a time, so that none is under way from before.
  await until('charges of every customer', () => all.every(({ clients }) => isServed(clients, endedMs)))
  const backMs = performance.now() - endedMs
  const sum = (concerned: boolean) =>
    more.filter(({ name }) => shops.includes(name) === concerned).reduce((total, { charges }) => total + charges, 0)
  const silent = more.filter(({ name, charges }) => !shops.includes(name) && charges === 0)
  const broken = [
    ...silent.map(({ name }) => `${what}: no charge of the shop of ${name}, which it does not concern`),
    ...all.flatMap(({ name, clients }, n) => {
      const found = refused(clients) - before[n]!
      return shops.includes(name) || found === 0 ? [] : [`${what}: ${found} requests of the shop of ${name} failed`]
    }),
    ...(sum(true) > 0 ? [`${what}: ${sum(true)} charges succeeded where none could, so that it tested nothing`] : []),
  ]
  return { what, others: sum(false), own: sum(true), backMs, broken }
}

const EXPECTED = / (200|503|400 charge_in_progress)$/

/** Requests that did not succeed, but for charges beside another one of their customer. */
const refused = ({ statuses }: Clients) =>
  [...statuses].filter(([what]) => !/ (200|400 charge_in_progress)$/.test(what)).reduce((sum, [, n]) => sum + n, 0)

/** Responses that are no success and no refusal that says to try again: what an outage may cause to its own shops only. */
export const afterOutage = (what: string) => EXPECTED.test(what) || / (broken|502|504)$/.test(what)

const succeeded = ({ charges }: Clients) => charges.filter(({ outcome }) => outcome === 'succeeded').length

/** Whether every customer was charged since. */
function isServed({ charges }: Clients, sinceMs: number): boolean {
  const customers = new Set(charges.map(({ customer }) => customer))
  const since = charges.filter(({ outcome, decidedMs }) => outcome === 'succeeded' && decidedMs! > sinceMs)
  return new Set(since.map(({ customer }) => customer)).size === customers.size
}
