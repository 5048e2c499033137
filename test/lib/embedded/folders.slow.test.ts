// The folder of the embedded PostgreSQL: odd names, other accounts, and what is refused with one sentence.
import assert from 'node:assert/strict'
import {
  accessSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileSentence } from '../../../src/lib/embedded/sentences.ts'
import { UsageError } from '../../../src/lib/errors.ts'
import { startProcess, tundish } from '../../support/cli.ts'
import { titled, without } from '../../support/titled.ts'
import {
  base,
  clusterOf,
  firstValue,
  hold,
  isStopped,
  NOBODY,
  newFolder,
  open,
  pidOf,
  ROOT,
  readable,
} from './embedded.ts'

const notRoot = ROOT ? undefined : 'this user is not root'
const notReadable = readable ? undefined : 'no other user may enter this checkout'
const noProc = without('/proc/self')

for (const [what, name] of [
  // Where the programs are copied into DATA_DIR, they do not run under such a name.
  ['spaces, commas and quotes', readable ? `a b, 'c' "d" $HOME` : `a b, 'c'`],
  ['letters of other scripts', 'Müller-данные-データ'],
  ['a path too long for a socket', 'x'.repeat(120)],
] as const) {
  test(`${what} in DATA_DIR are no obstacle`, async () => {
    const dataDir = newFolder(name)
    const { url, connection, close } = await open(dataDir)
    assert.equal(await firstValue(url, 'select 1'), '1')
    const { code, stderr } = await tundish(['org', 'list'], { DATA_DIR: dataDir })
    assert.equal(code, 0, stderr)
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
    assert.match(error.message, /created by PostgreSQL 15, and this Tundish includes PostgreSQL 18: move it/)
    return true
  })
})

test('one sentence for a missing or wrong password', async () => {
  const dataDir = newFolder()
  await (await open(dataDir)).close()
  const file = join(dataDir, 'postgres.password')
  writeFileSync(file, 'another\n')
  await assert.rejects(
    open(dataDir),
    (error) => error instanceof UsageError && /is not that of the database/.test(error.message),
  )
  assert.ok(isStopped(dataDir), 'a server that was started for nothing is stopped again')
  for (const [make, sentence] of [
    [() => writeFileSync(file, ''), /postgres.password holds no password/],
    [() => rmSync(file), /postgres.password is missing/],
    [() => mkdirSync(file), /postgres.password holds no password/],
  ] as const) {
    make()
    await assert.rejects(open(dataDir), (error) => error instanceof UsageError && sentence.test(error.message))
  }
})

test('one sentence for a link to a database that does not exist, and no empty database', async () => {
  const dataDir = newFolder()
  mkdirSync(dataDir, { recursive: true })
  symlinkSync('/nonexistent/tundish', join(dataDir, 'postgres'))
  await assert.rejects(open(dataDir), (error) => error instanceof UsageError && /which is missing/.test(error.message))
})

test('one sentence for a file in the place of DATA_DIR', async () => {
  const file = join(base, 'file')
  writeFileSync(file, '')
  await assert.rejects(open(file), (error) => error instanceof UsageError && /is not a folder/.test(error.message))
})

test(titled(
  'as root, the database is outside a folder that only root may enter, and a notice names its place',
  notRoot,
), {
  skip: notRoot,
}, async (t) => {
  const closed = mkdtempSync(join(base, 'closed-'))
  const dataDir = join(closed, 'data')
  const first = await open(dataDir)
  const elsewhere = realpathSync(join(dataDir, 'postgres'))
  t.after(() => rmSync(elsewhere, { recursive: true, force: true }))
  assert.match(elsewhere, /^\/var\/lib\/tundish\/data-/)
  assert.match(first.notice ?? '', new RegExp(`cannot enter .*: the database is in ${elsewhere}`))
  await firstValue(first.url, 'create table kept as select 42 as n')
  await first.close()

  const second = await open(dataDir)
  assert.equal(await firstValue(second.url, 'select n from kept'), '42')
  await second.close()

  const server = await startProcess({ DATA_DIR: dataDir, PORT: '0' })
  await server.stop()
  assert.ok(server.log.some(({ msg }) => msg === first.notice))
})

test(titled('a normal user needs no other account', notReadable), { skip: notReadable }, async () => {
  const dataDir = newFolder()
  mkdirSync(dataDir, { recursive: true })
  if (ROOT) chownSync(dataDir, NOBODY.uid, NOBODY.gid)
  const { next, leave } = hold(dataDir, ROOT ? NOBODY : undefined)
  const { url, notice } = await next()
  assert.equal(notice, undefined)
  assert.equal(await firstValue(url, 'select 1'), '1')
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

test(titled('one sentence for a folder below /proc, and no endless loop', noProc), { skip: noProc }, async () => {
  await assert.rejects(open('/proc/foo'), (error) => {
    return error instanceof UsageError && /^\/proc\/foo cannot be created/.test(error.message)
  })
})

test('one sentence for a folder that cannot be created', async () => {
  const gone = newFolder('gone')
  mkdirSync(dirname(gone))
  symlinkSync(join(base, 'nowhere', 'at', 'all'), gone)
  await assert.rejects(open(join(gone, 'data')), (error) => {
    assert.ok(error instanceof UsageError)
    assert.match(error.message, /gone cannot be created, possibly because the disk is read-only: set DATA_DIR/)
    return true
  })
})

test('a read-only disk is told from a folder without the right', () => {
  const path = join('/mnt', 'data', 'postgres')
  const error = Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS', path })
  assert.match(
    (fileSentence(error, '/mnt/data') as UsageError).message,
    /^\/mnt\/data\/postgres is on a read-only disk \(EROFS\): set DATA_DIR/,
  )
})

test(titled('one sentence for a folder that cannot be written', notReadable), { skip: notReadable }, async () => {
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
