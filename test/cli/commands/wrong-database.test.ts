// Commands with a database that cannot be used: a wrong address, another program's database, another master key.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import pg from 'pg'
import { BEFORE_READING } from '../../../src/lib/pg/before-reading.ts'
import { openDb } from '../../../src/lib/pg/db.ts'
import { noSchema, readOnly } from '../../../src/lib/pg/reachable.ts'
import { BEFORE_1_0 } from '../../operations/backup/installations.ts'
import { tundish } from '../../support/cli.ts'
import { setUpEnv } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type FreshDatabase, freshDatabase, runStatement } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { titled } from '../../support/titled.ts'

const KEY = randomBytes(32).toString('base64')

for (const [address, sentence] of Object.entries({
  'postgresql://user:hunter2#x@host/db': /^DATABASE_URL is not a URL: .+%23.+\n$/,
  'postgresql://user:hunter2@host:port/db': /^DATABASE_URL is not a URL: .+\n$/,
  'postgresql://user:hunter2@host/db?sslmode=full':
    /^DATABASE_URL must have an sslmode that is one of .+verify-full.+\n$/,
  'postgresql://user:hunter2@host/db?sslrootcert=/none.pem':
    /^DATABASE_URL must have a readable file as its sslrootcert\.\n$/,
})) {
  test(`2 and one sentence for the address ${address}`, async () => {
    const { code, stdout, stderr } = await tundishAgain(['org', 'list'], { DATABASE_URL: address, MASTER_KEY: KEY })
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, sentence)
    assert.doesNotMatch(stderr, /hunter2/)
  })
}

test('2 and one sentence when the database does not respond', async () => {
  const env = { DATABASE_URL: 'postgresql://user:hunter2@127.0.0.1:1/tundish', MASTER_KEY: KEY }
  const { code, stdout, stderr } = await tundishAgain(['org', 'list'], env)
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^The database of DATABASE_URL cannot be used \(.*ECONNREFUSED.*\): check its address.*\n$/)
  assert.doesNotMatch(stderr, /hunter2/)
})

test('2 and one sentence for the socket of a folder that is none', async () => {
  const env = { DATABASE_URL: `postgresql:///tundish?host=${import.meta.filename}`, MASTER_KEY: KEY }
  const { code, stdout, stderr } = await tundishAgain(['org', 'list'], env)
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^The database of DATABASE_URL cannot be used \(connect ENOTDIR .*\): check its address.*\n$/)
})

const SERVER = process.env['TUNDISH_TEST_DATABASE'] ?? ''
const noPassword = URL.parse(SERVER)?.password === '' ? 'the server of the tests requires no password' : undefined

test(titled('2 and one sentence for an address that lacks its password', noPassword), {
  skip: noPassword,
}, async () => {
  const address = Object.assign(new URL(SERVER), { password: '' }).href
  const { code, stdout, stderr } = await tundishAgain(['org', 'list'], { DATABASE_URL: address, MASTER_KEY: KEY })
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(
    stderr,
    /^The database of DATABASE_URL cannot be used \(it requires a password, and the address has none\):.*\n$/,
  )
})

test('2 with a master key that is not the one of the database', async () => {
  const database = await freshDatabase()
  try {
    assert.equal((await tundishAgain(['org', 'list'], { DATABASE_URL: database.url, MASTER_KEY: KEY })).code, 0)
    const other = { DATABASE_URL: database.url, MASTER_KEY: randomBytes(32).toString('base64') }
    const { code, stderr } = await tundishAgain(['org', 'list'], other)
    assert.equal(code, 2)
    assert.match(stderr, /^MASTER_KEY .+ is not the one/)
  } finally {
    await database.drop()
  }
})

test('1 when PostgreSQL rejects a row, without the values of the row', async () => {
  const database = await freshDatabase()
  const client = new pg.Client(database.url)
  try {
    await client.connect()
    await client.query(`alter table organizations add constraint never_so check (name <> 'hunter2')`)
    await client.end()
    const env = { DATABASE_URL: database.url, MASTER_KEY: KEY }
    const { code, stdout, stderr } = await tundishAgain(['org', 'create', 'acme', '--name', 'hunter2'], env)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^The database refused the data \(23514; table organizations, rule never_so\): .+\n$/)
    assert.doesNotMatch(stderr, /hunter2/)
  } finally {
    await database.drop()
  }
})

test('migrate says that there is nothing to do', async () => {
  const database = await freshDatabase()
  try {
    const env = { DATABASE_URL: database.url, MASTER_KEY: KEY }
    assert.deepEqual(await tundishAgain(['migrate'], env), {
      code: 0,
      stdout: 'The database is up to date.\n',
      stderr: '',
    })
    assert.deepEqual(JSON.parse((await tundishAgain(['migrate', '--json'], env)).stdout), { applied: [] })
  } finally {
    await database.drop()
  }
})

for (const [made, sentence] of Object.entries({
  'table profiles (id int)': 'relation "profiles" already exists',
  'view funnels as select 1 as n': 'relation "funnels" already exists',
  // As frameworks for the web keep it.
  'table schema_migrations (version text)': 'column "name" does not exist',
})) {
  test(`2 and one sentence for a database with a foreign ${made}`, async () => {
    const database = await emptyDatabase(made)
    try {
      const env = { DATABASE_URL: database.url, MASTER_KEY: KEY }
      assert.deepEqual(await tundishAgain(['migrate'], env), {
        code: 2,
        stdout: '',
        stderr: `The database contains objects of another program (${sentence}): point DATABASE_URL at an empty database.\n`,
      })
    } finally {
      await database.drop()
    }
  })
}

test('2 and one sentence for a new database that is not encoded in UTF8, and nothing is made', async () => {
  const database = await emptyDatabase(undefined, `encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' locale_provider libc`)
  const client = new pg.Client(database.url)
  try {
    const stderr = 'The database is encoded in LATIN1. Create a database with encoding UTF8.\n'
    assert.deepEqual(await tundishAgain(['migrate'], { DATABASE_URL: database.url, MASTER_KEY: KEY }), {
      code: 2,
      stdout: '',
      stderr,
    })
    await client.connect()
    const { rows } = await client.query(`select relname from pg_class where relnamespace = 'public'::regnamespace`)
    assert.deepEqual(rows, [])
  } finally {
    await client.end()
    await database.drop()
  }
})

for (const [what, made] of Object.entries({
  'a search_path without a schema': `alter database DATABASE set search_path = 'none'`,
  'a schema that it may not use': 'revoke all on schema public from public, pg_database_owner',
})) {
  test(`2 and one sentence for a role with ${what}, and the same from the doctor`, async () => {
    const role = `odd-role-${randomBytes(4).toString('hex')}`
    const database = await emptyDatabase()
    const { pathname } = new URL(database.url)
    try {
      await runStatement(database.url, `create role "${role}" login password 'odd'`)
      await runStatement(database.url, made.replace('DATABASE', pathname.slice(1)))
      const url = Object.assign(new URL(database.url), { username: role, password: 'odd' }).href
      const env = { DATABASE_URL: url, MASTER_KEY: KEY }
      const [message, fix] = noSchema(`"${role}"`)
      assert.deepEqual(await tundishAgain(['migrate'], env), { code: 2, stdout: '', stderr: `${message} ${fix}\n` })
      const { findings } = JSON.parse((await tundishAgain(['doctor', '--json'], env)).stdout)
      const found = findings.filter(({ check }: { check: string }) => check === 'database')
      assert.deepEqual(found, [{ check: 'database', level: 'failed', message, fix }])
      await obey(database.url, fix)
      assert.equal((await tundishAgain(['migrate'], env)).code, 0)
    } finally {
      await database.drop()
      await runStatement(SERVER, `drop role "${role}"`)
    }
  })
}

test('1 and one sentence for a role without a right that a command needs, which the doctor names', async () => {
  const role = `odd-role-${randomBytes(4).toString('hex')}`
  const database = await emptyDatabase()
  const name = new URL(database.url).pathname.slice(1)
  try {
    await runStatement(database.url, `create role "${role}" login password 'odd'`)
    await runStatement(database.url, `grant create on schema public to "${role}"`)
    await runStatement(database.url, `revoke temporary on database ${name} from public`)
    const env = {
      DATABASE_URL: Object.assign(new URL(database.url), { username: role, password: 'odd' }).href,
      DATA_DIR: temporaryFolder(),
      MASTER_KEY: KEY,
    }
    assert.equal((await tundishAgain(['org', 'create', 'acme'], env)).code, 0)
    assert.equal((await tundishAgain(['project', 'create', 'shop', '--org', 'acme'], env)).code, 0)
    const importing = () => tundish(['import', '--project', 'shop', '-'], env, '')
    const { code, stdout, stderr } = await importing()
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^The role of the database lacks a right \(permission denied to create temporary tables .+\n$/)
    const { findings } = JSON.parse((await tundishAgain(['doctor', '--json'], env)).stdout)
    const failed = findings.filter(({ level }: { level: string }) => level === 'failed')
    assert.deepEqual(
      failed.map(({ message }: { message: string }) => message),
      [`The role "${role}" may not create temporary tables, which imports and restores need.`],
    )
    await obey(database.url, failed[0].fix)
    assert.equal((await importing()).code, 0)
  } finally {
    await database.drop()
    await runStatement(SERVER, `drop role "${role}"`)
  }
})

/** Runs the statements in an advice of the doctor. */
async function obey(url: string, advice: string): Promise<void> {
  for (const [statement] of advice.matchAll(/(?:grant|alter role) [^;]+;/g)) await runStatement(url, statement)
}

test('the settings of a database change nothing of what is read and stored', async () => {
  const database = await emptyDatabase()
  const name = new URL(database.url).pathname.slice(1)
  const settings = {
    bytea_output: 'escape',
    standard_conforming_strings: 'off',
    lock_timeout: '1ms',
  }
  const ordinary = await freshDatabase()
  try {
    for (const [setting, value] of Object.entries(settings))
      await runStatement(database.url, `alter database ${name} set ${setting} = '${value}'`)
    const env = { DATABASE_URL: database.url, DATA_DIR: temporaryFolder(), MASTER_KEY: KEY }
    for (const args of [
      ['org', 'create', 'acme'],
      ['project', 'create', 'shop', '--org', 'acme'],
    ])
      assert.equal((await tundishAgain(args, env)).code, 0)
    const { ok, findings } = JSON.parse((await tundishAgain(['doctor', '--json'], env)).stdout)
    assert.ok(ok, JSON.stringify(findings))
    assert.deepEqual(await rules(database.url), await rules(ordinary.url))
    const db = openDb({ url: database.url, applicationName: 'test', connections: 1, readConnections: 1 })
    try {
      const [row] = await db.query(`select current_setting('lock_timeout') as value`)
      assert.equal(row!['value'], '0')
    } finally {
      await db.close()
    }
  } finally {
    await database.drop()
    await ordinary.drop()
  }
})

/** What the migrations have made of the expressions in their text. */
async function rules(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, options: '-c standard_conforming_strings=on' })
  await client.connect()
  const { rows } = await client.query(`
    select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) as rule from pg_constraint
    where connamespace = 'public'::regnamespace
    union all select proname || ' ' || prosrc from pg_proc where pronamespace = 'public'::regnamespace
    union all select indexdef from pg_indexes where schemaname = 'public'
    union all select viewname || ' ' || definition from pg_views where schemaname = 'public' order by 1`)
  await client.end()
  return rows.map(({ rule }) => rule)
}

test('the doctor and each command that migrates say that a database is read-only, and what to do', async () => {
  const database = await freshDatabase()
  const name = new URL(database.url).pathname.slice(1)
  try {
    const env = { DATABASE_URL: database.url, MASTER_KEY: KEY }
    assert.equal((await tundishAgain(['org', 'list'], env)).code, 0)
    await runStatement(database.url, `alter database ${name} set default_transaction_read_only = on`)
    const { code, stdout } = await tundishAgain(['doctor'], env)
    assert.equal(code, 1)
    assert.match(stdout, /FAILED +database +Nothing can be written: default_transaction_read_only is on\.\n/)
    for (const command of ['migrate', 'serve']) {
      const { code, stderr } = await tundish([command], env)
      assert.deepEqual([code, stderr], [2, `${readOnly(new URL(database.url).username).join(' ')}\n`])
    }
  } finally {
    await database.drop()
  }
})

describe('a database that was made before 1.0', () => {
  const env = setUpEnv({ PORT: '0', ADMIN_PORT: '0' })
  before(async () => {
    await runStatement(env['DATABASE_URL']!, `update schema_migrations set name = 'foundation' where version = 1`)
  })

  for (const command of [
    ['serve'],
    ['migrate'],
    ['org', 'list'],
    ['backup', join(tmpdir(), 'never-written.backup')],
    ['restore', BEFORE_1_0.file, '--without-erasures', '--accounts', 'none'],
  ]) {
    test(`2 and one sentence for ${command[0]}`, async () => {
      const run = command[0] === 'serve' ? tundish : tundishAgain
      const { code, stdout, stderr } = await run(command, { ...env, MASTER_KEY: BEFORE_1_0.masterKey })
      assert.deepEqual([code, stdout, stderr], [2, '', `${BEFORE_READING.join(' ')}\n`])
    })
  }

  test('2 and the same for the doctor', async () => {
    const { stdout } = await tundishAgain(['doctor', '--json'], env)
    const { findings } = JSON.parse(stdout)
    const { message, fix } = findings.find(({ check }: { check: string }) => check === 'migrations')
    assert.deepEqual([message, fix], BEFORE_READING)
  })
})

/** A database without Tundish's tables, with something that another program made, or made in another way. */
async function emptyDatabase(made?: string, options = ''): Promise<FreshDatabase> {
  const server = process.env['TUNDISH_TEST_DATABASE']!
  const name = `tundish_foreign_${randomBytes(6).toString('hex')}`
  await runStatement(server, `create database ${name} template template0 ${options}`)
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href
  if (made) await runStatement(url, `create ${made}`)
  return { url, drop: () => runStatement(server, `drop database ${name} with (force)`) }
}
