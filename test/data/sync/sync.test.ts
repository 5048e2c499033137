// tundish sync: a copy in files or another database is equal to the project, whatever happens in between.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { PROGRAM_ENV, program, tundish } from '../../support/cli.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { type Project, startTestServer } from '../../support/server.ts'
import { titled } from '../../support/titled.ts'
import { metadataTexts, readerOf } from './copies.ts'
import { checkEqual, EMAIL, filled, METADATA, PROFILES, syncEnv } from './source.ts'

const noDuckDb = (() => {
  try {
    createRequire(import.meta.url).resolve('@duckdb/node-api')
    return undefined
  } catch {
    return '@duckdb/node-api is not installed'
  }
})()

const server = await startTestServer()
const folder = mkdtempSync(join(tmpdir(), 'tundish-sync-test-'))
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function sync(project: Project, to: string, ...more: string[]) {
  // The horizon may lag by a second.
  await sleep(1100)
  const { code, stdout, stderr } = await tundishAgain(['sync', '--json', '--to', to, ...more], syncEnv(server, project))
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as { records: number; horizon: string }
}

const TARGETS: Record<string, { to: () => Promise<string>; format?: string; skip?: string }> = {
  sqlite: { to: async () => `sqlite:${join(folder, 'copy.sqlite')}` },
  postgres: { to: async () => (await freshDatabase()).url },
  duckdb: {
    to: async () => `duckdb:${join(folder, 'copy.duckdb')}`,
    ...(noDuckDb && { skip: noDuckDb }),
  },
  'a folder of NDJSON': { to: async () => join(folder, 'ndjson'), format: 'ndjson' },
  'a folder of CSV': { to: async () => join(folder, 'csv'), format: 'csv' },
  'a folder of Parquet': { to: async () => join(folder, 'parquet'), format: 'parquet' },
}

const FOLLOWED: typeof TARGETS = {
  sqlite: { to: async () => `sqlite:${join(folder, 'followed.sqlite')}` },
  postgres: TARGETS['postgres']!,
  duckdb: { ...TARGETS['duckdb'], to: async () => `duckdb:${join(folder, 'followed.duckdb')}` },
}

describe('a copy', () => {
  for (const [name, { to, format, skip }] of Object.entries(TARGETS)) {
    test(titled(`${name}: everything, then the changes, and erased people are erased`, skip), { skip }, async () => {
      const project = await filled(server)
      const target = await to()
      const read = readerOf(target, format)
      const run = () => sync(project, target, ...(format ? ['--format', format] : []))
      assert.equal((await run()).records, PROFILES + 1 + 8)
      await checkEqual(server, project, read)
      assert.deepEqual(await metadataTexts(target, format), [METADATA])
      await server.db.query(
        `update profiles set country = 'DE', updated_at = db_clock() where project_id = $1 and id = 'p-7'`,
        [project.id],
      )
      assert.equal((await run()).records, 1)
      await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
      // The profile, its session with replies, and its subscription.
      assert.equal((await run()).records, 4)
      await checkEqual(server, project, read)
      assert.equal((await run()).records, 0)
      if (!target.startsWith('postgres') && !target.startsWith('duckdb')) assert.deepEqual(filesWith(target, EMAIL), [])
    })
  }

  test('only their owner can read its files', () => {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const paths = files.map(({ parentPath, name }) => join(parentPath, name))
    assert.ok(paths.some((path) => path.endsWith('.sqlite')) && paths.some((path) => path.endsWith('.parquet')))
    for (const path of paths) assert.equal(statSync(path).mode & 0o077, 0, path)
  })

  test(titled('in DuckDB: a batch that a killed run has left in the folder for temporary files is removed', noDuckDb), {
    skip: noDuckDb,
  }, async () => {
    const project = await filled(server)
    const temporary = join(folder, 'temporary')
    mkdirSync(temporary)
    const env = { ...syncEnv(server, project), TMPDIR: temporary }
    const path = join(folder, 'again.duckdb')
    const child = spawn(...program('sync', '--to', `duckdb:${path}`, '--follow'), { env: { ...PROGRAM_ENV, ...env } })
    const ended = once(child, 'exit')
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await ended
    const [left] = readdirSync(temporary)
    writeFileSync(join(temporary, left!, 'profiles.ndjson'), `{"email":"${EMAIL}"}\n`)
    const { code, stderr } = await tundish(['sync', '--to', `duckdb:${path}`], env)
    assert.equal(code, 0, stderr)
    assert.deepEqual(readdirSync(temporary), [])
  })

  for (const [name, { to, skip }] of Object.entries(FOLLOWED)) {
    test(titled(`${name}: --follow brings changes as they come, until it is stopped`, skip), { skip }, async () => {
      const project = await filled(server)
      const target = await to()
      const args = ['sync', '--follow', '--every', '1', '--to', target]
      const child = spawn(...program(...args), {
        env: { ...PROGRAM_ENV, ...syncEnv(server, project) },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
      const lines: string[] = []
      child.stdout.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n').filter(Boolean)))
      const waitFor = async (what: RegExp) => {
        while (!lines.some((line) => what.test(line))) {
          assert.equal(child.exitCode, null)
          await sleep(20)
        }
      }
      await waitFor(/^2309 records stored in /)
      await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
      await waitFor(/^4 records stored/)
      child.kill('SIGTERM')
      assert.equal(await ended, 0)
      await checkEqual(server, project, readerOf(target))
    })
  }
})

describe('a sync that is refused', () => {
  const refused = async (args: string[], settings: Record<string, string>, code: number, sentence: RegExp) => {
    const outcome = await tundishAgain(['sync', ...args], settings)
    assert.deepEqual([outcome.code, outcome.stdout], [code, ''], outcome.stderr)
    assert.match(outcome.stderr, sentence)
  }

  test('2 without a key, for an invalid address, and for an invalid target', async () => {
    const to = ['--to', `sqlite:${join(folder, 'never.sqlite')}`]
    await refused(to, { SYNC_URL: server.url }, 2, /SYNC_KEY or with --key-file/)
    await refused([...to, '--url', 'ftp://x'], { SYNC_KEY: 'x' }, 2, /--url must be an address/)
    for (const url of ['http://u:p@x', 'http://x?y', 'http://x/#y'])
      await refused([...to, '--url', url], { SYNC_KEY: 'x' }, 2, /--url must not contain a user name/)
    await refused([...to, '--url', 'http://x/public/v1/'], { SYNC_KEY: 'x' }, 2, /\/public\/v1: it is added/)
    for (const target of ['mysql://x/y', 's3://bucket/x', 'POSTGRES://x/y', 'bigquery:x', 'Snowflake:x', ''])
      await refused(['--to', target], { SYNC_KEY: 'x' }, 2, /--to must be a folder/)
    for (const target of ['sqlite:', 'sqlite::memory:', 'duckdb::memory:'])
      await refused(['--to', target], { SYNC_KEY: 'x' }, 2, /needs a file after the colon/)
    await refused([...to, '--format', 'csv'], { SYNC_KEY: 'x' }, 2, /--format is for a folder/)
    await refused([...to, '--every', '0'], { SYNC_KEY: 'x' }, 2, /--every must be/)
    assert.equal(existsSync(join(folder, 'never.sqlite')), false)
  })

  test('1 for a wrong key, a server that is away, a copy of another server', async () => {
    const project = await filled(server)
    const to = ['--to', `sqlite:${join(folder, 'other.sqlite')}`]
    await refused(to, { SYNC_URL: server.url, SYNC_KEY: 'wrong' }, 1, /The server refused: Unauthorized/)
    const file = join(folder, 'key')
    writeFileSync(file, `${project.key}\n`)
    const done = await tundish(['sync', ...to, '--key-file', file], { SYNC_URL: server.url })
    assert.equal(done.code, 0, done.stderr)
    const elsewhere = server.url.replace('127.0.0.1', 'localhost')
    await refused(to, { SYNC_URL: elsewhere, SYNC_KEY: project.key }, 1, /This copy is of http:\/\/127/)
  })

  test('1 and a sentence for a server that is not Tundish', async () => {
    const page = createServer((_request, response) => response.end('<!doctype html>\n<p>Welcome'))
    await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}`
    const to = ['--to', `sqlite:${join(folder, 'page.sqlite')}`]
    await refused(to, { SYNC_URL: url, SYNC_KEY: 'x' }, 1, /^The response of .+ is not that of Tundish/)
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

  test('1 and a sentence for a file that is not a copy, and for a folder with files of another format', async () => {
    const settings = { SYNC_URL: server.url, SYNC_KEY: (await filled(server)).key }
    writeFileSync(join(folder, 'text.sqlite'), 'This is a text, and no database.')
    const isNone = /^The file of the copy cannot be used \(file is not a database\)\.\n$/
    await refused(['--to', `sqlite:${join(folder, 'text.sqlite')}`], settings, 1, isNone)
    const nowhere = /^The file of the copy cannot be used \(unable to open database file\)\.\n$/
    await refused(['--to', `sqlite:${join(folder, 'nowhere/copy.sqlite')}`], settings, 1, nowhere)
    const to = ['--to', join(folder, 'formats')]
    assert.equal((await tundishAgain(['sync', ...to, '--format', 'csv'], settings)).code, 0)
    await refused(to, settings, 1, /has files of the format csv: give --format csv, name another folder/)
    assert.equal((await tundishAgain(['sync', ...to, '--format', 'csv'], settings)).code, 0)
  })
})

/** The files of a target in which the text stands. */
function filesWith(target: string, text: string): string[] {
  const path = target.replace(/^sqlite:/, '')
  const files = statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name))
    : [path, `${path}-wal`].filter(existsSync)
  return files.filter((file) => statSync(file).isFile() && readFileSync(file).includes(text))
}
