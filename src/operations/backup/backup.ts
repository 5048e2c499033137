// Makes a backup: one snapshot of the whole database while servers run, into a file that is complete or absent.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { Writable } from 'node:stream'
import type { Config } from '../../config.ts'
import { Refusal } from '../../lib/errors.ts'
import { instantFromPg } from '../../lib/time.ts'
import { tundishVersion } from '../../lib/version.ts'
import { type Catalogue, lockTables, readCatalogue } from './catalogue.ts'
import { writeWhole } from './draft.ts'
import { exportTo } from './export.ts'
import { FORMAT, type Format, type Header, TRAILER_LINE, type Trailer } from './format.ts'
import type { Progress } from './progress.ts'
import { type Session, withSession } from './session.ts'
import { dump, toolVersion } from './tools.ts'

export interface BackupOptions {
  /** `-` is standard output. */
  file: string
  force: boolean
  /** Undefined: PostgreSQL's, when its tools are there and fit the server; else our own. */
  format: Format | undefined
  signal: AbortSignal
  progress: Progress
}

export interface Backup {
  format: Format
  header: Header
  /** Unknown of what pg_dump wrote. */
  rows: Record<string, number> | undefined
}

/** Backs up the database of these settings. Changes nothing in it, not even the version of its tables. */
export async function backup(config: Config, options: BackupOptions): Promise<Backup> {
  const { signal, progress } = options
  return withSession({ config, name: 'tundish backup', signal }, async (session) => {
    const header = await beginSnapshot(session)
    const format = await chooseFormat(header, options)
    const made: Backup = { format, header, rows: undefined }
    try {
      if (options.file === '-') {
        made.rows = await exportTo(standardOutput(), session, header, { signal, progress })
      } else {
        await writeWhole(options.file, options.force, async (file) => {
          if (format === 'postgresql') await writeArchive(file, session, header, signal, progress)
          else made.rows = await exportTo(stream(file), session, header, { signal, progress })
        })
      }
    } finally {
      progress.end()
    }
    return made
  })
}

const TRIES = 5

/**
 * Begins the transaction whose snapshot is backed up. The tables are locked against schema changes before the snapshot is
 * taken: a table that a migration rewrites in between would be empty in the snapshot.
 */
async function beginSnapshot({ query }: Session): Promise<Header> {
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const listed = await readCatalogue(query)
    if (!listed) throw new Refusal('There is nothing to back up: this database has no tables of Tundish.')
    // Read before the snapshot is taken, so that whatever the backup lacks was committed after this instant.
    const [clock] = await query('select db_clock() as at')
    await query('begin isolation level repeatable read, read only')
    await query(lockTables(listed, 'access share'))
    const found = await readCatalogue(query)
    if (JSON.stringify(found) === JSON.stringify(listed)) return describe(query, listed, instantFromPg(clock!.at!))
    await query('rollback')
  }
  throw new Refusal('The tables are being changed by a migration: make the backup when it has ended.')
}

async function describe(query: Session['query'], catalogue: Catalogue, made_at: string): Promise<Header> {
  const [row] = await query(
    `select current_setting('server_version') as version,
       (select value from instance where name = 'master key') as master_key`,
  )
  return {
    format: FORMAT,
    tundish: tundishVersion(),
    postgresql: row!.version!,
    made_at,
    master_key: row!.master_key ?? null,
    ...catalogue,
  }
}

async function chooseFormat({ postgresql }: Header, { file, format }: BackupOptions): Promise<Format> {
  const server = Number.parseInt(postgresql, 10)
  // pg_restore cannot read an archive from a pipe in the order it needs.
  if (format === 'tundish' || file === '-') return 'tundish'
  const [dumper, restorer] = await Promise.all([toolVersion('pg_dump'), toolVersion('pg_restore')])
  if (dumper !== undefined && restorer !== undefined && dumper >= server && restorer >= dumper) return 'postgresql'
  if (format === undefined) return 'tundish'
  throw new Refusal(
    `--format postgresql needs pg_dump and pg_restore of PostgreSQL ${server} or newer on the PATH (found: ${dumper ?? 'none'} and ${restorer ?? 'none'}).`,
  )
}

async function writeArchive(
  file: FileHandle,
  session: Session,
  header: Header,
  signal: AbortSignal,
  progress: Progress,
): Promise<void> {
  const [row] = await session.query('select pg_export_snapshot() as snapshot')
  await dump(session, row!.snapshot!, file.fd, signal)
  const hash = createHash('sha256')
  let bytes = 0
  progress.at('Reading it back')
  for await (const chunk of createReadStream('', { fd: file.fd, start: 0, autoClose: false, signal })) {
    hash.update(chunk)
    bytes += chunk.length
    progress.moved(chunk.length)
  }
  const trailer: Trailer = { header, bytes, sha256: hash.digest('hex') }
  await file.write(`${TRAILER_LINE}${JSON.stringify(trailer)}\n`, bytes)
}

// By descriptor: closing a handle would wait for the streams made of it.
const stream = ({ fd }: FileHandle) => createWriteStream('', { fd, autoClose: false })

/** Standard output, which must not be closed. A chunk is done when it is written: a backup that is only in memory is none. */
function standardOutput(): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      process.stdout.write(chunk, (error) => done(error && new Refusal(notWritten(error))))
    },
  })
}

const notWritten = ({ code }: NodeJS.ErrnoException) =>
  code === 'EPIPE'
    ? 'Standard output was closed before the backup ended.'
    : 'The backup on standard output is not complete: do not keep it.'
