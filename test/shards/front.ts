// HAProxy in front of a test's server, with the maps of its database and another shard beside it.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { openLog } from '../../src/lib/log.ts'
import { clientConfig } from '../../src/lib/pg/client-config.ts'
import type { NamedRow, Query } from '../../src/lib/pg/types.ts'
import { directoryOf, readPart, stateOf } from '../../src/operations/shards/directory.ts'
import { loadMaps, writeMaps } from '../../src/operations/shards/haproxy.ts'
import { startServer } from '../../src/server/listeners/server.ts'
import { freePort } from '../support/cli.ts'
import { freshDatabase } from '../support/postgres.ts'
import { until } from '../support/time.ts'
import { HAPROXY } from './haproxy-path.ts'

const FILES = join(import.meta.dirname, '../../deploy/shards')
// For requests that a test sends without `call`.
const LOOK_MS = 100
// Far above what a response takes that its client reads.
const END_MS = 10_000

/** The settings of a server behind HAProxy. */
export const BEHIND = { SECRET_HEADER_CASE: 'any', TRUST_PROXY: '127.0.0.1' }

export interface Front {
  url: string
  /** The operator's side. */
  adminUrl: string
  /** Brings the maps up to date, so that a new key is found at once. */
  refresh(): Promise<void>
  /** To be called when the server has stopped: clients still get what HAProxy holds of their responses. */
  stop(): Promise<void>
}

interface Addresses {
  url: string
  adminUrl: string | undefined
}

/** Puts HAProxy in front of a server; its database is that of shard a. */
export async function openFront(server: Addresses, databaseUrl: string): Promise<Front> {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-front-'))
  const maps = join(folder, 'maps')
  mkdirSync(maps)
  copyFileSync(join(FILES, '503.http'), join(maps, '503.http'))
  writeMaps(maps, directoryOf(new Map()))
  const other = await openOther()
  const socket = join(folder, 'haproxy.sock')
  const url = `http://127.0.0.1:${await freePort()}`
  const adminUrl = `http://127.0.0.1:${await freePort()}`
  const haproxy = startHaproxy({
    HAPROXY_ADDRESS: new URL(url).host,
    HAPROXY_OPERATOR_ADDRESS: new URL(adminUrl).host,
    HAPROXY_MAPS: maps,
    HAPROXY_SOCKET: socket,
    SHARD_A: new URL(server.url).host,
    SHARD_B: new URL(other.url).host,
    SHARD_C: new URL(other.url).host,
    OPERATOR_A: new URL(server.adminUrl!).host,
    OPERATOR_B: new URL(other.adminUrl!).host,
    OPERATOR_C: new URL(other.adminUrl!).host,
  })
  await until('HAProxy to listen', () => existsSync(socket))
  const asking = openAsking(databaseUrl)
  let state: string | undefined
  let known: string | undefined
  let turn = Promise.resolve()
  async function look(): Promise<void> {
    // Operators have the same keys on all shards.
    const keys = await asking.run(readOperatorKeys)
    if (keys !== known) await other.setOperatorKeys(keys)
    known = keys
    const now = await asking.run(stateOf)
    if (now === state) return
    await loadMaps(socket, maps, directoryOf(new Map([['a', await asking.run(readPart)]])))
    state = now
  }
  // A database that a test has cut has no new keys.
  const refresh = () => {
    turn = turn.then(look).catch(() => {})
    return turn
  }
  const timer = setInterval(() => void refresh(), LOOK_MS)
  return {
    url,
    adminUrl,
    refresh,
    async stop() {
      clearInterval(timer)
      await turn
      await asking.close()
      await endResponses(haproxy)
      await other.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function startHaproxy(env: Record<string, string>): ChildProcess {
  return spawn(HAPROXY!, ['-q', '-db', '-f', join(FILES, 'haproxy.cfg')], { env, stdio: 'ignore' })
}

/** Stops HAProxy when clients have their responses, or when one reads nothing for a while. */
async function endResponses(haproxy: ChildProcess): Promise<void> {
  const ended = once(haproxy, 'exit')
  haproxy.kill('SIGUSR1')
  await Promise.race([ended, sleep(END_MS, undefined, { ref: false })])
  haproxy.kill('SIGKILL')
}

async function readOperatorKeys(query: Query): Promise<string> {
  const [row] = await query(`
    select coalesce(json_agg((to_jsonb(k) - 'last_used_at') order by id), '[]')::text as keys from operator_keys k`)
  return row!.keys!
}

/** Another shard, without organizations. */
async function openOther() {
  const database = await freshDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'tundish-other-'))
  const masterKey = randomBytes(32).toString('base64')
  const env = { DATABASE_URL: database.url, DATA_DIR: folder, MASTER_KEY: masterKey, PORT: '0', ADMIN_PORT: '0' }
  const app = await openApp(readConfig({ ...env, ...BEHIND }), { log: openLog('silent') })
  const running = await startServer(app, { worker: false })
  return {
    url: running.url,
    adminUrl: running.adminUrl,
    async setOperatorKeys(keys: string) {
      await app.db.tx(async (query) => {
        await query('delete from operator_keys')
        await query('insert into operator_keys select * from json_populate_recordset(null::operator_keys, $1)', [keys])
      })
    },
    async stop() {
      await running.stop()
      await app.close()
      await database.drop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** One connection, opened again after a failure. */
function openAsking(url: string) {
  let client: pg.Client | undefined
  const close = async () => {
    await client?.end().catch(() => {})
    client = undefined
  }
  async function connected(): Promise<pg.Client> {
    const made = new pg.Client(clientConfig({ url, applicationName: 'directory' }))
    made.on('error', () => {})
    await made.connect()
    return made
  }
  return {
    close,
    async run<T>(work: (query: Query) => Promise<T>): Promise<T> {
      client ??= await connected()
      const asked = client
      const query = async (text: string, params: unknown[] = []) => (await asked.query<NamedRow>(text, params)).rows
      try {
        return await work(query as unknown as Query)
      } catch (error) {
        await close()
        throw error
      }
    },
  }
}
