// Workers that die, a supervisor that is killed, and the end of all of them.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive } from '../../../src/lib/embedded/account.ts'
import { noTerminal, openTerminal, startProcess, tundish } from '../../support/cli.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'
import { openWorkers, pidsOf, sendUntilStopped, type Workers } from './workers.ts'

const LONG = { timeout: 240_000 }
const ready = 'A worker is ready.'
const died = 'A worker ended unexpectedly; another takes its place.'

function temporaryFolder(): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-workers-'))
  // As root, PostgreSQL's account has to pass.
  chmodSync(folder, 0o711)
  return folder
}

describe('a worker', LONG, () => {
  let workers: Workers
  before(async () => {
    workers = await openWorkers(2)
  })
  after(() => workers.close())

  test('that is killed under load is replaced; others respond, and its own clients at their next try', async () => {
    const { shop } = workers
    const read = { key: shop.projectKey }
    const stop = sendUntilStopped(workers, 12, (client) => client.call('/public/v1/subscriptions', read), 1)
    await sleep(300)
    const [victim] = workers.pids()
    process.kill(victim!, 'SIGKILL')
    await workers.untilLogged(ready, 3)
    await sleep(300)
    await until('many responses', () => stop.received.responses > 300)
    const received = await stop()
    // Each connection breaks once: the client of every one was sending all the time.
    assert.ok(received.wrong.length <= 12, String(received.wrong.length))
    assert.deepEqual(
      received.wrong.filter((one) => !/ECONNRESET|socket hang up|EPIPE/.test(one)),
      [],
    )
    assert.ok(received.responses > 300, String(received.responses))
    assert.deepEqual(
      workers.logged(died).map(({ pid, signal }) => [pid, signal]),
      [[victim, 'SIGKILL']],
    )
    assert.equal(workers.pids().length, 2)
  })

  test('that dies while it is handed a connection does not break it', async () => {
    const [frozen] = workers.pids()
    process.kill(frozen!, 'SIGSTOP')
    const clients = Array.from({ length: 6 }, () => workers.client())
    const responses = clients.map((client) => client.call('/health/ready'))
    // One of them is on its way to the frozen worker.
    const received = Promise.all(responses)
    const early = await Promise.race([received.then(() => 'all'), sleep(1000, 'some')])
    process.kill(frozen!, 'SIGKILL')
    const statuses = (await received).map(({ status }) => status)
    for (const client of clients) client.close()
    assert.equal(early, 'some')
    assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200])
    await until('another', () => workers.pids().length === 2)
  })

  test('ignores signals, which are for its supervisor', async () => {
    const pids = workers.pids()
    for (const pid of pids) for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal)
    await sleep(300)
    assert.deepEqual(workers.pids(), pids)
  })

  test('that dies at once again and again is replaced more and more slowly', async () => {
    const deaths = workers.logged(died).length
    for (let n = 1; n <= 4; n++) {
      process.kill(workers.pids().at(-1)!, 'SIGKILL')
      await workers.untilLogged(died, deaths + n)
      await until('another', () => workers.pids().length === 2)
    }
    // The first may have served for long before it was killed: no pause follows then.
    const [, ...pauses] = workers
      .logged(died)
      .slice(deaths)
      .map(({ pause_ms }) => Number(pause_ms))
    assert.ok(pauses[0]! > 0, String(pauses))
    assert.deepEqual(pauses.slice(1), [pauses[0]! * 2, pauses[0]! * 4])
    const client = workers.client()
    assert.equal((await client.call('/health/ready')).status, 200)
    client.close()
  })
})

describe('on the embedded database', LONG, () => {
  let dataDir: string
  let env: Record<string, string>
  before(() => {
    dataDir = temporaryFolder()
    env = { DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0' }
  })
  after(() => rmSync(dataDir, { recursive: true, force: true }))

  const databaseRuns = () => existsSync(join(dataDir, 'postgres/data/postmaster.pid'))

  test('SIGTERM leaves nothing behind', async () => {
    const server = await startProcess(env, ['--workers', '2'])
    assert.ok(databaseRuns())
    await server.stop()
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    assert.deepEqual(pidsOf(server.log).filter(isAlive), [])
    assert.ok(!databaseRuns())
    assert.deepEqual(
      server.log.filter(({ level }) => Number(level) > 30),
      [],
    )
  })

  test('the workers of a supervisor that is killed end, and the last one stops the database', async () => {
    const server = await startProcess(env, ['--workers', '2'])
    server.process.kill('SIGKILL')
    await server.ended
    await until('the workers to leave', () => pidsOf(server.log).filter(isAlive).length === 0)
    assert.ok(!databaseRuns())
    const next = await startProcess(env, ['--workers', '1'])
    assert.equal((await fetch(`${next.url}/health/ready`)).status, 200)
    await next.stop()
  })
})

describe('a terminal that is closed', LONG, () => {
  for (const args of [[], ['--workers', '1']]) {
    test(titled(`ends "${['serve', ...args].join(' ')}", which stops its database`, noTerminal), {
      skip: noTerminal,
    }, async () => {
      const dataDir = temporaryFolder()
      const terminal = openTerminal(['serve', ...args], { DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0' })
      try {
        await terminal.untilPrinted(/Tundish is ready\./)
        terminal.process.kill('SIGKILL')
        await until('the database to be stopped', () => !existsSync(join(dataDir, 'postgres/data/postmaster.pid')))
      } finally {
        rmSync(dataDir, { recursive: true, force: true })
      }
    })
  }
})

describe('a start', LONG, () => {
  let workers: Workers
  before(async () => {
    workers = await openWorkers(1)
  })
  after(() => workers.close())

  test('on a port that is taken is refused with one sentence', async () => {
    const { port } = new URL(workers.url)
    const { code, stderr } = await tundish(['serve', '--workers', '3'], { ...workers.billing.server.env, PORT: port })
    assert.equal(stderr, `Port ${port} is taken on 127.0.0.1: stop the program that uses it, or set PORT to another.\n`)
    assert.equal(code, 2)
  })

  test('with an invalid number, or with too few connections for it, is refused with one sentence', async () => {
    const { env } = workers.billing.server
    for (const number of ['0', '-1', '2.5', 'all', '1000', '']) {
      const { code, stderr } = await tundish(['serve', '--workers', number], env)
      assert.equal(stderr, `--workers must be a whole number from 1 to 256, or auto, got "${number}".\n`)
      assert.equal(code, 2)
    }
    const { code, stderr } = await tundish(['serve', '--workers', '4'], { ...env, DATABASE_CONNECTIONS: '14' })
    assert.match(stderr, /^4 workers need DATABASE_CONNECTIONS of 15 at least: 3 for each, /)
    assert.equal(code, 2)
  })
})
