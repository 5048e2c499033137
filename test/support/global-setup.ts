// One PostgreSQL for a whole test run, with a migrated template database; both are removed when the run ends, also after Ctrl-C.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from '../../src/lib/embedded/account.ts'
import { type Embedded, openEmbedded } from '../../src/lib/embedded/embedded.ts'
import { isServerOf, lastServer } from '../../src/lib/embedded/server.ts'
import { migrate } from '../../src/lib/pg/migrate.ts'
import { runStatement } from './postgres.ts'
import { trySignal } from './signal.ts'

// The folder of a run has its database server, its browser and, if it is in memory, the temporary files of its tests.
const PREFIX = 'tundish-test-'
const MEMORY = '/dev/shm'
const TEMPLATE = `tundish_template_${process.pid}`

let embedded: Embedded | undefined
let folder: string | undefined

/** `TUNDISH_TEST_DATABASE` names a server to use instead; its role must be allowed to create databases. */
export async function globalSetup(): Promise<void> {
  await removeAbandoned()
  folder = makeScratch()
  process.once('exit', removeAtOnce)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
  const url = process.env['TUNDISH_TEST_DATABASE'] ?? (await startServer(folder))
  // Where the first test that needs a browser unpacks it.
  process.env['TUNDISH_TEST_BROWSER'] = join(folder, 'browser')
  // What the processes of the quick tests have taken: see together.ts.
  process.env['TUNDISH_TEST_TAKEN'] = join(folder, 'taken')
  // The cluster that others are copies of: see cluster.ts.
  process.env['TUNDISH_TEST_CLUSTER'] = join(folder, 'cluster')
  for (const name of ['BROWSER', 'TAKEN', 'CLUSTER']) mkdirSync(process.env[`TUNDISH_TEST_${name}`]!)
  await runStatement(url, `create database ${TEMPLATE}`)
  await migrate(databaseUrl(url, TEMPLATE))
  process.env['TUNDISH_TEST_DATABASE'] = url
  process.env['TUNDISH_TEST_TEMPLATE'] = TEMPLATE
}

export async function globalTeardown(): Promise<void> {
  const url = process.env['TUNDISH_TEST_DATABASE']
  if (!embedded && url) {
    for (const name of [`${TEMPLATE}_demo`, TEMPLATE]) await runStatement(url, `drop database if exists ${name}`)
  }
  await embedded?.close()
  embedded = undefined
  if (folder) rmSync(folder, { recursive: true, force: true })
  folder = undefined
}

async function startServer(dataDir: string): Promise<string> {
  embedded = await openEmbedded({ dataDir, log: { info() {}, warn: console.error }, throwaway: true })
  return embedded.url
}

/** Runs synchronously when the process exits, after Ctrl-C or a failure. */
function removeAtOnce(): void {
  if (folder) stopAndRemove(folder)
}

function stopAndRemove(dataDir: string): void {
  const cluster = join(dataDir, 'postgres', 'data')
  const server = lastServer(cluster)
  // Another run may be stopping it at the same time.
  if (server) trySignal(server.pid, 'SIGQUIT')
  // PostgreSQL removes its files while it ends, the lock file last.
  for (let waits = 0; lastServer(cluster) && waits < 500; waits++) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
  }
  rmSync(dataDir, { recursive: true, force: true })
}

/** Removes the folders of killed runs. */
async function removeAbandoned(): Promise<void> {
  const folders = bases().flatMap((base) => readdirSync(base).map((name) => join(base, name)))
  for (const dataDir of folders) {
    const pid = new RegExp(`/${PREFIX}(\\d+)-[^/]*$`).exec(dataDir)?.[1]
    if (!pid || isAlive(Number(pid))) continue
    const server = lastServer(join(dataDir, 'postgres', 'data'))
    if (!server || (await isServerOf(join(dataDir, 'postgres', 'data'), server.pid))) stopAndRemove(dataDir)
    else rmSync(dataDir, { recursive: true, force: true })
  }
}

function databaseUrl(url: string, name: string): string {
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

/** The folders in which runs create theirs. */
const bases = (): string[] => [realpathSync(tmpdir()), ...(existsSync(MEMORY) ? [MEMORY] : [])]

const makeScratch = (): string => inMemory() ?? makeIn(realpathSync(tmpdir()))

/**
 * Makes the folder in memory if as many gigabytes are free there as TUNDISH_TEST_IN_MEMORY says, many times what the run needs. A test's
 * database has 600 files, whose copying takes half a second of CPU on some disks.
 */
function inMemory(): string | undefined {
  const room = Number(process.env['TUNDISH_TEST_IN_MEMORY'] ?? 0) * 2 ** 30
  if (!room || !existsSync(MEMORY)) return undefined
  const { bavail, bsize } = statfsSync(MEMORY)
  if (Math.min(bavail * bsize, process.availableMemory()) < room) return undefined
  const folder = makeIn(MEMORY)
  if (!runsPrograms(folder)) {
    rmSync(folder, { recursive: true })
    return undefined
  }
  // For all processes of the run.
  process.env['TMPDIR'] = folder
  return folder
}

function makeIn(base: string): string {
  const folder = mkdtempSync(join(base, `${PREFIX}${process.pid}-`))
  // When run as root, PostgreSQL's account has to traverse the folder.
  chmodSync(folder, 0o711)
  return folder
}

/** Whether programs can be run from the folder, which a mount may forbid: the browser and copies of PostgreSQL's programs are. */
function runsPrograms(folder: string): boolean {
  const program = join(folder, 'program')
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
  try {
    execFileSync(program)
    return true
  } catch {
    return false
  } finally {
    rmSync(program)
  }
}
