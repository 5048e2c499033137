// The formats of a backup file: a compressed SQL script with a header and a seal, or an archive of pg_dump with a trailer.
import type { Catalogue } from './catalogue.ts'

export type Format = 'tundish' | 'postgresql'

/** The description that a backup contains of itself. */
export interface Header extends Catalogue {
  format: number
  /** The version of Tundish that made it. */
  tundish: string
  /** The version of the server it came from. */
  postgresql: string
  /** The database's clock just before the snapshot was taken. */
  made_at: string
  /** The fingerprint of the master key that decrypts its keys; null when none was ever used. */
  master_key: string | null
}

/** The last line of our own format: how many rows each table has, and the SHA-256 of everything before it. */
export interface Seal {
  rows: Record<string, number>
  sha256: string
}

/** The trailer after an archive of pg_dump, which pg_restore ignores. */
export interface Trailer {
  header: Header
  bytes: number
  sha256: string
}

/** Incremented when readers of the former version cannot read the format. */
export const FORMAT = 1

// Comments to psql, so that the script can be loaded without Tundish.
export const HEADER_LINE = '-- tundish backup '
export const SEAL_LINE = '-- tundish seal '
export const TRAILER_LINE = '\n-- tundish trailer '

export const MAGIC: Record<Format, Buffer> = {
  tundish: Buffer.from('28b52ffd', 'hex'),
  postgresql: Buffer.from('PGDMP'),
}
