// The doctor names the cause of a failure behind a pooler: a missing address, the other database, the other role, an old setting.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer } from 'node:net'
import { after, test } from 'node:test'
import type { Finding } from '../../../src/operator/doctor/doctor.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase, runStatement } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'

const role = `pooled_${randomBytes(4).toString('hex')}`

const database = await freshDatabase()
const folder = temporaryFolder()
await runStatement(database.url, `create role ${role} login superuser password 'pooled'`)
// Refuses each client as PgBouncer in transaction mode does.
const pooler = createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', () => socket.end(refusal('unsupported startup parameter: options')))
})
await new Promise<void>((resolve) => pooler.listen(0, '127.0.0.1', resolve))
after(async () => {
  pooler.close()
  await runStatement(database.url, `drop owned by ${role}`)
  await runStatement(database.url, `drop role ${role}`)
  await database.drop()
})

function refusal(message: string, code = '08P01'): Buffer {
  const fields = `SFATAL\0C${code}\0M${message}\0\0`
  return Buffer.concat([Buffer.from('E'), lengthOf(fields), Buffer.from(fields)])
}

function lengthOf(text: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(text.length + 4)
  return length
}

const poolerUrl = () => `postgresql://tundish@127.0.0.1:${(pooler.address() as { port: number }).port}/tundish`
/** Passes everything on but the settings of the session, as a pooler that is set to ignore them. */
const silent = createServer((socket) => {
  const { port, searchParams } = new URL(database.url)
  const server = connect(`${searchParams.get('host')}/.s.PGSQL.${port || 5432}`)
  for (const [one, other] of [
    [socket, server],
    [server, socket],
  ] as const) {
    one.on('error', () => {})
    one.on('close', () => other.destroy())
  }
  socket.once('data', (start) => {
    const fields = start.subarray(8).toString().split('\0')
    const at = fields.indexOf('options')
    const kept = Buffer.from(fields.toSpliced(at, at < 0 ? 0 : 2).join('\0'))
    server.write(Buffer.concat([lengthOf(`....${kept}`), start.subarray(4, 8), kept]))
    socket.on('data', (chunk) => {
      if (inStatementMode && chunk.includes('begin')) {
        server.unpipe(socket)
        socket.end(refusal('transaction blocks not allowed in statement pooling mode'))
      } else if (asPgpool && chunk.includes('show pool_version')) socket.write(POOL_VERSION)
      else server.write(chunk)
    })
  })
  server.pipe(socket)
})
/** Whether it ends the connection of a client that begins a transaction, as PgBouncer in statement mode does. */
let inStatementMode = false
/** Whether it responds to the question for the version of Pgpool-II. */
let asPgpool = false
const POOL_VERSION = Buffer.from('C\0\0\0\x09SHOW\0Z\0\0\0\x05I', 'latin1')
await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
after(() => silent.close())
function silentUrl(): string {
  const { username, password, pathname } = new URL(database.url)
  return `postgresql://${username}:${password}@127.0.0.1:${(silent.address() as AddressInfo).port}${pathname}`
}

const KEY = randomBytes(32).toString('base64')

async function findingOf(check: string, env: Record<string, string>) {
  const { stdout } = await tundishAgain(['doctor', '--json'], { MASTER_KEY: KEY, DATA_DIR: folder, ...env })
  const found = (JSON.parse(stdout).findings as Finding[]).find((one) => one.check === check)
  return `${found?.level}: ${found?.message} ${found?.fix}`
}

test('failed with the missing setting for a pooler without DIRECT_DATABASE_URL', async () => {
  assert.match(await findingOf('database', { DATABASE_URL: poolerUrl() }), /^failed: .* set DIRECT_DATABASE_URL to/)
})

test('a pooler that ignores the settings of sessions is refused at the start and named, without DIRECT_DATABASE_URL', async () => {
  const env = { DATABASE_URL: silentUrl() }
  const finding = await findingOf('pooler', env)
  assert.match(finding, /^failed: .* lacks the settings .*statement_timeout.* set DIRECT_DATABASE_URL to/)
  const { code, stderr } = await tundishAgain(['org', 'list'], { MASTER_KEY: KEY, DATA_DIR: folder, ...env })
  assert.equal(code, 2)
  assert.match(stderr, /^DATABASE_URL leads through a pooler: set DIRECT_DATABASE_URL to .*\n$/)
})

test('failed with the name of the setting for a DIRECT_DATABASE_URL that leads nowhere, or through a pooler', async () => {
  const nowhere = 'postgresql://tundish@127.0.0.1:1/tundish'
  const refused = await findingOf('pooler', { DATABASE_URL: database.url, DIRECT_DATABASE_URL: nowhere })
  assert.match(
    refused,
    /^failed: The database of DIRECT_DATABASE_URL cannot be used .*rights in DIRECT_DATABASE_URL\.$/,
  )
  const pooled = await findingOf('pooler', { DATABASE_URL: database.url, DIRECT_DATABASE_URL: poolerUrl() })
  assert.match(pooled, /^failed: .* DIRECT_DATABASE_URL leads through a pooler/)
  const env = { MASTER_KEY: KEY, DATA_DIR: folder, DATABASE_URL: database.url, DIRECT_DATABASE_URL: nowhere }
  const started = await tundishAgain(['org', 'list'], env)
  assert.match(started.stderr, /^The database of DIRECT_DATABASE_URL cannot be used/)
})

test('a warning with the cause for missing settings: not set yet, or another role', async () => {
  const env = { MASTER_KEY: KEY, DATA_DIR: folder, DATABASE_URL: database.url, DIRECT_DATABASE_URL: database.url }
  assert.match(
    await findingOf('pooler', env),
    /^warning: The role ".+" lacks settings .*plan_cache_mode.* Restart Tundish/,
  )
  assert.equal((await tundishAgain(['org', 'list'], env)).code, 0)
  assert.match(await findingOf('pooler', env), /^ok: /)
  const changed = { ...env, STATEMENT_TIMEOUT_MS: '12345' }
  assert.match(await findingOf('pooler', changed), /^warning: The role ".+" lacks settings \(statement_timeout\)/)
  const pooled = Object.assign(new URL(database.url), { username: role, password: 'pooled' }).href
  await runStatement(database.url, `alter role ${role} set timezone = 'Asia/Tokyo'`)
  const otherRole = { ...env, DATABASE_URL: pooled }
  const sentence = new RegExp(
    `DATABASE_URL has the role "${role}", which lacks settings of the role .* Use one role in both\\.`,
  )
  assert.match(await findingOf('pooler', otherRole), sentence)
  const refused = await tundishAgain(['org', 'list'], otherRole)
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, sentence)
})

test('Pgpool-II is refused at the start and named, at each address', async (t) => {
  asPgpool = true
  t.after(() => {
    asPgpool = false
  })
  const pgpool = silentUrl()
  for (const [setting, env] of [
    ['DATABASE_URL', { DATABASE_URL: pgpool }],
    ['DATABASE_URL', { DATABASE_URL: pgpool, DIRECT_DATABASE_URL: database.url }],
    ['DIRECT_DATABASE_URL', { DATABASE_URL: database.url, DIRECT_DATABASE_URL: pgpool }],
  ] as const) {
    const sentence = `${setting} leads through Pgpool-II, which mixes up statements that are sent together. Set ${setting} to the address of PostgreSQL itself.`
    assert.equal(await findingOf('pooler', env), `failed: ${sentence}`)
    const { code, stderr } = await tundishAgain(['org', 'list'], { MASTER_KEY: KEY, DATA_DIR: folder, ...env })
    assert.deepEqual([code, stderr], [2, `${sentence}\n`])
  }
})

test('one sentence for a pooler that has no server for its client', async (t) => {
  const away = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(refusal('Tenant or user not found', 'XX000')))
  })
  await new Promise<void>((resolve) => away.listen(0, '127.0.0.1', resolve))
  t.after(() => away.close())
  const { port } = away.address() as AddressInfo
  const env = { MASTER_KEY: KEY, DATA_DIR: folder, DATABASE_URL: `postgresql://tundish@127.0.0.1:${port}/tundish` }
  const { code, stderr } = await tundishAgain(['org', 'list'], env)
  assert.equal(code, 2)
  assert.match(
    stderr,
    /^The database of DATABASE_URL cannot be used \(Tenant or user not found\): check its address.*\n$/,
  )
})

test('a pooler in statement mode is refused at the start and named', async (t) => {
  inStatementMode = true
  t.after(() => {
    inStatementMode = false
  })
  const env = { DATABASE_URL: silentUrl(), DIRECT_DATABASE_URL: database.url }
  const sentence = /DATABASE_URL leads through a pooler in statement mode.* set its pool_mode to transaction\.$/m
  assert.match(await findingOf('database', env), sentence)
  const { code, stderr } = await tundishAgain(['org', 'list'], { MASTER_KEY: KEY, DATA_DIR: folder, ...env })
  assert.equal(code, 2)
  assert.match(stderr, sentence)
})
