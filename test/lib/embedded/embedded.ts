// The embedded PostgreSQL: folders for it, opened by the test or by another program.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import pg from 'pg'
import { canEnter } from '../../../src/lib/embedded/account.ts'
import { type Embedded, type EmbeddedOptions, openEmbedded } from '../../../src/lib/embedded/embedded.ts'
import { lastServer } from '../../../src/lib/embedded/server.ts'

export const ROOT = process.getuid?.() === 0
export const NOBODY = { uid: 65534, gid: 65534 }
const HOLDER = join(import.meta.dirname, 'hold-embedded.ts')
// A normal user: this process's, or, when run as root, `nobody` if that account can read the checkout.
export const readable = !ROOT || (await canEnter(NOBODY, import.meta.dirname))

const silent = { info() {}, warn() {} }

/** The parent of all folders, removed at the end of the file. */
export const base = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-embedded-'))
// When run as root, PostgreSQL's account has to traverse the folder.
chmodSync(base, 0o711)
let folders = 0
const opened: Embedded[] = []
const holders: ChildProcess[] = []

after(async () => {
  for (const holder of holders) holder.kill('SIGKILL')
  for (const embedded of opened) await embedded.close()
  rmSync(base, { recursive: true, force: true })
})

export const newFolder = (name = 'data') => join(base, String(++folders), name)

/** Opens an embedded database, which is closed at the end of the file at the latest. */
export async function open(
  dataDir: string,
  options: Partial<Omit<EmbeddedOptions, 'dataDir'>> = {},
): Promise<Embedded> {
  const embedded = await openEmbedded({ dataDir, log: silent, throwaway: true, ...options })
  opened.push(embedded)
  return embedded
}

/** Another program on the same folder; `next` resolves with its next line of output. */
export function hold(dataDir: string, as?: { uid: number; gid: number }) {
  const program = spawn(process.execPath, [HOLDER, dataDir], {
    ...as,
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  holders.push(program)
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value ?? '{}')
  const leave = async () => {
    program.stdin.end()
    await once(program, 'exit')
  }
  return { program, next, leave }
}

/** The first value of the first row. */
export async function firstValue(url: string, sql: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query({ text: sql, rowMode: 'array' })
    return String(rows[0]?.[0])
  } finally {
    await client.end()
  }
}

export const clusterOf = (dataDir: string) => join(dataDir, 'postgres/data')
export const pidOf = (dataDir: string) => lastServer(clusterOf(dataDir))?.pid ?? 0
export const isStopped = (dataDir: string) => lastServer(clusterOf(dataDir)) === undefined
