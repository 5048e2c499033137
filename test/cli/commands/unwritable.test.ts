// Files beside the database that cannot be written: a server says so at its start, a command when it needs them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { PROGRAM_ENV, program, tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'

const MASTER_KEY = randomBytes(32).toString('base64')

const database = await freshDatabase()
const folder = temporaryFolder()
after(() => database.drop())

/** The errors that `tundish serve` logs until it is ready. */
async function errorsOf(settings: Record<string, string>): Promise<string[]> {
  const ours = {
    LOG_LEVEL: 'info',
    DATABASE_URL: database.url,
    DATA_DIR: folder,
    MASTER_KEY,
    PORT: '0',
    ADMIN_PORT: '0',
  }
  const [node, args] = program('serve')
  const env = { ...PROGRAM_ENV, ...ours, ...settings }
  const child = spawn(node, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const errors: string[] = []
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { level, msg } = JSON.parse(line)
      if (level >= 50) errors.push(msg)
      if (msg === 'Tundish is ready.') return errors
    }
    throw new Error('The server ended.')
  } finally {
    child.kill('SIGKILL')
  }
}

test('an error for an erasure ledger that cannot be written, and none otherwise', async () => {
  const ledger = join(import.meta.filename, 'erasures.ndjson')
  assert.deepEqual(await errorsOf({ ERASURE_LEDGER: ledger }), [
    `${ledger} cannot be written (ENOTDIR). Without it, erasures or operators’ changes fail: ` +
      'set DATA_DIR or ERASURE_LEDGER to a persistent, writable disk.',
  ])
  assert.deepEqual(await errorsOf({}), [])
})

test('1 and one sentence for a change that a full disk keeps out of the heads of the audit log; nothing is changed', async () => {
  const [node, args] = program('org', 'create', 'acme')
  const script = `ulimit -f 1; trap "" XFSZ; exec "$@"`
  const heads = join(folder, 'audit-heads.ndjson')
  writeFileSync(heads, `${'x'.repeat(511)}\n`)
  const env = { ...PROGRAM_ENV, DATABASE_URL: database.url, DATA_DIR: folder, MASTER_KEY }
  const child = spawn('sh', ['-c', script, 'sh', node, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [[code], stdout, stderr] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)])
  const sentence = `${heads} cannot be used: EFBIG. Check what the command did before you repeat it.\n`
  assert.deepEqual([code, stdout, stderr], [1, '', sentence])
  assert.match((await tundish(['org', 'list'], env)).stdout, /no organization/)
})
