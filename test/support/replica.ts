// A primary with a streaming replica and servers that read from it; and which of the two each read used.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import pg from 'pg'
import { migrate } from '../../src/lib/pg/migrate.ts'
import { type Cluster, openCluster } from './cluster.ts'
import { type Project, scrape, startTestServer, type TestServer } from './server.ts'
import { until } from './time.ts'

export interface Replica extends Cluster {
  /** Pauses the replay of the primary's log, so that the replica falls behind. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Promotes it to a primary. */
  promote(): Promise<void>
  /** Waits until all commits of the primary are replayed. */
  catchUp(): Promise<void>
}

/** Copies the primary's data folder while it runs, and starts the copy as a standby. */
export async function openReplica(primary: Cluster): Promise<Replica> {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-replica-'))
  const data = await copyCluster(primary, folder)
  owned(data, 'standby.signal', '')
  const password = new URL(primary.url).password
  appendFileSync(
    join(data, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=${primary.sockets()} user=tundish password=${password}'\nwal_retrieve_retry_interval = '100ms'\nhot_standby_feedback = on\n`,
  )
  const replica = await openCluster(folder)
  return {
    ...replica,
    // A spread would read it once.
    get url() {
      return replica.url
    },
    async pause() {
      await replica.query('select pg_wal_replay_pause()')
      const paused = async () => {
        const [row] = await replica.query('select pg_get_wal_replay_pause_state() as state')
        return row?.state === 'paused'
      }
      await until('the replay to pause', paused)
    },
    async resume() {
      await replica.query('select pg_wal_replay_resume()')
    },
    async promote() {
      await replica.query('select pg_promote()')
    },
    async catchUp() {
      const [row] = await primary.query('select pg_current_wal_flush_lsn() as lsn')
      const caughtUp = async () =>
        (await replica.query(`select pg_last_wal_replay_lsn() >= '${row!.lsn}' as done`))[0]?.done as unknown as boolean
      await until('the replica to catch up', caughtUp)
    },
  }
}

/** A base backup of the primary while it runs, in an empty folder. Returns the data folder in it. */
export async function copyCluster(primary: Cluster, folder: string): Promise<string> {
  // A backup ends with the connection that began it.
  const client = new pg.Client({ connectionString: primary.url })
  await client.connect()
  try {
    await client.query(`select pg_backup_start('replica', true)`)
    execFileSync('cp', ['-a', `${primary.folder}/.`, folder])
    const { rows } = await client.query('select labelfile from pg_backup_stop(false)')
    const data = join(folder, relative(primary.folder, primary.data))
    for (const name of ['postmaster.pid', 'postmaster.opts']) rmSync(join(data, name), { force: true })
    rmSync(join(data, '..', 'run'), { recursive: true, force: true })
    owned(data, 'backup_label', rows[0].labelfile)
    return data
  } finally {
    await client.end()
  }
}

/** When run as root, PostgreSQL's files belong to another account. */
function owned(data: string, name: string, content: string): void {
  const { uid, gid } = statSync(data)
  const path = join(data, name)
  writeFileSync(path, content)
  chmodSync(path, 0o600)
  chownSync(path, uid, gid)
}

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
