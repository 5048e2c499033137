// Where a measurement runs: an embedded database of its own with a filled project, our server and the plain one beside it.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type App, openApp, openLog } from '../src/app.ts'
import { type Config, readConfig } from '../src/config.ts'
import type { Db } from '../src/lib/db.ts'
import { openEmbedded } from '../src/lib/embedded.ts'
import { publicListener } from '../src/server.ts'
import { createOrganization, createProject } from '../src/tenants.ts'
import { generate, PROJECT } from './generate.ts'
import type { Recorded } from './tools.ts'

export interface Rig {
  databaseUrl: string
  /** The project's secret key. */
  key: string
  /** Our server and the plain one. */
  ours: string
  plain: string
  /** CPU seconds our server has used so far. */
  cpuSeconds(): Promise<number>
  /** The statements that one request of ours runs, with their parameters. */
  record(path: string): Promise<{ statements: Recorded[]; body: string }>
  close(): Promise<void>
}

/** Makes everything, with `size` subscriptions in one project. */
export async function openRig(size: number, say: (text: string) => void): Promise<Rig> {
  const closers: (() => Promise<unknown>)[] = []
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    const folder = await makeFolder(closers)
    const embedded = await openEmbedded({ dataDir: folder, log: { info: () => {}, warn: say }, throwaway: true })
    closers.push(() => embedded.close())
    const env = {
      DATABASE_URL: embedded.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      DATA_DIR: folder,
      PORT: '0',
      RATE_LIMIT: '0',
      ADMIN_PORT: '0',
    }
    const app = await openApp(readConfig(env), { log: openLog('error', 2) })
    closers.push(() => app.close())
    await createOrganization(app.db, app.seal, { id: 'bench' })
    const { secret_key: key } = await createProject(app.db, app.seal, { id: PROJECT, organization: 'bench' })
    say(`Making ${size} subscriptions with their profiles, sessions and transactions…`)
    await fill(app.db, size)
    const ours = await startProgram(['serve', '--no-worker'], { ...env, LOG_LEVEL: 'info' }, closers)
    const plain = await startProgram([], env, closers, 'plain.ts')
    return {
      databaseUrl: embedded.url,
      key,
      ours: ours.url,
      plain: plain.url,
      cpuSeconds: () => cpuSeconds(ours.child.pid!),
      record: (path) => record(app, key, path),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function fill(db: Db, size: number): Promise<void> {
  const { client, query, release } = await db.connect()
  await client.query('set statement_timeout = 0')
  await generate(query, size)
  release(true)
}

/** A temporary folder that is removed in the end. */
export async function makeFolder(closers: (() => Promise<unknown>)[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tundish-bench-'))
  // As root, PostgreSQL's account has to pass through it.
  await chmod(folder, 0o711)
  closers.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Starts a program of ours, by default the command line, and waits until it says its address. */
export async function startProgram(
  args: string[],
  env: Record<string, string>,
  closers: (() => Promise<unknown>)[],
  program = '../src/main.ts',
) {
  const child = spawn(process.execPath, [new URL(program, import.meta.url).pathname, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  closers.push(() => stop(child))
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0]
    if (url === undefined) continue
    child.stdout!.resume()
    return { child, url }
  }
  throw new Error(`${args.join(' ')} ended before it was ready.`)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

const TICKS_A_SECOND = 100

async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND
}

/** Serves one request in this process over a database that remembers what it was asked. The key's look-up is left out. */
async function record(app: App, key: string, path: string) {
  const statements: Recorded[] = []
  const read: Db['read'] = (statement, params) => {
    if (statement.name !== 'find key') statements.push({ text: statement.text, params })
    return app.db.read(statement, params)
  }
  // Injected requests have no header names of their own case.
  const config: Config = { ...app.config, secretHeaderCase: 'any' }
  const listener = await publicListener({ ...app, config, db: { ...app.db, read } })
  const answer = await listener.inject({ url: path, headers: { 'Service-Secret': key } })
  await listener.close()
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}: ${answer.body}`)
  return { statements, body: answer.body }
}
