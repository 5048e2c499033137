// A copy as a folder of files, one a table: kept in a SQLite file beside them, written anew where something changed.
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../lib/errors.ts'
import { writeTable } from './file-formats.ts'
import { sqliteTarget } from './sqlite.ts'
import { TABLES } from './tables.ts'
import { FORMATS, type Format, type Target } from './target.ts'

/**
 * A file that only grows would keep what was erased. So each file is the present state of its table, replaced in one
 * step after a run that changed it: a reader sees the old one or the new one.
 */
export function filesTarget(folder: string, format: Format): Target {
  const hidden = join(folder, '.tundish')
  const place = join(hidden, 'copy.sqlite')
  if (existsSync(place)) refuseOtherFormat(folder, format)
  mkdirSync(hidden, { recursive: true, mode: 0o700 })
  const copy = sqliteTarget(place)
  return {
    ...copy,
    async complete() {
      await copy.complete()
      const changed = copy.changed()
      for (const table of TABLES) {
        const path = join(folder, `${table.name}.${format}`)
        // A run that was killed behind its last batch left the mark of what is still to be written.
        if (existsSync(path) && !changed.has(table.name)) continue
        const draft = join(hidden, `${table.name}.draft`)
        rmSync(draft, { force: true })
        await writeTable(draft, format, table, copy.rows(table))
        sync(draft)
        renameSync(draft, path)
        sync(folder)
        copy.written(table)
      }
    },
  }
}

/** Files of another format would not be written any more, and keep what was erased. */
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
