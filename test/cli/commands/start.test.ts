// How a start looks to a person: ports that are taken, lines to read on a terminal, and what Ctrl-C does.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { readConfig } from '../../../src/config.ts'
import { CTRL_C, noTerminal, openTerminal, succeeded, tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { line, textOf } from '../../support/imports.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { titled } from '../../support/titled.ts'

async function occupy(): Promise<{ server: Server; port: number }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

describe('a start', () => {
  let folder: string
  before(() => {
    folder = temporaryFolder()
  })

  test('2 and a sentence for each port that is taken, before a database is made', async () => {
    const [one, other] = await Promise.all([occupy(), occupy()])
    try {
      const DATA_DIR = join(folder, 'untouched')
      const env = { DATA_DIR, PORT: String(one.port), ADMIN_PORT: String(other.port) }
      assert.deepEqual(await tundish(['serve'], env), {
        code: 2,
        stdout: '',
        stderr:
          `Port ${one.port} is taken on 127.0.0.1: stop the program that uses it, or set PORT to another.\n` +
          `Port ${other.port} is taken on 127.0.0.1: stop the program that uses it, or set ADMIN_PORT to another.\n`,
      })
      assert.ok(!existsSync(DATA_DIR))
    } finally {
      one.server.close()
      other.server.close()
    }
  })

  test('1 for a demo that cannot be made: nothing keeps the program', async () => {
    const env = { DATA_DIR: join(folder, 'other'), PORT: '0', ADMIN_PORT: '0' }
    await tundishAgain(['org', 'create', 'other'], env)
    await tundishAgain(['project', 'create', 'demo', '--org', 'other'], env)
    // With a profile the data of the demo counts as imported, which takes ten seconds; its key is what cannot be made.
    const file = join(folder, 'profile.ndjson')
    writeFileSync(file, textOf([line.profile()]))
    await succeeded(tundishAgain(['import', '--project', 'demo', file], env))
    const { code, stderr } = await tundish(['serve', '--demo'], env)
    assert.deepEqual([code, stderr.split('\n').length], [1, 2], stderr)
  })

  test('2 and a sentence for an address that this machine does not have', async () => {
    for (const HOST of ['203.0.113.5', 'fe80::1'])
      assert.deepEqual(
        await tundish(['serve'], { DATA_DIR: join(folder, 'untouched'), HOST, PORT: '0', ADMIN_PORT: '0' }),
        {
          code: 2,
          stdout: '',
          stderr: `This machine has no address ${HOST}: set HOST to one that it has, or to 0.0.0.0.\n`,
        },
      )
  })

  test('PORT moves both listeners unless ADMIN_PORT is set, and one port cannot serve both', () => {
    const ports = (env: Record<string, string>) => {
      const { port, adminPort } = readConfig(env)
      return [port, adminPort]
    }
    assert.deepEqual(ports({}), [8080, 8081])
    assert.deepEqual(ports({ PORT: '9000' }), [9000, 9001])
    assert.deepEqual(ports({ PORT: '0' }), [0, 0])
    assert.deepEqual(ports({ PORT: '9000', ADMIN_PORT: '7000' }), [9000, 7000])
    assert.throws(() => ports({ PORT: '9000', ADMIN_PORT: '9000' }), /^Error: ADMIN_PORT must not be 9000/)
  })
})

describe(titled('on a terminal', noTerminal), { skip: noTerminal }, () => {
  let database: FreshDatabase
  let folder: string
  const masterKey = randomBytes(32).toString('base64')
  before(async () => {
    database = await freshDatabase()
    folder = temporaryFolder()
  })
  after(() => database.drop())

  for (const [name, setting, colored] of [
    ['readable lines in colour', { TERM: 'xterm-256color' }, true],
    ['readable lines without colour where NO_COLOR is set', { TERM: 'xterm-256color', NO_COLOR: '1' }, false],
  ] as const) {
    test(`${name}; Ctrl-C prints a notice`, async () => {
      const env = { DATABASE_URL: database.url, MASTER_KEY: masterKey, DATA_DIR: folder, PORT: '0', ...setting }
      const terminal = openTerminal(['serve'], env)
      await terminal.untilPrinted(/Tundish is ready\..*url=(\S+)/)
      const url = /url=(http:[\w.:/]+)/.exec(terminal.output())![1]!
      assert.equal((await fetch(`${url}/public/v1/funnels`)).status, 401)
      await terminal.untilPrinted(/GET \/public\/v1\/funnels .*401.* \d+ ms/)
      terminal.press(CTRL_C)
      await terminal.ended
      const output = terminal.output()
      assert.match(
        output,
        /Stopping: requests in flight are finished first\. Another Ctrl-C or SIGTERM stops at once\./,
      )
      assert.match(output, /Stopped\./)
      assert.doesNotMatch(output, /"level"/)
      assert.equal(output.includes('\x1b[33m401'), colored, output)
    })
  }

  test('a command that makes an empty database says where, once', async () => {
    const env = { DATA_DIR: join(folder, 'new') }
    const list = async () => {
      const terminal = openTerminal(['org', 'list'], env)
      assert.equal(await terminal.ended, 0)
      return terminal.output()
    }
    const made = `Making an empty database in ${env.DATA_DIR}: for an existing one set DATA_DIR or DATABASE_URL.`
    assert.equal(await list(), `${made}\r\nThere is no organization yet.\r\n`)
    assert.equal(await list(), 'There is no organization yet.\r\n')
  })
})
