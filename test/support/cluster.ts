// A PostgreSQL of a test's own that can be stopped, killed, frozen and restarted.
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { makeCluster } from '../../src/lib/embedded/cluster.ts'
import { openHome } from '../../src/lib/embedded/home.ts'
import { isServerOf, lastServer, startServer } from '../../src/lib/embedded/server.ts'
import { migrate } from '../../src/lib/pg/migrate.ts'
import { createsFolder } from './folder.ts'
import { trySignal } from './signal.ts'
import { until } from './time.ts'

export interface Cluster {
  url: string
  folder: string
  /** PostgreSQL's data folder, and the folder of its socket. */
  data: string
  sockets(): string
  start(): Promise<void>
  /** SIGINT ends every connection and stops; SIGQUIT stops as a crash does. */
  stop(signal?: 'SIGINT' | 'SIGQUIT'): Promise<void>
  /** Stops all its processes, so that no client gets a response until `thaw`. */
  freeze(): void
  thaw(): void
  query(text: string): Promise<Record<string, string>[]>
  remove(): Promise<void>
}

/** Creates and starts a cluster, by default in its own folder. In a run of tests it is a copy of the run's first, and has all migrations. */
export async function openCluster(given?: string): Promise<Cluster> {
  const folder = given ?? mkdtempSync(join(realpathSync(tmpdir()), 'tundish-cluster-'))
  traversable(folder)
  const shared = process.env['TUNDISH_TEST_CLUSTER']
  if (shared !== undefined && !existsSync(join(folder, 'postgres'))) await copyFirst(shared, folder)
  return startIn(folder)
}

/** The first process that creates the folder of the cluster makes it; the others wait for the file that says that it is complete. */
async function copyFirst(shared: string, folder: string): Promise<void> {
  const [first, complete] = [join(shared, 'first'), join(shared, 'complete')]
  if (createsFolder(first)) {
    traversable(first)
    const made = await startIn(first)
    await migrate(made.url)
    await made.stop()
    writeFileSync(complete, '')
  }
  await until('the first cluster to be made', () => existsSync(complete))
  copyFileSync(join(first, 'postgres.password'), join(folder, 'postgres.password'))
  const { cluster } = await openHome(folder)
  execFileSync('cp', ['-a', realpathSync(join(first, 'postgres', 'data')), cluster])
}

/** When run as root, PostgreSQL's account has to traverse the folder. */
const traversable = (folder: string) => chmodSync(folder, 0o711)

async function startIn(folder: string): Promise<Cluster> {
  const home = await openHome(folder)
  // Not `throwaway`, because commits have to survive crashes.
  if (!existsSync(home.cluster)) await makeCluster(home, { throwaway: false, say: () => {} })
  let sockets = ''

  const pid = () => lastServer(home.cluster)?.pid
  const signal = (name: NodeJS.Signals) => {
    for (const one of [pid(), ...backends(pid())]) if (one) trySignal(one, name)
  }
  async function start(): Promise<void> {
    let starting = await startServer(home, () => {})
    await until('PostgreSQL to start', async () => {
      // Tried again if a server was in the way that has crashed and was still ending.
      const server = lastServer(home.cluster)
      const runs = server && (await isServerOf(home.cluster, server.pid))
      if (starting.end && !runs) starting = await startServer(home, () => {})
      sockets = server?.sockets ?? ''
      return sockets !== '' && (await query('select 1').catch(() => undefined)) !== undefined
    })
  }
  async function stop(name: 'SIGINT' | 'SIGQUIT' = 'SIGINT'): Promise<void> {
    const running = pid()
    if (!running) return
    trySignal(running, name)
    await until('PostgreSQL to stop', async () => !existsSync(`/proc/${running}`) && !lastServer(home.cluster))
  }
  async function query(text: string): Promise<Record<string, string>[]> {
    const client = new pg.Client({ connectionString: cluster.url, connectionTimeoutMillis: 60_000 })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query(text)).rows
    } finally {
      await client.end()
    }
  }

  const cluster: Cluster = {
    get url() {
      return `postgresql://tundish:${home.password}@localhost/tundish?host=${encodeURIComponent(sockets)}&sslmode=disable`
    },
    folder,
    data: home.cluster,
    sockets: () => sockets,
    start,
    stop,
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    query,
    async remove() {
      signal('SIGCONT')
      await stop('SIGQUIT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  await start()
  return cluster
}

function backends(parent: number | undefined): number[] {
  if (!parent) return []
  try {
    const list = execFileSync('ps', ['-o', 'pid=', '--ppid', String(parent)], { encoding: 'utf8' })
    return list.trim().split(/\s+/).map(Number)
  } catch {
    return []
  }
}
