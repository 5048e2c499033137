// tundish sync: a copy in files or another database is equal to the project, whatever happens in between.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnTundish, tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase, runStatement } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { type Project, startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'
import { metadataTexts, noDuckDb, readerOf } from './copies.ts'
import { checkEqual, EMAIL, filled, METADATA, PROFILES, syncEnv } from './source.ts'

const server = await startTestServer()
const folder = temporaryFolder()
after(() => server.stop())

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
    const child = spawnTundish(['sync', '--to', `duckdb:${path}`, '--follow'], env)
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
      const { child, ended, waitFor } = follow(project, target)
      await waitFor(/^2309 records stored in /)
      await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
      await waitFor(/^4 records stored/)
      child.kill('SIGTERM')
      assert.equal(await ended, 0)
      await checkEqual(server, project, readerOf(target))
    })
  }

  test('in PostgreSQL: --follow waits for a database that is away, and continues', async () => {
    const project = await filled(server)
    const { url } = await freshDatabase()
    const { child, ended, waitFor } = follow(project, url)
    await waitFor(/^2309 records stored in /)
    // Its next batch is refused, and is not lost.
    await runStatement(url, `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`)
    const disconnect = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'tundish sync'`
    await runStatement(url, disconnect)
    await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
    await waitFor(/^The database of the copy is unavailable \(.*read-only transaction\)\. Trying again\.$/)
    const writable = `begin read write; alter database ${new URL(url).pathname.slice(1)} reset default_transaction_read_only; commit`
    await runStatement(url, writable)
    await waitFor(/^4 records stored/)
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
    await checkEqual(server, project, readerOf(url))
  })

  test('in SQLite: --follow waits for a file that another program has locked, and continues', async () => {
    const project = await filled(server)
    const path = join(folder, 'locked.sqlite')
    const { child, ended, waitFor } = follow(project, `sqlite:${path}`)
    await waitFor(/^2309 records stored in /)
    const other = new DatabaseSync(path)
    other.exec('pragma busy_timeout = 60000; begin immediate')
    await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
    await waitFor(/^The file of the copy cannot be used \(database is locked\)\. Trying again\.$/)
    other.exec('rollback')
    other.close()
    await waitFor(/^4 records stored/)
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
    await checkEqual(server, project, readerOf(`sqlite:${path}`))
  })

  test('--follow waits at its start for a server that is away, unless nothing was copied from it yet, and for a rate limit', async () => {
    const project = await filled(server)
    let refusal: { status: number; message: string } | undefined = { status: 503, message: 'Away.' }
    const front = createServer(async ({ url, headers }, response) => {
      if (refusal) return response.writeHead(refusal.status).end(JSON.stringify(refusal))
      const {
        status,
        headers: sent,
        body,
      } = await fetch(`${server.url}${url}`, {
        headers: { 'Service-Secret': String(headers['service-secret']) },
      })
      response.writeHead(status, { 'content-type': sent.get('content-type')! })
      await pipeline(Readable.fromWeb(body as ReadableStream), response)
    })
    front.listen(0, '127.0.0.1')
    await once(front, 'listening')
    after(() => front.close())
    const env = { ...syncEnv(server, project), SYNC_URL: `http://127.0.0.1:${(front.address() as AddressInfo).port}` }
    const to = `sqlite:${join(folder, 'away.sqlite')}`
    const untried = await tundish(['sync', '--follow', '--to', to], env)
    assert.deepEqual([untried.code, untried.stderr], [1, 'The server refused: Away.\n'])
    refusal = undefined
    assert.equal((await tundish(['sync', '--to', to], env)).code, 0)
    await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
    refusal = { status: 503, message: 'Away.' }
    const { child, ended, waitFor } = follow(project, to, env)
    await waitFor(/^Away\. Trying again\.$/)
    refusal = undefined
    await waitFor(/^4 records stored/)
    refusal = { status: 429, message: 'Too fast.' }
    await waitFor(/^Too fast\. Trying again\.$/)
    refusal = undefined
    await project.post('/profiles/anonymize', { profile_ids: ['p-0'] })
    await waitFor(/^1 record stored/)
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
  })
})

/** `waitFor` resolves when a line was printed, to standard output or as an error. */
function follow(project: Project, target: string, env = syncEnv(server, project)) {
  const child = spawnTundish(['sync', '--follow', '--every', '1', '--to', target], env)
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n').filter(Boolean)))
  const waitFor = (what: RegExp) =>
    until(String(what), () => {
      assert.equal(child.exitCode, null, lines.join('\n'))
      return lines.some((line) => what.test(line))
    })
  return { child, ended, waitFor }
}

/** The files of a target in which the text stands. */
function filesWith(target: string, text: string): string[] {
  const path = target.replace(/^sqlite:/, '')
  const files = statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name))
    : [path, `${path}-wal`].filter(existsSync)
  return files.filter((file) => statSync(file).isFile() && readFileSync(file).includes(text))
}
