// The embedded PostgreSQL: made, shared, taken over, stopped, and refused with one sentence.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { canEnter } from '../../../src/lib/embedded/account.ts'
import { type Embedded, openEmbedded } from '../../../src/lib/embedded/embedded.ts'
import { lastServer } from '../../../src/lib/embedded/server.ts'
import { UsageError } from '../../../src/lib/errors.ts'

const ROOT = process.getuid?.() === 0
const NOBODY = { uid: 65534, gid: 65534 }
const HOLDER = join(import.meta.dirname, '../../support/hold-embedded.ts')
// A normal user is ourselves, or, as root, nobody, if that one may read the checkout.
const readable = !ROOT || (await canEnter(NOBODY, import.meta.dirname))

const silent = { info() {}, warn() {} }

const base = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-embedded-'))
// As root, PostgreSQL's account has to pass.
chmodSync(base, 0o711)
let folders = 0
const opened: Embedded[] = []
const holders: ChildProcess[] = []

after(async () => {
  for (const holder of holders) holder.kill('SIGKILL')
  for (const embedded of opened) await embedded.close()
  rmSync(base, { recursive: true, force: true })
})

const newFolder = (name = 'data') => join(base, String(++folders), name)

async function open(dataDir: string, options: { throwaway?: boolean; signal?: AbortSignal } = {}): Promise<Embedded> {
  const embedded = await openEmbedded({ dataDir, log: silent, throwaway: true, ...options })
  opened.push(embedded)
  return embedded
}

/** Another program on the same folder; `next` is the next thing it says. */
function hold(dataDir: string, as?: { uid: number; gid: number }) {
  const program = spawn(process.execPath, [HOLDER, dataDir], {
    ...as,
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  holders.push(program)
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value ?? '{}')
  const leave = async () => {
    program.stdin.end()
    await once(program, 'exit')
  }
  return { program, next, leave }
}

async function ask(url: string, sql: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query({ text: sql, rowMode: 'array' })
    return String(rows[0]?.[0])
  } finally {
    await client.end()
  }
}

const clusterOf = (dataDir: string) => join(dataDir, 'postgres/data')
const pidOf = (dataDir: string) => lastServer(clusterOf(dataDir))?.pid ?? 0
const isStopped = (dataDir: string) => lastServer(clusterOf(dataDir)) === undefined

test('the first start makes the database, and the second finds what was written', async () => {
  const dataDir = newFolder()
  const first = await open(dataDir)
  await ask(first.url, 'create table kept as select 42 as n')
  await first.close()
  await first.close()
  assert.ok(isStopped(dataDir))

  const second = await open(dataDir)
  assert.equal(await ask(second.url, 'select n from kept'), '42')
  assert.equal(second.url, first.url)
  assert.equal(await ask(second.url, `select datlocale from pg_database where datname = 'tundish'`), 'C.UTF-8')
  await second.close()
})

test('it listens on a socket in a private folder only, and asks for the password', async () => {
  const dataDir = newFolder()
  const { url, connection, close } = await open(dataDir)
  assert.equal(await ask(url, 'show listen_addresses'), '')
  assert.equal(connection.host, join(dataDir, 'postgres/run'))
  assert.equal(statSync(connection.host).mode & 0o777, 0o700)
  assert.equal(statSync(join(dataDir, 'postgres.password')).mode & 0o777, 0o600)
  assert.equal(statSync(join(dataDir, 'postgres.log')).mode & 0o777, 0o600)
  await assert.rejects(ask(url.replace(connection.password, 'guess'), 'select 1'), { code: '28P01' })
  const commandLine = await ask(url, `select pg_read_file('postmaster.opts')`)
  assert.ok(!`${commandLine}${readFileSync(join(dataDir, 'postgres.log'))}`.includes(connection.password))
  await close()
})

test('what a failing statement says does not reach the log', async () => {
  const dataDir = newFolder()
  const { url, close } = await open(dataDir)
  await assert.rejects(ask(url, `select 'ada@example.com'::int`))
  await ask(url, 'create table people (email text primary key)')
  await assert.rejects(ask(url, `insert into people values ('ada@example.com'), ('ada@example.com')`))
  await close()
  const log = readFileSync(join(dataDir, 'postgres.log'), 'utf8')
  assert.match(log, /ready to accept connections/)
  assert.doesNotMatch(log, /ada@example/)
})

test('two programs share one server, and the last to leave stops it', async () => {
  const dataDir = newFolder()
  const other = hold(dataDir)
  const { url } = await other.next()
  const ours = await open(dataDir)
  assert.equal(ours.url, url)
  await other.leave()
  assert.equal(await ask(ours.url, 'select 1'), '1')
  await ours.close()
  assert.ok(isStopped(dataDir))
})

test('whoever comes while others start or leave finds a server', async () => {
  const dataDir = newFolder()
  const comeAndGo = async () => {
    for (let round = 0; round < 8; round++) {
      const embedded = await open(dataDir)
      assert.equal(await ask(embedded.url, 'select 1'), '1')
      await embedded.close()
    }
  }
  await Promise.all([comeAndGo(), comeAndGo(), comeAndGo()])
  assert.ok(isStopped(dataDir))
})

test('a server orphaned by kill -9 is taken over, and stopped by the last to leave', async () => {
  const dataDir = newFolder()
  const killed = hold(dataDir)
  await killed.next()
  const pid = pidOf(dataDir)
  killed.program.kill('SIGKILL')
  await once(killed.program, 'exit')

  const { url, close } = await open(dataDir)
  assert.equal(pidOf(dataDir), pid)
  assert.equal(await ask(url, 'select 1'), '1')
  await close()
  assert.ok(isStopped(dataDir))
})

test('a server that dies under a program is started again, with what was committed', async () => {
  const dataDir = newFolder()
  const { url, close } = await open(dataDir, { throwaway: false })
  await ask(url, 'create table kept as select 42 as n')
  const pid = pidOf(dataDir)
  process.kill(pid, 'SIGKILL')
  let answer: string | undefined
  for (const giveUpAt = Date.now() + 10_000; answer === undefined && Date.now() < giveUpAt; await sleep(20)) {
    answer = await ask(url, 'select n from kept').catch(() => undefined)
  }
  assert.equal(answer, '42')
  await close()
  assert.ok(isStopped(dataDir))
})

test('lock files whose process id belongs to another program by now do not hinder the start', async () => {
  const dataDir = newFolder()
  await (await open(dataDir)).close()
  const { uid, gid } = statSync(clusterOf(dataDir))
  const other = spawn('sleep', ['60'], { ...(ROOT ? { uid, gid } : {}), cwd: '/' })
  const socketFolder = join(dataDir, 'postgres/run')
  for (const file of [join(clusterOf(dataDir), 'postmaster.pid'), join(socketFolder, '.s.PGSQL.5432.lock')]) {
    writeFileSync(file, `${other.pid}\n${clusterOf(dataDir)}\n1\n5432\n${socketFolder}\n\n`)
    chownSync(file, uid, gid)
  }
  const { url, close } = await open(dataDir)
  assert.equal(await ask(url, 'select 1'), '1')
  await close()
  assert.equal(other.exitCode, null)
  other.kill()
})

test('Ctrl-C reaches the program and not its server', async () => {
  const dataDir = newFolder()
  const { program, next, leave } = hold(dataDir)
  await next()
  const pid = pidOf(dataDir)
  process.kill(-(program.pid ?? 0), 'SIGINT')
  assert.deepEqual(await next(), { afterSignal: 1 })
  assert.equal(pidOf(dataDir), pid)
  await leave()
  assert.ok(isStopped(dataDir))
})

for (const [what, name] of [
  // Where the programs are copied into DATA_DIR, they do not run under such a name.
  ['spaces, commas and quotes', readable ? `a b, 'c' "d" $HOME` : `a b, 'c'`],
  ['letters of other scripts', 'Müller-данные-データ'],
  ['a path too long for a socket', 'x'.repeat(120)],
] as const) {
  test(`${what} in DATA_DIR are no obstacle`, async () => {
    const dataDir = newFolder(name)
    const { url, connection, close } = await open(dataDir)
    assert.equal(await ask(url, 'select 1'), '1')
    assert.ok(Buffer.byteLength(connection.host) < 100)
    await close()
    assert.ok(isStopped(dataDir))
    if (!connection.host.startsWith(dataDir)) rmSync(connection.host, { recursive: true })
  })
}

test('a database of another major version is refused with what to do', async () => {
  const dataDir = newFolder()
  mkdirSync(clusterOf(dataDir), { recursive: true })
  writeFileSync(join(dataDir, 'postgres.password'), 'secret\n')
  writeFileSync(join(clusterOf(dataDir), 'PG_VERSION'), '15\n')
  await assert.rejects(open(dataDir), (error) => {
    assert.ok(error instanceof UsageError)
    assert.match(error.message, /created by PostgreSQL 15, and this Tundish includes PostgreSQL 18: save it/)
    return true
  })
})

test('a password that is missing or wrong is a sentence', async () => {
  const dataDir = newFolder()
  await (await open(dataDir)).close()
  const file = join(dataDir, 'postgres.password')
  writeFileSync(file, 'another\n')
  await assert.rejects(
    open(dataDir),
    (error) => error instanceof UsageError && /is not that of the database/.test(error.message),
  )
  assert.ok(isStopped(dataDir), 'a server that was started for nothing is stopped again')
  rmSync(file)
  await assert.rejects(
    open(dataDir),
    (error) => error instanceof UsageError && /postgres.password is missing/.test(error.message),
  )
})

test('a link to a database that is gone is a sentence, not an empty database', async () => {
  const dataDir = newFolder()
  mkdirSync(dataDir, { recursive: true })
  symlinkSync('/nonexistent/tundish', join(dataDir, 'postgres'))
  await assert.rejects(open(dataDir), (error) => error instanceof UsageError && /which is missing/.test(error.message))
})

test('a file in the place of DATA_DIR is a sentence', async () => {
  const file = join(base, 'file')
  writeFileSync(file, '')
  await assert.rejects(open(file), (error) => error instanceof UsageError && /is not a folder/.test(error.message))
})

test('as root under a folder that only root may enter, the database lives elsewhere and says so', {
  skip: !ROOT,
}, async (t) => {
  const closed = mkdtempSync(join(base, 'closed-'))
  const dataDir = join(closed, 'data')
  const first = await open(dataDir)
  const elsewhere = realpathSync(join(dataDir, 'postgres'))
  t.after(() => rmSync(elsewhere, { recursive: true, force: true }))
  assert.match(elsewhere, /^\/var\/lib\/tundish\/data-/)
  assert.match(first.notice ?? '', new RegExp(`cannot enter .*: the database is in ${elsewhere}`))
  await ask(first.url, 'create table kept as select 42 as n')
  await first.close()

  const second = await open(dataDir)
  assert.equal(await ask(second.url, 'select n from kept'), '42')
  await second.close()
})

test('a normal user needs nobody else', { skip: !readable }, async () => {
  const dataDir = newFolder()
  mkdirSync(dataDir, { recursive: true })
  if (ROOT) chownSync(dataDir, NOBODY.uid, NOBODY.gid)
  const { next, leave } = hold(dataDir, ROOT ? NOBODY : undefined)
  const { url, notice } = await next()
  assert.equal(notice, undefined)
  assert.equal(await ask(url, 'select 1'), '1')
  assert.equal(statSync(clusterOf(dataDir)).uid, ROOT ? NOBODY.uid : process.getuid?.())
  if (ROOT) {
    // Root joins, and when it has to start the server, runs it as the owner.
    await leave()
    const { close } = await open(dataDir)
    assert.equal(statSync(`/proc/${pidOf(dataDir)}`).uid, NOBODY.uid)
    await close()
  } else await leave()
  assert.ok(isStopped(dataDir))
})

test('a folder below /proc is a sentence, and no endless loop', { skip: !existsSync('/proc/self') }, async () => {
  await assert.rejects(open('/proc/foo'), (error) => {
    return error instanceof UsageError && /^\/proc\/foo cannot be created/.test(error.message)
  })
})

test('a start that is given up leaves neither a draft nor a server', async () => {
  for (const file of ['postgres/data/PG_VERSION', 'postgres/data/postmaster.pid']) {
    const dataDir = newFolder()
    const stopping = new AbortController()
    const reason = new Error('enough')
    const opening = open(dataDir, { signal: stopping.signal })
    while (!existsSync(join(dataDir, file))) await sleep(1)
    stopping.abort(reason)
    await opening.then(
      // It may have been a moment too late.
      (embedded) => embedded.close(),
      (error) => assert.equal(error, reason),
    )
    assert.ok(isStopped(dataDir))
    assert.deepEqual(
      readdirSync(join(dataDir, 'postgres')).filter((name) => name.startsWith('draft')),
      [],
    )
  }
})

test('a folder that cannot be made is a sentence', async () => {
  const gone = newFolder('gone')
  mkdirSync(dirname(gone))
  symlinkSync(join(base, 'nowhere', 'at', 'all'), gone)
  await assert.rejects(open(join(gone, 'data')), (error) => {
    assert.ok(error instanceof UsageError)
    assert.match(error.message, /gone cannot be created, possibly because the disk is read-only: set DATA_DIR/)
    return true
  })
})

test('a folder that cannot be written is a sentence', { skip: !readable }, async () => {
  const dataDir = newFolder()
  mkdirSync(dataDir, { recursive: true })
  chmodSync(dataDir, 0o555)
  const { next, leave } = hold(dataDir, ROOT ? NOBODY : undefined)
  const { error, message } = await next()
  assert.equal(error, 'UsageError')
  assert.match(message, /cannot be used by this user \(EACCES\): give it the right/)
  await leave()
  accessSync(dataDir)
  assert.ok(!existsSync(join(dataDir, 'postgres')))
})
