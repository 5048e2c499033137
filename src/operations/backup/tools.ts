// PostgreSQL's pg_dump and pg_restore: finds them, runs them, and reports their errors.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates } from 'node:tls'
import type pg from 'pg'
import { run } from '../../lib/embedded/account.ts'
import { Refusal } from '../../lib/errors.ts'
import { withMeantMode } from '../../lib/pg/hosts.ts'
import type { Session } from './session.ts'

export type Tool = 'pg_dump' | 'pg_restore'

/** The major version of the tool on the PATH; undefined when there is none that runs. */
export async function toolVersion(tool: Tool): Promise<number | undefined> {
  const { code, output } = await run(tool, ['--version'])
  const major = /\(PostgreSQL\) (\d+)/.exec(output)?.[1]
  return code === 0 && major !== undefined ? Number(major) : undefined
}

/** Writes an archive of the snapshot into a file that is open. */
export async function dump(session: Session, snapshot: string, fd: number, signal: AbortSignal): Promise<void> {
  const leaveOut = ['--no-owner', '--no-privileges', '--no-unlogged-table-data']
  // Without an encoding it would be that of the role, and `load` reads UTF-8.
  const form = ['--format=custom', '--encoding=UTF8']
  const settings = connection(session)
  const lacksAuthorities = settings['PGSSLMODE'] === 'verify-full' && settings['PGSSLROOTCERT'] === undefined
  const folder = lacksAuthorities && (await mkdtemp(join(tmpdir(), 'tundish-')))
  try {
    // libpq knows no authorities without a file: those that Node trusts.
    if (folder) {
      settings['PGSSLROOTCERT'] = join(folder, 'authorities.pem')
      await writeFile(settings['PGSSLROOTCERT'], getCACertificates('default').join('\n'))
    }
    const program = spawn('pg_dump', [...form, ...leaveOut, '--no-password', `--snapshot=${snapshot}`], {
      env: { ...environment(), ...settings },
      stdio: ['ignore', fd, 'pipe'],
      signal,
    })
    await ended('pg_dump', program)
  } finally {
    if (folder) await rm(folder, { recursive: true, force: true })
  }
}

/** The data of an archive as a SQL script. Rejects at its end when the program failed. */
export async function* readArchive(path: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  // Started by the first read: node discards the output of an ended process that has no listener.
  const program = spawn('pg_restore', ['--data-only', '--file=-', '--', path], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  })
  const done = ended('pg_restore', program)
  // A reader that stops early does not wait for the error.
  done.catch(() => {})
  yield* program.stdout
  await done
}

type Connected = pg.Client & { connection: { stream: Socket } }

/** The address as environment variables, so that no list of processes shows the password. */
function connection({ client, url }: Session): Record<string, string> {
  const { host, port, user, password, database, connection } = client as unknown as Connected
  // The server of the snapshot, which is the first of several hosts until a failover.
  const { remoteAddress, remotePort } = connection.stream
  const settings: Record<string, string | number | null | undefined> = {
    PGHOST: host,
    PGHOSTADDR: remoteAddress,
    PGPORT: remotePort ?? port,
    PGUSER: user,
    PGPASSWORD: password,
    PGDATABASE: database,
    PGAPPNAME: 'tundish backup',
  }
  const parameters = new URLSearchParams(/\?.*$/.exec(withMeantMode(url))?.[0])
  for (const name of ['sslmode', 'sslrootcert', 'sslcert', 'sslkey']) {
    // pg's "no-verify" is libpq's "require".
    settings[`PG${name.toUpperCase()}`] = parameters.get(name)?.replace('no-verify', 'require')
  }
  const given = Object.entries(settings).filter(([, value]) => value !== undefined && value !== null && value !== '')
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]))
}

/** The environment without our secrets, with libpq's settings and certificates. */
function environment(): NodeJS.ProcessEnv {
  const theirs = Object.entries(process.env).filter(([name]) => /^(PATH|HOME|TMPDIR|PG[A-Z]+)$/.test(name))
  return { ...Object.fromEntries(theirs), LC_ALL: 'C' }
}

const LONGEST_OUTPUT = 4096

async function ended(tool: Tool, program: ChildProcess): Promise<void> {
  let said = ''
  program.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-LONGEST_OUTPUT)
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    program.on('error', reject)
    program.on('close', resolve)
  })
  if (code !== 0) throw new Refusal(`${tool} failed: ${reason(said)}`)
}

const reason = (said: string) => /error: (.+)/.exec(said)?.[1] ?? said.trim().split('\n').at(-1) ?? 'it said nothing'
