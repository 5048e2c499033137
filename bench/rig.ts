// Sets up a measurement: its own embedded database, and the programs that are measured on it.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { type App, openApp } from '../src/app.ts'
import { readConfig } from '../src/config.ts'
import { createOrganization, createProject } from '../src/core/tenants/tenants.ts'
import { openEmbedded } from '../src/lib/embedded/embedded.ts'
import { lastServer } from '../src/lib/embedded/server.ts'
import { openLog } from '../src/lib/log.ts'
import type { Query } from '../src/lib/pg/types.ts'
import { ignoreFurtherErrors } from './attempt.ts'
import { cpuSeconds } from './cpu.ts'
import { ORGANIZATION, PROJECT } from './generate.ts'

export type Closers = (() => Promise<unknown>)[]

export interface Rig {
  folder: string
  app: App
  databaseUrl: string
  /** The secret keys of the project and of its organization. */
  key: string
  organizationKey: string
  /** The environment of our programs. */
  env: Record<string, string>
  closers: Closers
  /** CPU seconds that PostgreSQL has used so far. */
  postgresSeconds(): Promise<number>
  close(): Promise<void>
}

export interface Program {
  child: ChildProcess
  url: string
  /** CPU seconds it has used so far, with its workers. */
  cpuSeconds(): Promise<number>
}

export interface RigOptions {
  say: (text: string) => void
  /** Whether writes reach the disk, as they must in production. */
  durable?: boolean
  /** How many projects there are; the one that is measured is `bench`. */
  projects?: number
}

// The database runs in its own session, so it must also be stopped when the measurement is interrupted.
const openRigs = new Set<() => Promise<void>>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    ignoreFurtherErrors()
    await Promise.allSettled([...openRigs].map((close) => close()))
    process.exit(1)
  })
}

/** Makes an empty database with the organization and its projects. */
export async function openRig({ say, durable = false, projects = 1 }: RigOptions): Promise<Rig> {
  const closers: Closers = []
  const close = async () => {
    openRigs.delete(close)
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  openRigs.add(close)
  try {
    const folder = await makeFolder(closers)
    const options = { dataDir: folder, log: { info: () => {}, warn: say }, throwaway: !durable }
    if (!durable) await useMinimalWal(options)
    const embedded = await openEmbedded(options)
    closers.push(() => embedded.close())
    const env = {
      DATABASE_URL: embedded.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      DATA_DIR: folder,
      PORT: '0',
      ADMIN_PORT: '0',
      RATE_LIMIT: '0',
      LOG_LEVEL: 'info',
    }
    const app = await openApp(readConfig(env), { log: openLog('error', 2) })
    closers.push(() => app.close())
    const { secret_key: organizationKey } = await createOrganization(app.db, app.seal, { id: ORGANIZATION })
    const { secret_key: key } = await createProject(app.db, app.seal, { id: PROJECT, organization: ORGANIZATION })
    await addProjects(app, projects)
    const postgres = lastServer(join(folder, 'postgres', 'data'))!.pid
    return {
      folder,
      app,
      databaseUrl: embedded.url,
      key,
      organizationKey,
      env,
      closers,
      postgresSeconds: () => cpuSeconds(postgres),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Lets rows that are written into new tables skip the write-ahead log. The setting takes effect at the next start. */
async function useMinimalWal(options: Parameters<typeof openEmbedded>[0]): Promise<void> {
  const embedded = await openEmbedded(options)
  try {
    const client = new pg.Client(embedded.connection)
    await client.connect()
    await client.query('alter system set wal_level = minimal')
    await client.query('alter system set max_wal_senders = 0')
    await client.end()
  } finally {
    await embedded.close()
  }
}

async function addProjects({ db }: App, projects: number): Promise<void> {
  await db.query(
    `with made as (
       insert into projects (id, organization_id, name) select '${PROJECT}-' || n, '${ORGANIZATION}', 'x'
       from generate_series(1, $1::int - 1) n returning id)
     insert into project_clocks (project_id) select id from made`,
    [projects],
  )
}

/** Runs `work`, which may take long, on its own connection. */
export async function fill({ app }: Rig, work: (query: Query) => Promise<void>): Promise<void> {
  const { query, release } = await app.db.connect()
  try {
    await work(query)
  } finally {
    release(true)
  }
}

/** Starts our server with this many processes, by default without the background work. */
export function startOurs(rig: Rig, { workers = 1, more = [] as string[] } = {}): Promise<Program> {
  const several = workers > 1 ? ['--workers', String(workers)] : []
  return startProgram(['serve', ...(more.length > 0 ? more : ['--no-worker']), ...several], rig.env, rig.closers)
}

export function startReference(rig: Rig, program: 'plain.ts' | 'wire.ts', workers = 1): Promise<Program> {
  return startProgram([], { DATABASE_URL: rig.databaseUrl, WORKERS: String(workers) }, rig.closers, program)
}

/** Creates a temporary folder, which is removed at the end. */
export async function makeFolder(closers: Closers): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tundish-bench-'))
  // When run as root, PostgreSQL's account has to traverse the folder.
  await chmod(folder, 0o711)
  closers.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const ADDRESS = /http:\/\/127\.0\.0\.1:\d+/

/** The command line, as users start it. */
export const TUNDISH = '../bin/tundish'

/** Starts the command line or another program, and waits until a line of its output matches `ready`, by default an address. */
export async function startProgram(
  args: string[],
  env: Record<string, string>,
  closers: Closers,
  program = TUNDISH,
  ready = ADDRESS,
): Promise<Program> {
  const child = startChild(program, args, env, closers)
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = ready.exec(line)?.[0]
    if (url === undefined) continue
    child.stdout!.resume()
    return programOf(child, url)
  }
  throw new Error(`${program} ${args.join(' ')} ended before it was ready.`)
}

/** The same for our server with its log in a file, so that the measuring process is not woken by each line. */
export async function startLogged(
  args: string[],
  env: Record<string, string>,
  closers: Closers,
  logFile: string,
): Promise<Program> {
  const log = await open(logFile, 'w')
  const child = startChild(TUNDISH, args, env, closers, log.fd)
  await log.close()
  while (child.exitCode === null) {
    const url = ADDRESS.exec(await readFile(logFile, 'utf8'))?.[0]
    if (url !== undefined) return programOf(child, url)
    await sleep(50)
  }
  throw new Error(`tundish ${args.join(' ')} ended before it was ready.`)
}

function startChild(
  program: string,
  args: string[],
  env: Record<string, string>,
  closers: Closers,
  output: 'pipe' | number = 'pipe',
): ChildProcess {
  const child = spawn(...commandOf(program, args), {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', output, 'inherit'],
  })
  closers.push(() => stop(child))
  return child
}

const programOf = (child: ChildProcess, url: string): Program => ({
  child,
  url,
  cpuSeconds: () => cpuSeconds(child.pid!),
})

/** The program to run and its arguments; TypeScript is run by Node. */
export function commandOf(program: string, args: string[]): [command: string, args: string[]] {
  const path = fileURLToPath(new URL(program, import.meta.url))
  return program.endsWith('.ts') ? [process.execPath, [path, ...args]] : [path, args]
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
