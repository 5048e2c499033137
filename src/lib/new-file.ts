// Small files that the first program that needs them creates once: keys and passwords.
import { randomUUID } from 'node:crypto'
import { linkSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { giveToFolder, syncFolderNow } from './files.ts'

/** Creates the file with mode 0600 and syncs it: complete or not at all, and the first of two programs wins. */
export function writeNew(file: string, text: string): void {
  const draft = `${file}.${randomUUID()}`
  try {
    writeFileSync(draft, `${text}\n`, { mode: 0o600, flush: true })
    giveToFolder(draft)
    linkSync(draft, file)
  } catch (error) {
    // Node does not name the file that a full disk does not take.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw Object.assign(error as Error, { path: file })
  } finally {
    rmSync(draft, { force: true })
  }
  syncFolderNow(dirname(file))
}
