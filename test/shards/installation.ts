// Three shards, each a PostgreSQL and a server, behind HAProxy with the files of deploy/shards; all on this machine.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { readDirectory } from '../../src/operations/shards/follow.ts'
import { readShards } from '../../src/operations/shards/shard.ts'
import { freePort, PROGRAM_ENV, type ServerProcess, startProcess } from '../support/cli.ts'
import { type Cluster, openCluster } from '../support/cluster.ts'
import { type DatabaseProxy, openProxy } from '../support/proxy.ts'
import { openSimulator } from '../support/simulators.ts'
import { until } from '../support/time.ts'
import { HAPROXY } from './haproxy-path.ts'

const FILES = join(import.meta.dirname, '../../deploy/shards')
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
export const NAMES = ['a', 'b', 'c'] as const
export type Name = (typeof NAMES)[number]

export interface TestShard {
  name: Name
  cluster: Cluster
  env: Record<string, string>
  server: ServerProcess
}

export interface Restartable {
  /** The id of the running process. */
  pid(): number
  kill(): Promise<void>
  start(): Promise<void>
}

export interface Installation {
  /** Of HAProxy: the public side, and the operator's. */
  url: string
  operatorUrl: string
  simulatorUrl: string
  /** With the settings of each shard, and the maps. */
  settings: string
  maps: string
  shards: Record<Name, TestShard>
  haproxy: Restartable
  /** Between HAProxy and the server of shard c. */
  network: DatabaseProxy
  directory: ChildProcess
  close(): Promise<void>
}

export async function openInstallation(): Promise<Installation> {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-shards-'))
  const [settings, maps] = [join(folder, 'settings'), join(folder, 'maps')]
  for (const one of [settings, maps]) mkdirSync(one)
  const closers: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })]
  const close = async () => {
    for (const closer of closers.reverse()) await closer()
  }
  try {
    const simulator = await openSimulator()
    closers.push(simulator.cleanUp)
    const masterKey = randomBytes(32).toString('base64')
    const shards = {} as Record<Name, TestShard>
    for (const name of NAMES) {
      const cluster = await openLogicalCluster()
      closers.push(cluster.remove)
      const env = settingsOf(join(folder, name), cluster, masterKey, simulator.url)
      const text = Object.entries(env).map(([key, value]) => `${key}='${value}'\n`)
      writeFileSync(join(settings, `${name}.env`), text.join(''))
      const server = await startProcess(env)
      closers.push(server.stop)
      shards[name] = { name, cluster, env, server }
    }
    const [port, operatorPort] = [await freePort(), await freePort()]
    const socket = join(folder, 'haproxy.sock')
    copyFileSync(join(FILES, '503.http'), join(maps, '503.http'))
    for (const name of ['keys.map', 'organizations.map', 'projects.map']) writeFileSync(join(maps, name), '')
    const network = await openProxy(shards.c.server.url)
    closers.push(network.cut)
    const addressOf = (name: Name) => hostOf(name === 'c' ? network.url : shards[name].server.url)
    const haproxy = haproxyWith(socket, {
      HAPROXY_ADDRESS: `127.0.0.1:${port}`,
      HAPROXY_OPERATOR_ADDRESS: `127.0.0.1:${operatorPort}`,
      HAPROXY_MAPS: maps,
      HAPROXY_SOCKET: socket,
      ...Object.fromEntries(NAMES.map((name) => [`SHARD_${name.toUpperCase()}`, addressOf(name)])),
      ...Object.fromEntries(
        NAMES.map((name) => [`OPERATOR_${name.toUpperCase()}`, hostOf(shards[name].server.adminUrl)]),
      ),
    })
    closers.push(haproxy.kill)
    await haproxy.start()
    const words = ['shards', 'directory', '--in', settings, '--to', maps, '--haproxy', socket, '--follow']
    const directory = start(process.execPath, [MAIN, ...words], { ...PROGRAM_ENV, LOG_LEVEL: 'warn' })
    closers.push(() => void directory.kill('SIGTERM'))
    const [url, operatorUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${operatorPort}`]
    return { url, operatorUrl, simulatorUrl: simulator.url, settings, maps, shards, haproxy, network, directory, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Waits until the maps in HAProxy have everything that the shards have now. A response cannot show it: HAProxy asks the
 * shards in turn for what it does not know, and one of them has it.
 */
export async function mapsLoaded({ settings, maps }: Pick<Installation, 'settings' | 'maps'>): Promise<void> {
  const { organizations, projects, keys } = await readDirectory(readShards(settings), maps)
  const expected = Object.entries({ organizations, projects, keys })
  await until('HAProxy to have the maps', async () => {
    for (const [name, places] of expected) {
      const socket = connect(join(maps, '../haproxy.sock'))
      socket.write(`show map ${join(maps, `${name}.map`)}\n`)
      const lines = (await textOf(socket)).split('\n').map((line) => line.split(' ').slice(1).join(' '))
      if ([...places].some(([id, shard]) => !lines.includes(`${id} ${shard}`))) return false
    }
    return true
  })
}

const hostOf = (url: string) => new URL(url).host

/** HAProxy with the settings of deploy/shards, to be killed and started again. */
function haproxyWith(socket: string, env: Record<string, string>): Restartable {
  let running: ChildProcess | undefined
  return {
    pid: () => running!.pid!,
    async kill() {
      if (!running) return
      const ended = once(running, 'exit')
      running.kill('SIGKILL')
      await ended
      running = undefined
      rmSync(socket, { force: true })
    },
    async start() {
      running = start(HAPROXY!, ['-db', '-f', join(FILES, 'haproxy.cfg')], env)
      await until('HAProxy to listen', () => existsSync(socket))
    },
  }
}

/** A server whose log can be replicated by rows. */
export async function openLogicalCluster(): Promise<Cluster> {
  const cluster = await openCluster()
  await cluster.query('alter system set wal_level = logical')
  await cluster.stop()
  await cluster.start()
  return cluster
}

export function settingsOf(
  folder: string,
  { url }: Cluster,
  masterKey: string,
  simulatorUrl: string,
): Record<string, string> {
  return {
    DATABASE_URL: url,
    DATA_DIR: folder,
    MASTER_KEY: masterKey,
    SIMULATOR_URL: simulatorUrl,
    PORT: '0',
    ADMIN_PORT: '0',
    RATE_LIMIT: '0',
    // HAProxy sends names of headers in lower case.
    SECRET_HEADER_CASE: 'any',
    TRUST_PROXY: '127.0.0.1',
    LOG_LEVEL: 'info',
  }
}

function start(program: string, args: string[], env: Record<string, string>): ChildProcess {
  return spawn(program, args, { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', 'inherit', 'inherit'] })
}
