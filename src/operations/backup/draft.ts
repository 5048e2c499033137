// Writes a file that exists completely or not at all: under a temporary name, and synced to disk before it is renamed.
import { existsSync } from 'node:fs'
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { isAlive } from '../../lib/embedded/account.ts'
import { Refusal } from '../../lib/errors.ts'
import { syncFolder } from '../../lib/files.ts'

const MODE = 0o600

/** Runs `write` on a draft of `path`, then renames the draft to `path`. An error removes the draft. */
export async function writeWhole(
  path: string,
  overwrite: boolean,
  write: (file: FileHandle) => Promise<void>,
): Promise<void> {
  refuseExisting(path, overwrite)
  const draft = `${path}.partial-${process.pid}`
  try {
    await removeAbandoned(path)
    const file = await open(draft, 'wx+', MODE)
    try {
      await write(file)
      await file.sync()
    } catch (error) {
      // A stream that failed has closed it already, which is not why.
      await file.close().catch(() => {})
      throw error
    }
    await file.close()
    refuseExisting(path, overwrite)
    await rename(draft, path)
    await syncFolder(dirname(resolve(path)))
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {})
    throw asRefusal(error, path)
  }
}

function refuseExisting(path: string, overwrite: boolean): void {
  if (!overwrite && existsSync(path)) throw new Refusal(`${path} exists already: name another file, or add --force.`)
}

/** Removes drafts of killed processes. */
async function removeAbandoned(path: string): Promise<void> {
  const folder = dirname(resolve(path))
  const prefix = `${basename(path)}.partial-`
  for (const name of await readdir(folder)) {
    const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : 0
    if (pid > 0 && !isAlive(pid)) await rm(join(folder, name), { force: true })
  }
}

function asRefusal(error: unknown, path: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (typeof code !== 'string' || syscall === undefined || syscall === 'connect') return error
  const reasons: Record<string, string> = {
    ENOENT: 'its folder does not exist',
    EISDIR: 'it is a folder',
    EACCES: 'this user may not write there',
    EROFS: 'that disk is read-only',
    ENOSPC: 'its disk is full',
    EDQUOT: 'its disk is full',
  }
  return new Refusal(`${path} cannot be written: ${reasons[code] ?? code}. No file was left.`)
}
