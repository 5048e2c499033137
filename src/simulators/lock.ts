// Locks a ledger against a second simulator, with a file lock that the operating system releases when the process ends.
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { UsageError } from '../lib/errors.ts'
import { giveToFolder } from '../lib/files.ts'

/** Another program has the ledger open and runs the simulator. */
export class LedgerTaken extends UsageError {}

// SQLite's code for a database that is locked.
const BUSY = 5

/**
 * Takes the lock next to `file` or throws a `UsageError`; returns a function that releases it and may be called again.
 * SQLite is used only for its file lock: Node has none, and a file that holds a process id is wrong after a crash.
 */
export function lock(file: string): () => void {
  const path = `${file}.lock`
  const isNew = !existsSync(path)
  let holder: DatabaseSync | undefined
  try {
    holder = new DatabaseSync(path, { timeout: 0 })
    holder.exec('begin exclusive')
  } catch (error) {
    holder?.close()
    const { errcode, message } = error as { errcode?: number; message: string }
    if (errcode === undefined) throw error
    if (errcode !== BUSY) throw new UsageError(`${path} cannot be used (${message}).`)
    throw new LedgerTaken(`Another simulator has ${file} open: stop it, or give this one another ledger file.`)
  }
  if (isNew) giveToFolder(path)
  return () => {
    if (holder.isOpen) holder.close()
  }
}
