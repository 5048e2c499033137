// A server that cannot write the files beside the database says so at its start, not at the first erasure.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { PROGRAM_ENV, program } from '../../support/cli.ts'
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
