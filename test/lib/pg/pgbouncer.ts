// A real PgBouncer, in transaction mode unless a test says otherwise, before a test's database, if this machine has one.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { freePort } from '../../support/cli.ts'
import { until } from '../../support/time.ts'

export interface PgBouncer {
  /** The URL of the database through PgBouncer. */
  url: string
  /** Runs a command on its console. */
  console(command: string): Promise<unknown>
  stop(): Promise<void>
  start(): Promise<void>
  remove(): Promise<void>
}

const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
const program = folders.map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path))

/** Why PgBouncer cannot run here, or undefined. */
export const noPgBouncer = program ? undefined : 'there is no pgbouncer on this machine'

/** Starts a PgBouncer with fewer connections to the server than a process opens to it. `given` are more settings. */
export async function openPgBouncer(databaseUrl: string, given: Record<string, string> = {}): Promise<PgBouncer> {
  const { username, password, pathname, searchParams, hostname, port } = new URL(databaseUrl)
  const host = searchParams.get('host') ?? hostname
  const folder = mkdtempSync(join(tmpdir(), 'tundish-pgbouncer-'))
  const ownPort = await freePort()
  const users = join(folder, 'users.txt')
  writeFileSync(users, `"${username}" "${password}"\n`)
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: ownPort,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    admin_users: username,
    pool_mode: 'transaction',
    default_pool_size: 3,
    max_client_conn: 500,
    ...given,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, `[databases]\n* = host=${host} port=${port || 5432}\n[pgbouncer]\n${lines.join('')}`)
  // It does not run as root, and its account has to enter the folder of PostgreSQL's socket.
  const { uid, gid } = statSync(host.startsWith('/') ? host.split(',')[0]! : folder)
  const account = process.getuid?.() === 0 ? { uid: uid || 65_534, gid: gid || 65_534 } : {}
  if (account.uid !== undefined) for (const path of [folder, users, file]) chownSync(path, account.uid, account.gid)
  chmodSync(users, 0o600)
  const ask = async (database: string, command: string) => {
    const client = new pg.Client({ host: '127.0.0.1', port: ownPort, user: username, password, database })
    client.on('error', () => {})
    try {
      await client.connect()
      return await client.query(command)
    } finally {
      await client.end().catch(() => {})
    }
  }
  const console = (command: string) => ask('pgbouncer', command)
  const responses = () => console('show version').then(Boolean, () => false)
  let child: ChildProcess | undefined
  async function start(): Promise<void> {
    child = spawn(program!, ['-q', file], { ...account, stdio: 'ignore' })
    await until('PgBouncer to answer', responses)
  }
  async function stop(): Promise<void> {
    if (!child) return
    const ended = once(child, 'exit')
    // From 1.23 on SIGTERM waits for the clients to leave.
    child.kill('SIGQUIT')
    await ended
    child = undefined
  }
  await start()
  return {
    url: `postgresql://${username}:${password}@127.0.0.1:${ownPort}${pathname}`,
    console,
    start,
    stop,
    async remove() {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
