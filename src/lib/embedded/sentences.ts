// Turns errors of the operating system or PostgreSQL into one sentence that says what to do.
import { statfsSync } from 'node:fs'
import { UsageError } from '../errors.ts'

const OTHERWISE = 'or set DATABASE_URL to a PostgreSQL server of your own'

/** A file-system error under `dataDir` as a `UsageError`; anything else is returned unchanged. */
export function fileSentence(error: unknown, dataDir: string): unknown {
  const { code, syscall, path = dataDir } = error as NodeJS.ErrnoException
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return new UsageError(
        `${path} cannot be used by this user (${code}): give it the right to read and write there, or set DATA_DIR to another folder.`,
      )
    case 'EROFS':
      return new UsageError(
        `${path} is on a read-only disk (EROFS): set DATA_DIR to a writable folder, or mount the disk writable.`,
      )
    case 'ENOTDIR':
    case 'EEXIST':
      return new UsageError(`${path} is not a folder: set DATA_DIR to one.`)
    case 'ENOENT':
      // Node also reports this code when it cannot make folders because the disk is read-only.
      if (syscall !== 'mkdir') return error
      return new UsageError(
        `${path} cannot be created, possibly because the disk is read-only: set DATA_DIR to a writable folder.`,
      )
    default:
      return fullDiskSentence(error, dataDir)
  }
}

// The last one is PostgreSQL's.
const DISK_FULL = ['ENOSPC', 'EDQUOT', '53100']

/** A full disk as a `UsageError`, whether a file or PostgreSQL reports it; anything else is returned unchanged. */
export function fullDiskSentence(error: unknown, dataDir: string): unknown {
  return DISK_FULL.includes((error as { code?: string }).code ?? '') ? diskFull(dataDir) : error
}

/** `output` is what a PostgreSQL program printed before it failed, `doing` is its task. */
export function outputSentence(output: string, doing: string, place: { dataDir: string; logFile: string }): UsageError {
  if (/No space left on device|Disk quota exceeded|wrote only \d+ of \d+ bytes/.test(output) || isFull(place.dataDir))
    return diskFull(place.dataDir)
  const library = /error while loading shared libraries: ([^:\s]+)/.exec(output)?.[1]
  if (library) {
    return new UsageError(`PostgreSQL needs ${library}, which this machine does not have: install it, ${OTHERWISE}.`)
  }
  if (output.includes('could not look up effective user ID')) {
    return new UsageError(
      `This user has no name on this machine, and PostgreSQL needs one: add it to /etc/passwd, ${OTHERWISE}.`,
    )
  }
  const reason = /^.*\b(?:FATAL|PANIC|error):\s*(.+)$/im.exec(output)?.[1] ?? lastLine(output)
  return new UsageError(`PostgreSQL could not ${doing}: ${reason || 'no message'} (its log is ${place.logFile}).`)
}

export function cannotRun(program: string, reason: string): UsageError {
  return new UsageError(
    `${program} cannot run on this machine (${reason}): remove node_modules and start again, ${OTHERWISE}.`,
  )
}

export function notInstalled(platform: string): UsageError {
  return new UsageError(
    `The embedded PostgreSQL for ${platform} is not installed: run npm install with optional packages, ${OTHERWISE}.`,
  )
}

export function unusablePath(programs: string): UsageError {
  return new UsageError(
    `PostgreSQL cannot be set up from ${programs}: rename the folder that has a quote, dollar, backtick or backslash in its name, ${OTHERWISE}.`,
  )
}

export function otherVersion(cluster: string, theirs: string, ours: string): UsageError {
  return new UsageError(
    `The database in ${cluster} was created by PostgreSQL ${theirs}, and this Tundish includes PostgreSQL ${ours}: ` +
      `move it with tundish upgrade-postgresql --old FOLDER, where FOLDER is the installation of the Tundish that made it ` +
      `(docs/upgrading.md), or serve the folder with PostgreSQL ${theirs} and set DATABASE_URL.`,
  )
}

export function upgradeUnfinished(folder: string): UsageError {
  return new UsageError(
    `The upgrade of the database in ${folder} to another PostgreSQL has not ended: wait for it, or run tundish upgrade-postgresql again.`,
  )
}

export function wrongPassword(dataDir: string): UsageError {
  return new UsageError(
    `The password in ${dataDir}/postgres.password is not that of the database there: restore the file that belongs to it.`,
  )
}

export function noResponse(home: { cluster: string; logFile: string }, problem: string, pid?: number): UsageError {
  const stop = pid ? `stop it with "kill -INT ${pid}" and start again` : 'start again'
  return new UsageError(`PostgreSQL on ${home.cluster} does not respond (${problem}): see ${home.logFile}, ${stop}.`)
}

export function diskFull(dataDir: string): UsageError {
  return new UsageError(
    `There is no space left on the disk of ${dataDir}: free some, or set DATA_DIR to a folder on another disk.`,
  )
}

/** Whether the disk is full, when PostgreSQL could not log the reason. */
function isFull(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize < 64 * 1024
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
