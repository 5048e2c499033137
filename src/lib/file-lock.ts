// A file lock, which the operating system releases when the process ends.
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { giveToFolder } from './files.ts'

// SQLite's code for a database that is locked.
const BUSY = 5

/**
 * Takes the lock that is the file at `path`; undefined while another has it. Returns a function that releases it and may be called
 * again. SQLite is used only for its file lock: Node has none, and a file that holds a process id is wrong after a crash.
 */
export function lockFile(path: string): (() => void) | undefined {
  const isNew = !existsSync(path)
  let holder: DatabaseSync | undefined
  try {
    holder = new DatabaseSync(path, { timeout: 0 })
    holder.exec('begin exclusive')
  } catch (error) {
    holder?.close()
    if ((error as { errcode?: number }).errcode === BUSY) return undefined
    throw error
  }
  const held = holder
  if (isNew) giveToFolder(path)
  return () => {
    if (held.isOpen) held.close()
  }
}
