// Creates a database cluster: first in a draft folder, then renamed, so that an incomplete one is never served.
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Account, isAlive, newOwner, run } from './account.ts'
import type { Home } from './home.ts'
import { majorVersion, usablePrograms } from './programs.ts'
import { otherVersion, outputSentence, unusablePath, upgradeUnfinished } from './sentences.ts'

export const SUPERUSER = 'tundish'
export const DATABASE = 'tundish'

// For a small server on a shared machine. They are written to postgresql.conf, where the operator may change them.
const SETTINGS = {
  max_connections: '200',
  shared_buffers: '128MB',
  work_mem: '8MB',
  maintenance_work_mem: '128MB',
  // Imports write much at once: fewer checkpoints, and less in each.
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  wal_compression: 'on',
  random_page_cost: '1.1',
  // Compiling a query costs more than our queries take.
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
}

// For a temporary database, which does not have to survive a crash of the machine. Without compression a database is copied
// in a fifth of the time.
const THROWAWAY = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_compression: 'off',
  // Each connection derives its key in a millisecond otherwise.
  scram_iterations: '1',
  autovacuum_naptime: '1d',
}

/** Refuses a cluster of another major version, before anything changes it. */
export function checkVersion(home: Home): void {
  refuseWhileUpgrading(home)
  const { cluster } = home
  const theirs = versionOf(cluster)
  const ours = majorVersion()
  if (theirs !== undefined && theirs !== ours) throw otherVersion(cluster, theirs, ours)
}

/** The major version of a cluster; undefined if there is none. */
export function versionOf(cluster: string): string | undefined {
  const file = join(cluster, 'PG_VERSION')
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
}

/** The file that says that the database is being moved to another version of PostgreSQL. */
export const upgradeMark = ({ folder }: Home) => join(folder, 'upgrading')

/** Refuses to open a database whose upgrade has begun: what is written to it now would be lost. */
export function refuseWhileUpgrading(home: Home): void {
  if (!home.isUpgrading && existsSync(upgradeMark(home))) throw upgradeUnfinished(home.folder)
}

export interface Making {
  throwaway: boolean
  /** Logs slow steps. */
  say: (what: string) => void
  signal?: AbortSignal | undefined
}

/** Creates the cluster of `home`; if another program does so at the same time, one of the two is kept. */
export async function makeCluster(home: Home, { throwaway, say, signal }: Making): Promise<void> {
  removeAbandonedDrafts(home.folder)
  const account = await newOwner(home.dataDir)
  const programs = await usablePrograms(home, account, say)
  // initdb calls postgres through a shell, with no more than quotes around its path.
  if (/["$`\\]/.test(programs)) throw unusablePath(programs)
  say(`Making the database in ${home.cluster}. This takes some seconds, and minutes on a busy machine.`)
  const draft = join(home.folder, `draft-${process.pid}-${randomBytes(4).toString('hex')}`)
  const passwordFile = `${draft}.password`
  try {
    mkdirSync(draft, { mode: 0o700 })
    writeFileSync(passwordFile, `${home.password}\n`, { mode: 0o600, flag: 'wx' })
    if (account) for (const path of [draft, passwordFile]) chownSync(path, account.uid, account.gid)
    await initialize(home, programs, draft, { account, passwordFile, throwaway, signal })
    await createDatabase(home, programs, draft, { account, signal })
    if (!existsSync(home.cluster)) renameSync(draft, home.cluster)
  } catch (error) {
    // A folder that is not empty cannot be renamed over: the other program was first.
    if (!existsSync(home.cluster)) throw error
  } finally {
    rmSync(passwordFile, { force: true })
    rmSync(draft, { recursive: true, force: true })
  }
}

interface Initializing {
  account: Account | undefined
  passwordFile: string
  throwaway: boolean
  signal: AbortSignal | undefined
}

async function initialize(home: Home, programs: string, draft: string, making: Initializing): Promise<void> {
  const settings = { ...SETTINGS, ...(making.throwaway ? THROWAWAY : {}) }
  const args = [
    `--pgdata=${draft}`,
    `--username=${SUPERUSER}`,
    `--pwfile=${making.passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The same sort order and letters on every machine, with any C library.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(making.throwaway ? ['--no-sync'] : []),
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  const { code, output } = await run(join(programs, 'bin', 'initdb'), args, making)
  making.signal?.throwIfAborted()
  if (code !== 0) throw outputSentence(output, 'make its database', home)
}

/** In single-user mode, so that the draft needs no server; that mode prints errors and still ends with 0. */
async function createDatabase(
  home: Home,
  programs: string,
  draft: string,
  { account, signal }: Pick<Initializing, 'account' | 'signal'>,
): Promise<void> {
  const args = ['--single', '-D', draft, 'template1']
  const { code, output } = await run(join(programs, 'bin', 'postgres'), args, {
    account,
    signal,
    input: `create database ${DATABASE}\n`,
  })
  signal?.throwIfAborted()
  if (code !== 0 || /\b(?:ERROR|FATAL|PANIC):/.test(output)) throw outputSentence(output, 'make its database', home)
}

/** Removes the drafts of programs that were killed while creating a cluster. */
function removeAbandonedDrafts(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = /^draft-(\d+)-/.exec(name)?.[1]
    if (pid && !isAlive(Number(pid))) rmSync(join(folder, name), { recursive: true, force: true })
  }
}
