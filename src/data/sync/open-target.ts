// Chooses the target that an address names.
import { UsageError } from '../../lib/errors.ts'
import type { Format, Target } from './target.ts'

/** The target that `to` names; nothing is opened yet. Only its own module is loaded. */
export async function targetOf(to: string, format: Format | undefined): Promise<Target> {
  const [, scheme = '', rest = ''] = /^(sqlite|duckdb|postgres|postgresql):(.*)$/s.exec(to) ?? []
  if (scheme !== '' && format) throw new UsageError('--format is for a folder of files; a database has its own.')
  if (scheme !== '' && (rest === '' || rest === ':memory:'))
    throw new UsageError(`--to ${scheme}: needs a file after the colon.`)
  if (scheme === 'sqlite') return (await import('./sqlite.ts')).sqliteTarget(rest)
  if (scheme === 'duckdb') return (await import('./duckdb.ts')).duckdbTarget(rest)
  if (scheme !== '') return (await import('./postgres.ts')).postgresTarget(to)
  if (to === '-')
    throw new UsageError(
      '--to must be a folder, not standard output: a copy has several files. A folder called - is ./-.',
    )
  // One letter is a drive. A folder whose name has a colon is written with a path: ./a:b.
  if (to === '' || /^[a-z][a-z0-9+.-]+:/i.test(to))
    throw new UsageError('--to must be a folder, sqlite:FILE, duckdb:FILE or postgres://….')
  return (await import('./files.ts')).filesTarget(to, format ?? 'ndjson')
}
