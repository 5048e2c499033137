// The server process of an embedded database: start it in its own session, identify it, stop it.
import { spawn } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { giveToFolder } from '../files.ts'
import { ENVIRONMENT, isAlive, ownerOf, run } from './account.ts'
import { type Home, PORT, socketFolder } from './home.ts'
import { usablePrograms } from './programs.ts'

/** A server that this program has just started; `end` is set once it has ended again. */
export interface Starting {
  pid: number
  end?: { code: number | null; output: string }
}

const LONGEST_LOG = 8 * 1024 * 1024

// A shutdown writes all changed pages; a slow disk may need this long.
const STOP_TIMEOUT_MS = 60_000

// How long a server may take to react to a signal before it gets a stronger one.
const GIVE_UP_MS = 20_000

// A server fills its lock file right after creating it; an empty one this old is left over from a power failure.
const EMPTY_LOCK_MS = 5_000

// Set at every start, overriding postgresql.conf: how the server is reached, and that its log holds no personal data.
// Messages of level ERROR may quote values and are returned to the client anyway, so only higher levels are logged.
const FIXED = {
  listen_addresses: '',
  port: String(PORT),
  log_destination: 'stderr',
  logging_collector: 'off',
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_statement: 'none',
  log_min_duration_statement: '-1',
  log_min_duration_sample: '-1',
  log_transaction_sample_rate: '0',
  log_duration: 'off',
  log_parameter_max_length: '0',
  log_parameter_max_length_on_error: '0',
  log_checkpoints: 'off',
  // Its programs start it again. PostgreSQL 18 that restarts by itself on a full disk can refuse connections until it is stopped.
  restart_after_crash: 'off',
}

/** Starts the server and returns at once. PostgreSQL itself allows only one server on a cluster. */
export async function startServer(home: Home, say: (what: string) => void): Promise<Starting> {
  const account = ownerOf(home.cluster)
  const programs = await usablePrograms(home, account, say)
  const sockets = socketFolder(home, account)
  await removeStaleLock(join(home.cluster, 'postmaster.pid'), home.cluster)
  await removeStaleLock(join(sockets, `.s.PGSQL.${PORT}.lock`), home.cluster)
  trimLog(home)

  // The setting is a list: quoted, a comma in the path does not end an item.
  const settings = { ...FIXED, unix_socket_directories: `"${sockets.replaceAll('"', '""')}"` }
  const args = ['-D', home.cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const isNew = !existsSync(home.logFile)
  const log = openSync(home.logFile, 'a', 0o600)
  if (isNew) giveToFolder(home.logFile)
  const sizeBefore = statSync(home.logFile).size
  // Detached, in its own session: Ctrl-C in the terminal does not reach the server, which goes on for other programs.
  const child = spawn(join(programs, 'bin', 'postgres'), args, {
    ...account,
    cwd: '/',
    env: ENVIRONMENT,
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  child.unref()
  const starting: Starting = { pid: child.pid ?? 0 }
  child.on('error', ({ message }) => {
    starting.end = { code: -1, output: message }
  })
  child.on('exit', (code) => {
    // The folder may be removed by then: a temporary one is, when its last program has ended.
    const output = existsSync(home.logFile) ? readFileSync(home.logFile).subarray(sizeBefore).toString() : ''
    starting.end = { code, output }
  })
  return starting
}

/** Ends a server that this program has started and cannot use. */
export async function giveUpServer(starting: Starting): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (starting.end || starting.pid === 0) return
    try {
      process.kill(starting.pid, signal)
    } catch {
      return
    }
    const giveUpAt = performance.now() + GIVE_UP_MS
    while (!starting.end && performance.now() < giveUpAt) await sleep(10)
  }
}

/** The server in a cluster's lock file, running or not; `sockets` is empty until it listens. */
export function lastServer(cluster: string): { pid: number; sockets: string } | undefined {
  const lines = readLines(join(cluster, 'postmaster.pid'))
  const pid = Number(lines[0])
  return pid > 0 ? { pid, sockets: lines[4] ?? '' } : undefined
}

/** Whether the process is the server of this cluster: by its working folder, or its command line where that is hidden. */
export async function isServerOf(cluster: string, pid: number): Promise<boolean> {
  if (!isAlive(pid)) return false
  try {
    const folder = statSync(`/proc/${pid}/cwd`)
    const { dev, ino } = statSync(cluster)
    return folder.dev === dev && folder.ino === ino
  } catch {
    const command = await commandLine(pid)
    return command.includes('postgres') && command.includes(cluster)
  }
}

/** Ends every connection and stops the server. Returns whether it has stopped; foreign processes are left alone. */
export async function stopServer(cluster: string): Promise<boolean> {
  const server = lastServer(cluster)
  if (!server || !(await isServerOf(cluster, server.pid))) return false
  process.kill(server.pid, 'SIGINT')
  const giveUpAt = performance.now() + STOP_TIMEOUT_MS
  while (performance.now() < giveUpAt) {
    if (lastServer(cluster)?.pid !== server.pid) return true
    await sleep(5)
  }
  return false
}

/** Bounds the size of the log: the server appends to it, so it can be truncated while the server runs. */
export function trimLog({ logFile }: Home): void {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
  if (size < LONGEST_LOG) return
  const kept = `${logFile}.1`
  try {
    copyFileSync(logFile, kept)
    giveToFolder(kept)
    truncateSync(logFile)
  } catch {
    // A full disk has no room for the copy, and must end neither the program nor a start. The next call tries again.
    rmSync(kept, { force: true })
  }
}

/**
 * After a crash or a reboot the process id in a lock file may be another program's by now, and PostgreSQL would refuse
 * to start for it. (That of a dead process it removes by itself.)
 */
async function removeStaleLock(file: string, cluster: string): Promise<void> {
  const pid = readLines(file)[0]
  // A file system may also give a file its size and lose its content: then it is full of zeros.
  const isLost = pid !== undefined && !/^-?\d/.test(pid)
  // The clock may have been set back since.
  if (isLost && Math.abs(Date.now() - statSync(file).mtimeMs) > EMPTY_LOCK_MS) return rmSync(file, { force: true })
  if (!pid || !isAlive(Number(pid)) || (await isServerOf(cluster, Number(pid)))) return
  const aside = `${file}.${process.pid}`
  renameSync(file, aside)
  // Another program may have started the server since the check: then this is its lock.
  if (readLines(aside)[0] !== pid) linkSync(aside, file)
  rmSync(aside)
}

/** The command line of a process; '' if there is none. */
export async function commandLine(pid: number): Promise<string> {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return (await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).output
  }
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
