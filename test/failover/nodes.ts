// Three nodes with etcd, Patroni and PostgreSQL, and HAProxy before them, from the files of deploy/high-availability.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { trySignal } from '../support/signal.ts'
import { until } from '../support/time.ts'

const FILES = join(import.meta.dirname, '../../deploy/high-availability')
const NAMES = ['node1', 'node2', 'node3'] as const
type Name = (typeof NAMES)[number]
const ADDRESSES: Record<Name, string> = { node1: '127.0.0.11', node2: '127.0.0.12', node3: '127.0.0.13' }
const BALANCER = '127.0.0.10'
const PASSWORD = 'secret'
const LONG_MS = 180_000

export interface Nodes {
  /** By HAProxy: to the primary, and to a standby. */
  url: string
  readUrl: string
  primary(): Promise<Name>
  /** Waits until every node serves, and, in synchronous mode, until commits wait for one. */
  untilWhole(): Promise<void>
  /** Ends PostgreSQL of this node with SIGKILL; with `everything` also its Patroni and its etcd. */
  kill(name: Name, everything: boolean): void
  /** Stops the senders of the primary's log: what is committed from now on reaches no standby. */
  holdSenders(name: Name): Promise<void>
  start(name: Name): void
  stop(): void
}

/** Which packages are missing: the programs that are not found. */
export function missingPrograms(): string[] {
  return ['etcd', 'patroni', 'haproxy', 'pg_rewind'].filter((program) => pathOf(program) === undefined)
}

/** PostgreSQL refuses to run as root: then the nodes belong to the user of Debian's package. */
const owner = () => {
  if (process.getuid!() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

export async function startNodes({ synchronous }: { synchronous: boolean }): Promise<Nodes> {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-nodes-'))
  const user = owner()
  if (user) chownSync(folder, user.uid, user.gid)
  const running = new Map<string, ChildProcess>()
  const binaries = join(pathOf('pg_rewind')!, '..')

  function run(name: string, command: string, args: string[], env: Record<string, string>): void {
    const log = openSync(join(folder, `${name}.log`), 'a')
    const options = { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', log, log] as never, cwd: folder }
    running.set(name, spawn(command, args, { ...options, ...(name !== 'haproxy' && user) }))
    closeSync(log)
  }
  const dataOf = (name: Name) => join(folder, name, 'postgres')

  function start(name: Name): void {
    const own = join(folder, name)
    mkdirSync(own, { recursive: true })
    if (user) chownSync(own, user.uid, user.gid)
    if (!running.has(`${name} etcd`)) run(`${name} etcd`, 'etcd', [], etcdSettings(name, own))
    if (!running.has(`${name} patroni`)) {
      run(
        `${name} patroni`,
        'patroni',
        [join(FILES, 'patroni.yml')],
        patroniSettings(name, dataOf(name), own, binaries),
      )
    }
  }

  for (const name of NAMES) start(name)
  const haproxy = { HAPROXY_ADDRESS: BALANCER, NODE1: ADDRESSES.node1, NODE2: ADDRESSES.node2, NODE3: ADDRESSES.node3 }
  run('haproxy', pathOf('haproxy')!, ['-db', '-f', join(FILES, 'haproxy.cfg')], haproxy)

  const nodes: Nodes = {
    url: `postgresql://tundish:${PASSWORD}@${BALANCER}:5000/tundish?sslmode=disable`,
    readUrl: `postgresql://tundish:${PASSWORD}@${BALANCER}:5001/tundish?sslmode=disable`,
    primary: async () => (await members()).find(({ role }) => role === 'leader')!.name,
    untilWhole: () => until('three healthy nodes', async () => isWhole(await members(), synchronous), LONG_MS),
    kill(name, everything) {
      const programs = everything ? [`${name} patroni`, `${name} etcd`] : []
      for (const program of programs) {
        running.get(program)?.kill('SIGKILL')
        running.delete(program)
      }
      for (const pid of serverOf(dataOf(name))) trySignal(pid, 'SIGKILL')
    },
    async holdSenders(name) {
      for (const pid of serverOf(dataOf(name))) if (titleOf(pid).includes('walsender')) trySignal(pid, 'SIGSTOP')
    },
    start,
    stop() {
      for (const program of running.values()) program.kill('SIGKILL')
      for (const name of NAMES) for (const pid of serverOf(dataOf(name))) trySignal(pid, 'SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  try {
    await until('a primary', async () => (await members()).some(({ role }) => role === 'leader'), LONG_MS)
    await configure(await nodes.primary(), synchronous)
    await nodes.untilWhole()
    await makeDatabase(await nodes.primary())
  } catch (error) {
    process.stderr.write(readFileSync(join(folder, 'node1 patroni.log'), 'utf8').slice(-3000))
    nodes.stop()
    throw error
  }
  return nodes
}

interface Member {
  name: Name
  role: string
  state: string
  lag?: number | string
}

/** What the first Patroni that responds says of all of them; none while no one does. */
async function members(): Promise<Member[]> {
  for (const address of Object.values(ADDRESSES)) {
    const response = await fetch(`http://${address}:8008/cluster`, { signal: AbortSignal.timeout(1000) }).catch(
      () => {},
    )
    if (response?.ok) return ((await response.json()) as { members: Member[] }).members
  }
  return []
}

function isWhole(members: Member[], synchronous: boolean): boolean {
  const roles = members.map(({ role }) => role)
  const healthy = members.every(({ state, lag }) => (state === 'running' || state === 'streaming') && !Number(lag ?? 0))
  return members.length === 3 && healthy && roles.includes('leader') && (!synchronous || roles.includes('sync_standby'))
}

/** As `patronictl edit-config` does it. */
async function configure(primary: Name, synchronous: boolean): Promise<void> {
  const body = JSON.stringify({ synchronous_mode: synchronous })
  const response = await fetch(`http://${ADDRESSES[primary]}:8008/config`, { method: 'PATCH', body })
  if (!response.ok) throw new Error(`Patroni refused the setting: ${await response.text()}`)
}

async function makeDatabase(primary: Name): Promise<void> {
  const client = new pg.Client({ host: ADDRESSES[primary], user: 'postgres', password: PASSWORD, database: 'postgres' })
  await client.connect()
  try {
    await client.query(`create role tundish login password '${PASSWORD}'`)
    await client.query('create database tundish owner tundish')
  } finally {
    await client.end()
  }
}

function etcdSettings(name: Name, own: string): Record<string, string> {
  const address = ADDRESSES[name]
  return {
    ...settingsIn('etcd.env', name, address),
    ETCD_DATA_DIR: join(own, 'etcd'),
    // This machine is shared by all nodes.
    ETCD_HEARTBEAT_INTERVAL: '300',
    ETCD_ELECTION_TIMEOUT: '3000',
    ETCD_UNSAFE_NO_FSYNC: 'true',
  }
}

function patroniSettings(name: Name, data: string, own: string, binaries: string): Record<string, string> {
  return {
    ...settingsIn('node.env', name, ADDRESSES[name]),
    PATRONI_POSTGRESQL_DATA_DIR: data,
    PATRONI_POSTGRESQL_BIN_DIR: binaries,
    PATRONI_POSTGRESQL_PGPASS: join(own, 'pgpass'),
    PATRONI_SUPERUSER_PASSWORD: PASSWORD,
    PATRONI_REPLICATION_PASSWORD: PASSWORD,
    PATRONI_REWIND_PASSWORD: PASSWORD,
    PGHOST: own,
  }
}

/** The settings of a file for one node: its own name and address, and the addresses of this run. */
function settingsIn(file: string, name: Name, address: string): Record<string, string> {
  const lines = readFileSync(join(FILES, file), 'utf8').split('\n')
  const settings = lines.filter((line) => /^[A-Z]/.test(line)).map((line) => /^([A-Z0-9_]+)=(.*)$/.exec(line)!)
  return Object.fromEntries(
    settings.map(([, key, value]) => {
      const isList = value!.includes(',')
      const own = isList ? value! : value!.replace('node1', name).replaceAll('10.0.0.1', address)
      return [key!, own.replaceAll('10.0.0.', '127.0.0.1')]
    }),
  )
}

/** The process ids of a node's PostgreSQL: the server and what it started. */
function serverOf(data: string): number[] {
  const found = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
  const server = found.find((pid) => titleOf(pid).includes(`-D ${data}`))
  return server === undefined ? [] : [server, ...found.filter((pid) => parentOf(pid) === server)]
}

const titleOf = (pid: number) => readProc(pid, 'cmdline').replaceAll('\0', ' ')
const parentOf = (pid: number) => Number(/\) \S (\d+)/.exec(readProc(pid, 'stat'))?.[1])

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

function pathOf(program: string): string | undefined {
  const places = ['/usr/sbin', '/usr/lib/postgresql/15/bin', ...(process.env['PATH'] ?? '').split(':')]
  return places.map((place) => join(place, program)).find((path) => readable(path))
}

function readable(path: string): boolean {
  try {
    closeSync(openSync(path, 'r'))
    return true
  } catch {
    return false
  }
}
