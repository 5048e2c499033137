// Ctrl-C during a command on an embedded database: neither a half-made database nor a PostgreSQL is left behind.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { lastServer } from '../../../src/lib/embedded/server.ts'
import { spawnTundish, tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { until } from '../../support/time.ts'

const base = temporaryFolder()
// As root, PostgreSQL's account has to pass.
chmodSync(base, 0o711)

/** Starts a command whose standard input stays open, and sends SIGINT when `moment` has come. */
async function interrupted(dataDir: string, args: string[], moment: () => Promise<boolean> | boolean) {
  const program = spawnTundish(args, { DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0' })
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

for (const command of ['worker', 'serve'])
  test(`while the database is made for ${command}: 0 and a notice, no draft and no PostgreSQL`, async () => {
    const dataDir = join(base, command)
    const { code, stdout, stderr } = await interrupted(dataDir, [command], () => drafts(dataDir).length > 0)
    assert.deepEqual([code, stderr], [0, STOPPING])
    assert.doesNotMatch(stdout, /The background work has begun|Tundish is ready/)
    assert.deepEqual([drafts(dataDir), isRunning(dataDir)], [[], false])
  })

test('while the database is made for webhook listen: 1 and a sentence, no draft and no PostgreSQL', async () => {
  const dataDir = join(base, 'listen')
  const listen = ['webhook', 'listen', '--project', 'shop', '--forward-to', 'http://127.0.0.1:9/']
  const stopped = await interrupted(dataDir, listen, () => drafts(dataDir).length > 0)
  const stderr = `${STOPPING}Stopped before the command began: it did nothing.\n`
  assert.deepEqual(stopped, { code: 1, stdout: '', stderr })
  assert.deepEqual([drafts(dataDir), isRunning(dataDir)], [[], false])
})

test('while the database is made for a restore: 1 and a sentence, no draft and no PostgreSQL', async () => {
  const [from, dataDir] = [join(base, 'saved'), join(base, 'restored')]
  const file = join(base, 'tundish.backup')
  const org = await tundish(['org', 'create', 'acme'], { DATA_DIR: from })
  assert.equal(org.code, 0, org.stderr)
  const saved = await tundish(['backup', file, '--format', 'tundish'], { DATA_DIR: from })
  assert.equal(saved.code, 0, saved.stderr)
  mkdirSync(dataDir, { mode: 0o711 })
  copyFileSync(join(from, 'master.key'), join(dataDir, 'master.key'))
  const restore = ['restore', file, '--without-erasures']
  const { code, stderr } = await interrupted(dataDir, restore, () => drafts(dataDir).length > 0)
  assert.deepEqual([code, stderr], [1, 'Interrupted: nothing was changed.\n'])
  assert.deepEqual([drafts(dataDir), isRunning(dataDir)], [[], false])
  assert.equal(existsSync(join(dataDir, 'postgres/data')), false, 'It was made all the same.')
})

test('while the doctor checks: 1 and a sentence, and PostgreSQL is stopped', async () => {
  const dataDir = join(base, 'checked')
  assert.equal((await tundish(['org', 'list'], { DATA_DIR: dataDir })).code, 0)
  const { code, stderr } = await interrupted(dataDir, ['doctor'], () => isRunning(dataDir))
  // It may have been a moment too late: then everything was checked.
  if (stderr !== '') assert.deepEqual([code, stderr], [1, 'Stopped: not everything was checked.\n'])
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

/** Serves until the log, whose reader has ended, cannot be written. */
async function serveUnread(name: string, workers: string[], signal?: NodeJS.Signals) {
  const dataDir = join(base, name)
  const program = spawnTundish(['serve', ...workers], { DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0' })
  const stderr = text(program.stderr)
  const ended = once(program, 'exit')
  let url: string | undefined
  for await (const line of createInterface({ input: program.stdout })) {
    url = /Tundish is ready/.test(line) ? JSON.parse(line).url : undefined
    if (url) break
  }
  program.stdout.destroy()
  if (signal) program.kill(signal)
  // Each request is a line of the log, until the server has found that it cannot be written.
  const asking = setInterval(() => void fetch(`${url}/public/v1/funnels`).catch(() => {}), 50)
  const [code] = await ended
  clearInterval(asking)
  program.stdin.destroy()
  return { code, stderr: await stderr, isRunning: isRunning(dataDir) }
}

const LOST = 'The log cannot be written (EPIPE): stopping.\n'

for (const workers of [[], ['--workers', '2']])
  test(`serve ${workers.join(' ')} without a reader of its log: 1 and a sentence, and PostgreSQL is stopped`, async () => {
    const { code, stderr, isRunning } = await serveUnread(`unread ${workers.length}`, workers)
    assert.deepEqual({ code, isRunning }, { code: 1, isRunning: false }, stderr)
    assert.equal(stderr.split('\n')[0], LOST.trim())
  })

test('serve with a Ctrl-C that ended the reader of its log too: 0, and PostgreSQL is stopped', async () => {
  const stopped = await serveUnread('unread at the end', [], 'SIGINT')
  assert.deepEqual(stopped, { code: 0, stderr: '', isRunning: false })
})
