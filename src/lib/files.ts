// Whose the files are that we make: when we are root, they go to the owner of the folder they lie in. Else one command that
// somebody runs as root would keep the service, which runs as another user, from its own files.
import { lchownSync, mkdirSync, statSync } from 'node:fs'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isRoot } from './embedded/account.ts'

const { O_APPEND, O_CREAT, O_EXCL, O_RDWR } = constants

/** Gives what we have just made to the owner of its folder. */
export function giveToFolder(path: string): void {
  if (!isRoot()) return
  const { uid, gid } = statSync(dirname(path))
  try {
    // Never what a link points to.
    lchownSync(path, uid, gid)
  } catch {
    // Some disks and containers allow it to nobody. The doctor tells of files that are another's.
  }
}

/** Makes the folder, and those above it that are missing. */
export function makeFolder(path: string): void {
  const first = mkdirSync(path, { recursive: true })
  if (first === undefined) return
  const made: string[] = []
  for (let folder = resolve(path); folder.length >= resolve(first).length; folder = dirname(folder)) made.push(folder)
  for (const folder of made.reverse()) giveToFolder(folder)
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
