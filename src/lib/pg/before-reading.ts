// Databases from before 1.0: their migrations were put together into the first files of `migrations/`, under the same numbers.
import { UsageError } from '../errors.ts'

type Applied = readonly { version: number; name: string }[]

const FIRST = 'foundation'

export const isBeforeReading = (applied: Applied) =>
  applied.some(({ version, name }) => version === 1 && name === FIRST)

export const BEFORE_READING: [message: string, fix: string] = [
  'The database was made by a Tundish before 1.0.',
  'Back it up with the old program, and restore the backup with this one into a new database: docs/upgrading.md says how.',
]

/** Throws a `UsageError` for such a database. */
export function refuseBeforeReading(applied: Applied): void {
  if (isBeforeReading(applied)) throw new UsageError(BEFORE_READING.join(' '))
}
