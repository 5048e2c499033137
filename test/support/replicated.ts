// A primary with a replica and a server that reads from it; further servers; and which server each read used.
import { randomBytes } from 'node:crypto'
import { migrate } from '../../src/lib/pg/migrate.ts'
import { type Cluster, openCluster } from './cluster.ts'
import { openReplica, type Replica } from './replica.ts'
import { type Project, scrape, startTestServer, type TestServer } from './server.ts'
import { until } from './time.ts'

export interface Replicated {
  primary: Cluster
  replica: Replica
  /** A server that reads from the replica while it is at most `maxLagMs` behind; without `maxLagMs`, from the primary only. */
  serve(maxLagMs?: number): Promise<TestServer>
  close(): Promise<void>
}

export async function openReplicated(): Promise<Replicated> {
  const primary = await openCluster()
  await migrate(primary.url)
  const replica = await openReplica(primary)
  const masterKey = randomBytes(32).toString('base64')
  const servers: TestServer[] = []
  return {
    primary,
    replica,
    async serve(maxLagMs) {
      const server = await startTestServer({
        DATABASE_URL: primary.url,
        MASTER_KEY: masterKey,
        ...(maxLagMs && { READ_DATABASE_URL: replica.url, READ_MAX_LAG_MS: String(maxLagMs) }),
      })
      servers.push(server)
      if (maxLagMs) await untilUsable(server)
      return server
    },
    async close() {
      for (const server of servers) await server.stop()
      await replica.remove()
      await primary.remove()
    },
  }
}

export const untilUsable = (server: TestServer, usable = true) =>
  until(`the replica to be ${usable ? '' : 'un'}usable`, async () => {
    const text = await scrape(server)
    return text.includes(`\ntundish_replica_usable ${usable ? 1 : 0}\n`)
  })

/** Where the reads of `work` went and why: `['replica fresh']`. */
export async function readsOf(server: TestServer, work: () => Promise<unknown>): Promise<string[]> {
  const before = counted(await scrape(server))
  await work()
  const after = counted(await scrape(server))
  return [...after].flatMap(([name, n]) => Array.from({ length: n - (before.get(name) ?? 0) }, () => name)).sort()
}

/** The project, served by another server. */
export const seenBy = (server: TestServer, { key }: Project): Pick<Project, 'get'> => ({
  get: (path, query) => server.api(query ? `${path}?${new URLSearchParams(query)}` : path, { key }),
})

function counted(text: string): Map<string, number> {
  const samples = text.matchAll(/^tundish_reads_total\{target="(\w+)",why="(\w+)"\} (\d+)$/gm)
  return new Map([...samples].map(([, target, why, n]) => [`${target} ${why}`, Number(n)]))
}
