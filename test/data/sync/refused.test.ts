// tundish sync: what is refused, and with which sentence.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, describe, test } from 'node:test'
import { filesTarget } from '../../../src/data/sync/files.ts'
import { freePort, spawnTundish, succeeded } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { tundishAgain } from '../../support/resident.ts'
import { startTestServer } from '../../support/server.ts'
import { titled } from '../../support/titled.ts'
import { inDuckDb, noDuckDb } from './copies.ts'
import { filled, PROFILES } from './source.ts'

const server = await startTestServer()
const folder = temporaryFolder()
after(() => server.stop())

describe('a sync that is refused', () => {
  const refused = async (args: string[], settings: Record<string, string>, code: number, sentence: RegExp) => {
    const outcome = await tundishAgain(['sync', ...args], settings)
    assert.deepEqual([outcome.code, outcome.stdout], [code, ''], outcome.stderr)
    assert.match(outcome.stderr, sentence)
  }

  test('2 without a key, for an invalid address, and for an invalid target', async () => {
    const to = ['--to', `sqlite:${join(folder, 'never.sqlite')}`]
    await refused(to, { SYNC_URL: server.url }, 2, /SYNC_KEY or with --key-file/)
    await refused(to, { SYNC_URL: server.url, SYNC_KEY: 'secret_…' }, 2, /^The key has a character that no key has: /)
    await refused([...to, '--url', 'ftp://x'], { SYNC_KEY: 'x' }, 2, /--url must be an address/)
    for (const url of ['http://u:p@x', 'http://x?y', 'http://x/#y'])
      await refused([...to, '--url', url], { SYNC_KEY: 'x' }, 2, /--url must not contain a user name/)
    await refused([...to, '--url', 'http://x/public/v1/'], { SYNC_KEY: 'x' }, 2, /\/public\/v1: it is added/)
    for (const target of ['mysql://x/y', 's3://bucket/x', 'POSTGRES://x/y', 'bigquery:x', 'Snowflake:x', ''])
      await refused(['--to', target], { SYNC_KEY: 'x' }, 2, /--to must be a folder/)
    await refused(
      ['--to', '-'],
      { SYNC_KEY: 'x' },
      2,
      /^--to must be a folder, not standard output: a copy has several files/,
    )
    for (const target of ['sqlite:', 'sqlite::memory:', 'duckdb::memory:'])
      await refused(['--to', target], { SYNC_KEY: 'x' }, 2, /needs a file after the colon/)
    await refused([...to, '--format', 'csv'], { SYNC_KEY: 'x' }, 2, /--format is for a folder/)
    const inSetting = /^SYNC_URL must not contain \/public\/v1: it is added\.\n$/
    await refused(to, { SYNC_URL: 'http://x/public/v1', SYNC_KEY: 'x' }, 2, inSetting)
    for (const pause of ['0', '0s', '2d', '5x'])
      await refused([...to, '--every', pause], { SYNC_KEY: 'x' }, 2, /--every must be/)
    assert.equal(existsSync(join(folder, 'never.sqlite')), false)
  })

  test('a sentence that --every has no effect without --follow, and none without it', async () => {
    const to = ['--to', `sqlite:${join(folder, 'once.sqlite')}`]
    const settings = { SYNC_URL: server.url, SYNC_KEY: 'wrong' }
    await refused(
      [...to, '--every', '1h'],
      settings,
      1,
      /^--every has no effect without --follow: .+\nThe server refused/,
    )
    for (const more of [[], ['--follow', '--every', '1h']])
      await refused([...to, ...more], settings, 1, /^The server refused/)
  })

  test('1 for a wrong key, and for a copy of another server', async () => {
    const project = await filled(server)
    const to = ['--to', `sqlite:${join(folder, 'other.sqlite')}`]
    await refused(
      [...to, '--every', '1h'],
      { SYNC_URL: server.url, SYNC_KEY: 'wrong' },
      1,
      /The server refused: Unauthorized: .+ The key is wrong or expired, or was revoked: give a valid one\. The next sync continues/,
    )
    const file = join(folder, 'key')
    writeFileSync(file, `${project.key}\n`)
    await succeeded(tundishAgain(['sync', ...to, '--key-file', file], { SYNC_URL: server.url }))
    const elsewhere = server.url.replace('127.0.0.1', 'localhost')
    await refused(to, { SYNC_URL: elsewhere, SYNC_KEY: project.key }, 1, /This copy is of http:\/\/127/)
  })

  test('a sentence at the first request, while it tries again, for a server that is away', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const child = spawnTundish(['sync', '--to', `sqlite:${join(folder, 'away.sqlite')}`], {
      SYNC_URL: url,
      SYNC_KEY: 'x',
    })
    const closed = once(child, 'close')
    const [first] = await once(createInterface(child.stderr), 'line')
    assert.equal(first, `${url} cannot be reached. Trying again.`)
    child.kill('SIGTERM')
    assert.deepEqual(await closed, [1, null])
  })

  test('1 and a sentence for a server that is not Tundish', async () => {
    let type: string | undefined
    const page = createServer((_request, response) => {
      if (type) response.setHeader('content-type', type)
      response.end(type ? '<!doctype html><p>Welcome' : '<!doctype html>\n<p>Welcome')
    })
    await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}`
    const to = ['--to', `sqlite:${join(folder, 'page.sqlite')}`]
    await refused(to, { SYNC_URL: url, SYNC_KEY: 'x' }, 1, /^The response of .+ is not that of Tundish/)
    type = 'text/html; charset=utf-8'
    await refused(to, { SYNC_URL: url, SYNC_KEY: 'x' }, 1, /\(The response is an HTML page: check the address\.\)/)
    page.close()
  })

  test(titled('in DuckDB: 1 for a file of another format, which DuckDB opens without writing to it', noDuckDb), {
    skip: noDuckDb,
  }, async () => {
    const settings = { SYNC_URL: server.url, SYNC_KEY: (await filled(server)).key }
    writeFileSync(join(folder, 'other.json'), '{"a":1}\n{"a":2}\n')
    const sentence = /^The file of the copy cannot be used \(.+other\.json is not a DuckDB database\)\.\n$/
    await refused(['--to', `duckdb:${join(folder, 'other.json')}`], settings, 1, sentence)
  })

  test(titled('in DuckDB: 1 and a sentence without values for a table that its owner altered', noDuckDb), {
    skip: noDuckDb,
  }, async () => {
    const settings = { SYNC_URL: server.url, SYNC_KEY: (await filled(server)).key }
    const path = join(folder, 'altered.duckdb')
    assert.equal((await tundishAgain(['sync', '--to', `duckdb:${path}`], settings)).code, 0)
    const alter = 'alter table profiles alter email type integer using null; update tundish_sync set since = null'
    await inDuckDb(path, alter)
    await refused(
      ['--to', `duckdb:${path}`],
      settings,
      1,
      /^The file of the copy cannot be used \([A-Z][a-z]+ Error\)\.\n$/,
    )
    await refused(['--to', `duckdb:${folder}`], settings, 1, /^duckdb:.+ cannot be used: it is a folder \(EISDIR\)\. /)
  })

  test('1 and a sentence for a folder of a copy that cannot be made', async () => {
    const settings = { SYNC_URL: server.url, SYNC_KEY: (await filled(server)).key }
    const file = join(folder, 'a file')
    writeFileSync(file, '')
    await refused(
      ['--to', file],
      settings,
      1,
      /a file cannot be used: a part of its path is not a folder \(ENOTDIR\)\. /,
    )
  })

  test('1 and a sentence for a file of a copy that cannot be replaced, and the next run writes it', async () => {
    const settings = { SYNC_URL: server.url, SYNC_KEY: (await filled(server)).key }
    const to = join(folder, 'blocked')
    const blocked = join(to, 'profiles.ndjson')
    mkdirSync(blocked, { recursive: true })
    await refused(
      ['--to', to],
      settings,
      1,
      /blocked\/profiles\.ndjson cannot be used: it is a folder \(EISDIR\)\. The next sync/,
    )
    const drafts = readdirSync(join(to, '.tundish')).filter((name) => name.endsWith('.draft'))
    assert.deepEqual(drafts, [], 'a draft takes place on a disk that may be full')
    rmSync(blocked, { recursive: true })
    assert.equal((await tundishAgain(['sync', '--to', to], settings)).code, 0)
    assert.equal(readFileSync(blocked, 'utf8').trimEnd().split('\n').length, PROFILES + 1)
  })

  test('1 and a sentence for a folder that another sync is writing to', async () => {
    const settings = { SYNC_URL: server.url, SYNC_KEY: (await filled(server)).key }
    const to = join(folder, 'two')
    const other = filesTarget(to, 'ndjson')
    await other.open()
    await refused(['--to', to], settings, 1, /^Another sync is writing to this copy: .+ Nothing was stored\.\n$/)
    await other.close()
    assert.equal((await tundishAgain(['sync', '--to', to], settings)).code, 0)
  })

  test('1 and a sentence for a file that is not a copy, and for a folder with files of another format', async () => {
    const settings = { SYNC_URL: server.url, SYNC_KEY: (await filled(server)).key }
    writeFileSync(join(folder, 'text.sqlite'), 'This is a text, and no database.')
    const isNone = /^The file of the copy cannot be used \(file is not a database\)\.\n$/
    await refused(['--to', `sqlite:${join(folder, 'text.sqlite')}`], settings, 1, isNone)
    const noFolder = /^The file of the copy cannot be used \(unable to open database file\)\.\n$/
    await refused(['--to', `sqlite:file:${join(folder, 'uri.sqlite')}`], settings, 1, noFolder)
    const nowhere = /^The file of the copy cannot be used \(unable to open database file\)\.\n$/
    await refused(['--to', `sqlite:${join(folder, 'nowhere/copy.sqlite')}`], settings, 1, nowhere)
    const to = ['--to', join(folder, 'formats')]
    assert.equal((await tundishAgain(['sync', ...to, '--format', 'csv'], settings)).code, 0)
    await refused(to, settings, 1, /has files of the format csv: give --format csv, name another folder/)
    assert.equal((await tundishAgain(['sync', ...to, '--format', 'csv'], settings)).code, 0)
  })
})
