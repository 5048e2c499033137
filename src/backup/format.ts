// What a backup file is: a compressed SQL script with a header and a sealing line, or an archive of pg_dump with a trailer.
import type { Catalogue } from './catalogue.ts'

export type Format = 'tundish' | 'postgresql'

/** What stands in a backup about itself. */
export interface Header extends Catalogue {
  format: number
  /** The version of Tundish that made it. */
  tundish: string
  /** The version of the server it came from. */
  postgresql: string
  /** The database's clock when the snapshot was taken. */
  made_at: string
  /** The fingerprint of the master key that opens its sealed keys; null when none was ever used. */
  master_key: string | null
}

/** The last line of our own format: how many rows each table has, and the SHA-256 of everything before it. */
export interface Seal {
  rows: Record<string, number>
  sha256: string
}

/** The trailer behind an archive of pg_dump, which pg_restore does not look at. */
export interface Trailer {
  header: Header
  bytes: number
  sha256: string
}

/** Counts up when a reader of the former number could not read it. */
export const FORMAT = 1

// Comments to psql: whoever has to can load the script without Tundish.
export const HEADER_LINE = '-- tundish backup '
export const SEAL_LINE = '-- tundish seal '
export const TRAILER_LINE = '\n-- tundish trailer '

export const MAGIC: Record<Format, Buffer> = {
  tundish: Buffer.from('28b52ffd', 'hex'),
  postgresql: Buffer.from('PGDMP'),
}
