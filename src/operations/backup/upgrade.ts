// Moves the embedded database to the PostgreSQL of this installation: dumped by the old server, loaded by the new one, then swapped.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { isAlive } from '../../lib/embedded/account.ts'
import { DATABASE, SUPERUSER, upgradeMark, versionOf } from '../../lib/embedded/cluster.ts'
import { urlOf } from '../../lib/embedded/embedded.ts'
import { type Home, openHome, PORT } from '../../lib/embedded/home.ts'
import { joinServer, PRESENCE } from '../../lib/embedded/join.ts'
import { majorVersion, versionOfPrograms } from '../../lib/embedded/programs.ts'
import { commandLine, stopServer } from '../../lib/embedded/server.ts'
import { Refusal } from '../../lib/errors.ts'
import { syncFolderNow } from '../../lib/files.ts'
import { backup } from './backup.ts'
import { loadCopy } from './copy.ts'
import type { Progress } from './progress.ts'

export interface UpgradeOptions {
  /** The folder whose `bin` has the programs of the old PostgreSQL. */
  oldPrograms: string
  signal: AbortSignal
  progress(): Progress
}

export interface Upgraded {
  from: string
  to: string
  rows: number | undefined
  /** The folder with the old database. */
  kept: string
}

/**
 * Upgrades the database of DATA_DIR. After a kill the next call continues: each step leaves a file that is complete or absent, and the
 * old database stays as it is. While a mark is there, no other program opens the database.
 */
export async function upgradePostgresql(config: Config, options: UpgradeOptions): Promise<Upgraded> {
  const home: Home = { ...(await openHome(config.dataDir)), isUpgrading: true }
  const { folder, cluster } = home
  const files = {
    dump: join(folder, 'upgrade.backup'),
    fresh: join(folder, 'data.new'),
    loaded: join(folder, 'upgrade.loaded'),
  }
  const mark = upgradeMark(home)
  const to = majorVersion()
  const isBegun = existsSync(mark)
  const from = isBegun ? await versionInMark(mark) : versionOf(cluster)
  if (from === undefined)
    throw new Refusal(`There is no database in ${config.dataDir}: set DATA_DIR as for the server.`)
  if (from === to) throw new Refusal(`The database in ${config.dataDir} is of PostgreSQL ${to} already.`)
  if (isBegun) writeDurably(mark, `${from} ${process.pid}`)
  const kept = join(folder, `data-${from}`)
  let rows: number | undefined
  if (versionOf(cluster) !== to) {
    if (!isBegun) for (const file of Object.values(files)) rmSync(file, { recursive: true, force: true })
    if (!existsSync(files.loaded)) {
      if (existsSync(kept)) throw new Refusal(`${kept} is there, where the old database is to be kept: move it away.`)
      if (!existsSync(files.dump)) await dump(config, home, from, files.dump, options)
      rows = await loadInto({ ...home, cluster: files.fresh }, cluster, config, files.dump, options)
      writeDurably(files.loaded, '')
    }
    options.signal.throwIfAborted()
    if (existsSync(cluster)) renameSync(cluster, kept)
    renameSync(files.fresh, cluster)
    syncFolderNow(folder)
  }
  rmSync(files.dump, { force: true })
  rmSync(files.loaded, { force: true })
  // Last: from here on the database may be opened.
  rmSync(mark, { force: true })
  syncFolderNow(folder)
  return { from, to, rows, kept }
}

async function dump(config: Config, home: Home, from: string, file: string, options: UpgradeOptions): Promise<void> {
  const { oldPrograms, signal, progress } = options
  const found = versionOfPrograms(oldPrograms)
  if (found !== from)
    throw new Refusal(
      `The database is of PostgreSQL ${from}, and ${oldPrograms} has ${found === undefined ? 'no PostgreSQL that runs here' : `PostgreSQL ${found}`}: name the installation that made the database.`,
    )
  await withServer({ ...home, programs: oldPrograms }, config, signal, async (old, refuseOthers) => {
    await refuseOthers()
    writeDurably(upgradeMark(home), `${from} ${process.pid}`)
    await backup(old, { file, force: true, format: 'tundish', signal, progress: progress() })
  })
}

async function loadInto(
  fresh: Home,
  old: string,
  config: Config,
  file: string,
  options: UpgradeOptions,
): Promise<number> {
  const { signal, progress } = options
  // What a killed upgrade has left; both servers would use the same socket.
  await stopServer(old)
  await stopServer(fresh.cluster)
  rmSync(fresh.cluster, { recursive: true, force: true })
  let count = 0
  await withServer(fresh, config, signal, async (opened) => {
    const { rows } = await loadCopy(opened, { file, signal, progress: progress() })
    count = Object.values(rows).reduce((sum, one) => sum + one, 0)
  })
  return count
}

/** Runs `work` with the settings for the server of this home, which is stopped afterwards. */
async function withServer(
  home: Home,
  config: Config,
  signal: AbortSignal,
  work: (config: Config, refuseOthers: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const log = { info() {}, warn() {} }
  const presence = await joinServer(home, { log, signal })
  const { host } = presence
  const url = urlOf({ host, port: PORT, user: SUPERUSER, password: home.password, database: DATABASE, ssl: false })
  let isOurs = false
  const refuseOthers = async () => {
    await presence.query('select pg_advisory_unlock_shared($1, $2)', PRESENCE)
    const { rows } = await presence.query('select pg_try_advisory_lock($1, $2) as alone', PRESENCE)
    if (!rows[0].alone)
      throw new Refusal(`Programs of Tundish run on the database in ${home.dataDir}: stop them first.`)
    isOurs = true
  }
  try {
    if (home.programs === undefined) isOurs = true
    await work({ ...config, databaseUrl: url, directDatabaseUrl: undefined }, refuseOthers)
  } finally {
    const stopped = isOurs ? await stopServer(home.cluster) : true
    await presence.end().catch(() => {})
    if (!stopped) process.stderr.write(`PostgreSQL on ${home.cluster} could not be stopped.\n`)
  }
}

/** The version that an upgrade which has begun comes from. Throws while its process runs. */
async function versionInMark(mark: string): Promise<string> {
  const [from = '', pid = ''] = readFileSync(mark, 'utf8').trim().split(' ')
  if (Number(pid) !== process.pid && (await isUpgrade(Number(pid))))
    throw new Refusal(`The upgrade runs already, as the process ${pid}: wait for it.`)
  return from
}

/** Whether the process is one of this command: after a reboot its number may be another program's. */
async function isUpgrade(pid: number): Promise<boolean> {
  return isAlive(pid) && (await commandLine(pid)).includes('upgrade-postgresql')
}

function writeDurably(file: string, text: string): void {
  const draft = `${file}.part`
  try {
    writeFileSync(draft, `${text}\n`, { mode: 0o600, flush: true })
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    // Node does not name the file that a full disk does not take.
    throw Object.assign(error as Error, { path: file })
  }
}
