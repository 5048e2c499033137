// A command that finds no database makes an empty one, which in the wrong folder is a mistake.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'

/** Says on a terminal that it will be made, which takes some seconds, and how to name an existing one. */
export function sayIfNew({ databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>): void {
  if (databaseUrl !== undefined || !process.stderr.isTTY || existsSync(join(dataDir, 'postgres'))) return
  process.stderr.write(`Making an empty database in ${dataDir}: for an existing one set DATA_DIR or DATABASE_URL.\n`)
}
