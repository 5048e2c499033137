// Creates files and folders. Those created by root are given to the owner of their folder: otherwise one command run as
// root would lock the service, which runs as another user, out of its files.
import { closeSync, existsSync, fsyncSync, lchownSync, mkdirSync, openSync, statSync } from 'node:fs'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isRoot } from './embedded/account.ts'

const { O_APPEND, O_CREAT, O_EXCL, O_RDWR } = constants

const REASONS: Record<string, string> = {
  ENOENT: 'it does not exist',
  EACCES: 'this user may not',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  EROFS: 'its disk is read-only',
  ENOSPC: 'its disk is full',
}

/** Why a file or folder cannot be used, with the code: `it does not exist (ENOENT)`. */
export function whyNot({ code = 'unknown error' }: NodeJS.ErrnoException): string {
  return Object.hasOwn(REASONS, code) ? `${REASONS[code]} (${code})` : code
}

/** Gives a new file or folder to the owner of its folder. */
export function giveToFolder(path: string): void {
  if (!isRoot()) return
  const { uid, gid } = statSync(dirname(path))
  try {
    // Not the target of a link.
    lchownSync(path, uid, gid)
  } catch {
    // Some disks and containers do not allow it. The doctor reports files that belong to another user.
  }
}

/**
 * Makes the folder, and those above it that are missing; the folder itself gets `mode`. Returns whether it was missing.
 * Not by Node's `recursive`: below /proc, where mkdir fails with ENOENT though the parent exists, that never returns.
 */
export function makeFolder(path: string, mode = 0o777): boolean {
  const folder = resolve(path)
  if (existsSync(folder)) return false
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // Another program was first, or it is a dangling link.
    if (existsSync(folder)) return false
    throw Object.assign(error as NodeJS.ErrnoException, { code: 'ENOENT' })
  }
  giveToFolder(folder)
  return true
}

/** Opens a file to append to it and to read it, for its owner alone, and makes it with its folder if need be. */
export async function openToAppend(path: string, flags = 0): Promise<FileHandle> {
  makeFolder(dirname(path))
  const append = O_RDWR | O_APPEND | O_CREAT | flags
  try {
    const file = await open(path, append | O_EXCL, 0o600)
    giveToFolder(path)
    return file
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return open(path, append, 0o600)
  }
}

/** Appends whole lines to a file that `openToAppend` makes, and waits until they are on disk. */
export async function appendLines(path: string, lines: string): Promise<void> {
  const file = await openToAppend(path)
  try {
    const { size } = await file.stat()
    const last = await file.read({ buffer: Buffer.alloc(1), position: Math.max(size - 1, 0) })
    // A line that a crash or a full disk cut off must not be joined with ours.
    const torn = size > 0 && last.buffer.toString() !== '\n'
    await naming(path, async () => {
      await file.appendFile(torn ? `\n${lines}` : lines)
      await file.sync()
    })
    if (size === 0) await syncFolder(dirname(path))
  } finally {
    await file.close()
  }
}

/** A new file, or a new name of one, survives a crash only when its folder is synced, too. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}

/** Syncs a folder without yielding to other work. */
export function syncFolderNow(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Names the file in errors of `work`: those of an open file do not. */
export async function naming<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw Object.assign(error as Error, { path })
  }
}
