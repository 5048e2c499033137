// tundish backup: saves the database into one file while the server runs.
import { stat } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import type { Config } from '../../config.ts'
import { UsageError } from '../../lib/errors.ts'
import { type Backup, backup } from '../../operations/backup/backup.ts'
import type { Format } from '../../operations/backup/format.ts'
import { showProgress } from '../../operations/backup/progress.ts'
import { abortedWhenStopped, withSettings } from './command.ts'

interface Options {
  force?: boolean
  format?: Format
  json?: boolean
}

export function register(program: Command): void {
  const command = program
    .command('backup <file>')
    .description('Save the database to a file (- for standard output) while the server runs; see docs/backup.md')
    .option('--force', 'Overwrite an existing file')
    .addOption(
      new Option(
        '--format <format>',
        'postgresql: of pg_dump, the default if that program is installed and fits the server; tundish: needs no tools',
      ).choices(['postgresql', 'tundish'] satisfies Format[]),
    )
  withSettings(command, async (config: Config, ...given: unknown[]) => {
    const [file, { force = false, format, json }] = given as [string, Options]
    if (file === '-' && (json || format === 'postgresql'))
      throw new UsageError('Standard output takes a backup in our own format and nothing else: name a file.')
    const progress = showProgress(process.stderr)
    const made = await backup(config, { file, force, format, signal: abortedWhenStopped(), progress })
    const bytes = file === '-' ? undefined : (await stat(file)).size
    if (file === '-') process.stderr.write(`${summary(made)}\n`)
    return { json: report(file, made, bytes), text: file === '-' ? '' : `${summary(made)} ${reminder(config, file)}` }
  })
}

function report(file: string, { header, format, rows }: Backup, bytes: number | undefined) {
  const { made_at, tundish, postgresql, tables } = header
  return { file, bytes, format, made_at, tundish, postgresql, tables: tables.length, rows: total(rows) ?? null }
}

function summary({ header, rows }: Backup): string {
  const count = total(rows)
  const what = count === undefined ? '' : ` with ${count.toLocaleString('en')} rows`
  return `Saved ${header.tables.length} tables${what} as of ${header.made_at}.`
}

function reminder({ masterKey, dataDir, erasureLedger }: Config, file: string): string {
  const key = masterKey ? 'MASTER_KEY' : `${dataDir}/master.key`
  return `${file} is not encrypted. Keep ${key}, which decrypts the keys in it, and ${erasureLedger} in other places.`
}

const total = (rows: Record<string, number> | undefined) =>
  rows && Object.values(rows).reduce((sum, count) => sum + count, 0)
