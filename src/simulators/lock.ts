// Locks a ledger against a second simulator.
import { UsageError } from '../lib/errors.ts'
import { lockFile } from '../lib/file-lock.ts'

/** Another program has the ledger open and runs the simulator. */
export class LedgerTaken extends UsageError {}

/** Takes the lock next to `file` or throws a `UsageError`; returns a function that releases it and may be called again. */
export function lock(file: string): () => void {
  const path = `${file}.lock`
  const release = take(path)
  if (!release)
    throw new LedgerTaken(`Another simulator has ${file} open: stop it, or give this one another ledger file.`)
  return release
}

function take(path: string): (() => void) | undefined {
  try {
    return lockFile(path)
  } catch (error) {
    const { errcode, message } = error as { errcode?: number; message: string }
    if (errcode === undefined) throw error
    throw new UsageError(`${path} cannot be used (${message}).`)
  }
}
