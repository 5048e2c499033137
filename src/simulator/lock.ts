// Keeps two simulators off one ledger, with a lock of the operating system that ends with its process, however it ends.
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { UsageError } from '../lib/errors.ts'
import { giveToFolder } from '../lib/owner.ts'

/**
 * Takes the lock beside `file` or throws a `UsageError`; returns what gives it back, once or more often.
 * SQLite is here only for its file lock: Node itself has none, and a file with a process id in it lies after a crash.
 */
export function lock(file: string): () => void {
  const isNew = !existsSync(`${file}.lock`)
  const holder = new DatabaseSync(`${file}.lock`, { timeout: 0 })
  if (isNew) giveToFolder(`${file}.lock`)
  try {
    holder.exec('begin exclusive')
  } catch (error) {
    holder.close()
    if ((error as { errcode?: number }).errcode !== 5) throw error
    throw new UsageError(`Another simulator has ${file} open: stop it, or give this one a ledger file of its own.`)
  }
  return () => {
    if (holder.isOpen) holder.close()
  }
}
