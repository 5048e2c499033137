// A copy as a folder of files, one per table. The rows are kept in a SQLite file next to them; a changed table's file is replaced.
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../../lib/errors.ts'
import { lockFile } from '../../lib/file-lock.ts'
import { makeFolder } from '../../lib/files.ts'
import { writeTable } from './file-formats.ts'
import { sqliteTarget } from './sqlite.ts'
import { TABLES } from './tables.ts'
import { FORMATS, type Format, type Target } from './target.ts'

/**
 * A file that only grows would keep erased data. So each file is the current state of its table. After a run that changed the
 * table it is replaced in one step, and a reader sees the old file or the new one.
 */
export function filesTarget(folder: string, format: Format): Target {
  const hidden = join(folder, '.tundish')
  const database = join(hidden, 'copy.sqlite')
  if (existsSync(database)) refuseOtherFormat(folder, format)
  makeFolder(hidden, 0o700)
  const copy = sqliteTarget(database)
  let release: (() => void) | undefined
  return {
    ...copy,
    async open() {
      // Two at once would replace each other's drafts, and one would take back what the other has marked as changed.
      release = lockFile(join(hidden, 'lock'))
      if (!release)
        throw new Refusal(
          'Another sync is writing to this copy: wait until it has ended, or stop it. Nothing was stored.',
        )
      await copy.open()
    },
    async close() {
      await copy.close()
      release?.()
    },
    async complete() {
      await copy.complete()
      const changed = copy.changed()
      for (const table of TABLES) {
        const path = join(folder, `${table.name}.${format}`)
        // A run that was killed after its last batch has left its tables marked as changed.
        if (existsSync(path) && !changed.has(table.name)) continue
        const draft = join(hidden, `${table.name}.draft`)
        rmSync(draft, { force: true })
        try {
          await writeTable(draft, format, table, copy.rows(table))
          sync(draft)
          renameSync(draft, path)
        } catch (error) {
          // It would keep a full disk full, also for the next run, which has to write before it comes here.
          rmSync(draft, { force: true })
          throw error
        }
        sync(folder)
        copy.written(table)
      }
    },
  }
}

/** Files of another format would no longer be updated, and would keep erased data. */
function refuseOtherFormat(folder: string, format: Format): void {
  const isThere = (other: Format) => TABLES.some(({ name }) => existsSync(join(folder, `${name}.${other}`)))
  const other = FORMATS.find((one) => one !== format && isThere(one))
  if (other)
    throw new Refusal(
      `The copy in ${folder} has files of the format ${other}: give --format ${other}, name another folder, or remove these files.`,
    )
}

function sync(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}
