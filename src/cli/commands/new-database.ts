// A command in another folder than usual makes an empty database there.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'

/** Says so on a terminal, where the command waits some seconds for it. */
export function sayIfNew({ databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>): void {
  if (databaseUrl !== undefined || !process.stderr.isTTY || existsSync(join(dataDir, 'postgres'))) return
  process.stderr.write(`Making an empty database in ${dataDir}: for an existing one set DATA_DIR or DATABASE_URL.\n`)
}
