// Ctrl-C during a command on an embedded database: neither a half-made database nor a PostgreSQL is left behind.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { lastServer } from '../../src/lib/embedded/server.ts'
import { PROGRAM_ENV, tundish } from '../support/cli.ts'
import { until } from '../support/cluster.ts'

const MAIN = join(import.meta.dirname, '../../src/main.ts')

const base = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-stop-'))
// As root, PostgreSQL's account has to pass.
chmodSync(base, 0o711)
after(() => rmSync(base, { recursive: true, force: true }))

/** Starts a command whose standard input stays open, and sends SIGINT when `moment` has come. */
async function interrupted(dataDir: string, args: string[], moment: () => Promise<boolean> | boolean) {
  const program = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--', MAIN, ...args], {
    env: { ...PROGRAM_ENV, DATA_DIR: dataDir },
  })
  const [stdout, stderr] = [text(program.stdout), text(program.stderr)]
  const ended = once(program, 'exit')
  await until('the moment', () => moment() || program.exitCode !== null, 120_000)
  program.kill('SIGINT')
  const [code] = await ended
  program.stdin.destroy()
  return { code, stdout: await stdout, stderr: await stderr }
}

const namesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : [])
const isRunning = (dataDir: string) => lastServer(join(dataDir, 'postgres/data')) !== undefined
const drafts = (dataDir: string) => namesIn(join(dataDir, 'postgres')).filter((name) => name.startsWith('draft'))

const STOPPING = 'Stopping. Another Ctrl-C or SIGTERM stops at once.\n'

test('while the database is made: 1 and a sentence, no draft and no PostgreSQL; the next command works', async () => {
  const dataDir = join(base, 'made')
  const stopped = await interrupted(dataDir, ['org', 'list'], () => drafts(dataDir).length > 0)
  const stderr = `${STOPPING}Stopped before the command began: it did nothing.\n`
  assert.deepEqual(stopped, { code: 1, stdout: '', stderr })
  assert.deepEqual(drafts(dataDir), [])
  assert.equal(isRunning(dataDir), false)

  const next = await tundish(['org', 'list'], { DATA_DIR: dataDir })
  assert.deepEqual([next.code, next.stderr], [0, ''])
  assert.equal(isRunning(dataDir), false)
})

test('while PostgreSQL starts: it is stopped again', async () => {
  const dataDir = join(base, 'started')
  const stopped = await interrupted(dataDir, ['org', 'list'], () => isRunning(dataDir))
  // It may have been a moment too late: then the command ran, or has even ended.
  assert.match(stopped.stderr, /^(Stopping\. .*\nStopped (before the command began|while the command ran): .*\n)?$/)
  assert.equal(stopped.code, stopped.stderr === '' ? 0 : 1)
  assert.equal(isRunning(dataDir), false)
})

test('while the command runs: 1 and a sentence, and PostgreSQL is stopped', async () => {
  const dataDir = join(base, 'runs')
  const connect = ['merchant-account', 'connect', 'stripe', 'acct_1Example', '--org', 'acme']
  const stopped = await interrupted(dataDir, connect, () => existsSync(join(dataDir, 'master.key')))
  // The key is made shortly before the command begins.
  assert.match(stopped.stderr, /^Stopping\. .*\nStopped (before the command began|while the command ran): .*\n$/)
  assert.equal(stopped.code, 1)
  assert.equal(isRunning(dataDir), false)
})
