// With PostgreSQL's own tools: an archive that pg_restore reads as well, restored here into a newer PostgreSQL.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { newOwner, run } from '../../../src/lib/embedded/account.ts'
import { openDb } from '../../../src/lib/pg/db.ts'
import { migrate } from '../../../src/lib/pg/migrate.ts'
import { toolVersion } from '../../../src/operations/backup/tools.ts'
import { openTlsProxy } from '../../lib/pg/tls-proxy.ts'
import { tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { openProxy } from '../../support/proxy.ts'
import { tundishAgain } from '../../support/resident.ts'
import { contents, fill, type Installation, install, kept } from './installations.ts'

const version = await toolVersion('pg_dump')
const programs = version === undefined ? undefined : findPrograms(version)
const skip = programs ? false : 'needs pg_dump 15 or newer with the server programs of its version'

/** Where the server programs that belong to the tools are. */
function findPrograms(major: number): string | undefined {
  const tool = execFileSync('/bin/sh', ['-c', 'command -v pg_dump'], { encoding: 'utf8' }).trim()
  const folders = [`/usr/lib/postgresql/${major}/bin`, dirname(realpathSync(tool))]
  return major >= 15 ? folders.find((folder) => existsSync(join(folder, 'initdb'))) : undefined
}

const PASSWORD = 'p@ss:word/%'

describe('with pg_dump on the PATH', { skip }, () => {
  let folder: string
  let stop: () => Promise<void>
  let source: Installation
  let target: Installation
  let file: string
  before(async () => {
    folder = temporaryFolder()
    stop = await startServer(folder)
    const url = `postgresql://tundish:${encodeURIComponent(PASSWORD)}@localhost/postgres?host=${folder}`
    await migrate(url)
    target = await install()
    const env = { DATABASE_URL: url, DATA_DIR: target.folder, MASTER_KEY: target.env.MASTER_KEY! }
    source = { ...target, env, db: openDb({ url, applicationName: 'test' }), run: (...args) => tundishAgain(args, env) }
    await fill(source)
    file = join(target.folder, 'archive.backup')
  })
  after(async () => {
    await source?.db.close()
    await stop?.()
    await target?.remove()
  })

  test('a backup is an archive that pg_restore reads, in UTF-8 whatever the encoding of the role', async () => {
    await source.db.query(`alter role tundish set client_encoding = 'LATIN1'`)
    await source.db.query('create schema elsewhere')
    await source.db.query(`create table elsewhere.theirs as select '日本' as name`)
    const { code, stdout, stderr } = await source.run('backup', file, '--json')
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal(JSON.parse(stdout).format, 'postgresql')
    const list = execFileSync('pg_restore', ['--list', file], { encoding: 'utf8' })
    assert.match(list, /TABLE DATA public profiles/)
  })

  test('it is restored into whatever PostgreSQL there is, row by row', async () => {
    await target.json('restore', file, '--without-erasures')
    assert.deepEqual(await kept(target.db), await kept(source.db))
    const [row] = await target.db.query(`select to_regclass('elsewhere.theirs') as theirs`)
    assert.equal(row!.theirs, null, 'what is not ours in the archive stays there')
    assert.equal((await target.json('project', 'create', 'second', '--org', 'shop')).id, 'second')
  })

  test('an archive that is cut off or changed is refused', async () => {
    const bytes = readFileSync(file)
    const before = await contents(target.db)
    const damaged = join(target.folder, 'damaged')
    const changed = Buffer.from(bytes)
    changed[Math.floor(bytes.length / 2)]! ^= 1
    for (const [content, sentence] of [
      [bytes.subarray(0, bytes.length / 2), /did not make, or is cut off/],
      [changed, /is damaged: Its SHA-256/],
    ] as const) {
      writeFileSync(damaged, content)
      const { code, stderr } = await target.run('restore', damaged, '--without-erasures', '--replace')
      assert.equal(code, 1)
      assert.match(stderr, sentence)
    }
    assert.deepEqual(await contents(target.db), before)
  })

  test('the format of Tundish is used on request, and for pipes', async () => {
    const own = join(target.folder, 'own.backup')
    const { code, stdout } = await source.run('backup', own, '--format', 'tundish', '--json')
    assert.deepEqual([code, JSON.parse(stdout).format], [0, 'tundish'])
    const both = await source.run('backup', '-', '--format', 'postgresql')
    assert.equal(both.code, 2)
  })

  test('a certificate that Node trusts needs no sslrootcert, whatever name verify-full has, and nothing warns', async () => {
    const proxy = await openTlsProxy(source.env.DATABASE_URL!)
    try {
      const authority = new URL(proxy.url()).searchParams.get('sslrootcert')!
      for (const mode of ['verify-full', 'require', 'prefer']) {
        const address = proxy.untrustedUrl.replace('verify-full', mode)
        const env = { ...source.env, DATABASE_URL: address, NODE_EXTRA_CA_CERTS: authority }
        const path = join(target.folder, `${mode}.backup`)
        const { code, stdout, stderr } = await tundish(['backup', path, '--json'], env)
        assert.deepEqual([code, stderr], [0, ''], mode)
        assert.equal(JSON.parse(stdout).format, 'postgresql')
      }
    } finally {
      await proxy.close()
    }
  })

  test('of several hosts, the one that is the primary is dumped, not the first', async () => {
    const proxy = await openProxy(source.env.DATABASE_URL!)
    try {
      const address = `${proxy.url.replace('@', '@127.0.0.1:1,')}?target_session_attrs=read-write`
      const env = { ...source.env, DATABASE_URL: address }
      const path = join(target.folder, 'hosts.backup')
      const { code, stdout, stderr } = await tundishAgain(['backup', path, '--json'], env)
      assert.deepEqual([code, stderr], [0, ''])
      assert.equal(JSON.parse(stdout).format, 'postgresql')
    } finally {
      await proxy.cut()
    }
  })

  test('an older pg_dump than the server is left alone', async () => {
    const path = join(target.folder, 'newer.backup')
    const [row] = await target.db.query(`select current_setting('server_version_num')::int / 10000 as major`)
    const fits = version! >= Number(row!.major)
    assert.equal((await target.json('backup', path)).format, fits ? 'postgresql' : 'tundish')
  })
})

/** A server of the tools' own version, in its own folder, that asks for a password. */
async function startServer(folder: string): Promise<() => Promise<void>> {
  const account = await newOwner(folder)
  chmodSync(folder, 0o711)
  if (account) chownSync(folder, account.uid, account.gid)
  const cluster = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, PASSWORD)
  const does = async (program: string, ...args: string[]) => {
    const { code, output } = await run(join(programs!, program), args, { account })
    assert.equal(code, 0, output)
  }
  await does(
    'initdb',
    '-D',
    cluster,
    '-U',
    'tundish',
    '-A',
    'scram-sha-256',
    '--pwfile',
    passwordFile,
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
  )
  const settings = `-c listen_addresses= -c unix_socket_directories=${folder} -c fsync=off`
  await does('pg_ctl', 'start', '-w', '-D', cluster, '-o', settings, '-l', join(folder, 'log'))
  return () => does('pg_ctl', 'stop', '-w', '-m', 'immediate', '-D', cluster)
}
