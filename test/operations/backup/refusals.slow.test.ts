// What a restore refuses, and that nothing was changed then: damaged files, other keys, other versions, data in the way.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { tundish } from '../../support/cli.ts'
import { addRow } from '../../support/data.ts'
import { tundishAgain } from '../../support/resident.ts'
import { startTestServer } from '../../support/server.ts'
import { BEFORE_1_0, contents, install, kept, openInstallations } from './installations.ts'

const { source, target, file } = await openInstallations('whole.backup')
await source.json('backup', file, '--format', 'tundish')

const restore = (path: string, ...more: string[]) =>
  tundishAgain(['restore', path, '--without-erasures', ...more], target.env)

/** Whether it was refused with such a sentence, in one line, and the target is as it was. */
async function refused(sentence: RegExp, path: string, ...more: string[]): Promise<void> {
  const before = await contents(target.db)
  const { code, stdout, stderr } = await restore(path, ...more)
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, sentence)
  assert.equal(stderr.trim().split('\n').length, 1)
  assert.deepEqual(await contents(target.db), before)
}

describe('a file', () => {
  const write = (name: string, bytes: Buffer | string) => {
    const path = join(source.folder, name)
    writeFileSync(path, bytes)
    return path
  }

  for (const share of [0.02, 0.5, 0.99]) {
    test(`cut off after ${share * 100} % of it is damaged`, async () => {
      const bytes = readFileSync(file)
      await refused(/is damaged: It .+ Nothing was changed/, write('cut', bytes.subarray(0, bytes.length * share)))
    })
  }

  test('with one bit turned over is damaged, wherever that is', async () => {
    const bytes = readFileSync(file)
    for (const share of [0.05, 0.3, 0.6, 0.9]) {
      const turned = Buffer.from(bytes)
      turned[Math.floor(turned.length * share)]! ^= 4
      await refused(/is damaged: .+ Nothing was changed/, write('turned', turned))
    }
  })

  test('that comes through a pipe is checked as well', async () => {
    const bytes = readFileSync(file)
    const before = await contents(target.db)
    for (const [part, sentence] of [
      [bytes.subarray(0, -100), /The backup is damaged: It cannot be decompressed/],
      [Buffer.from('hello'), /That is not a backup|is damaged/],
      [Buffer.from('PGDMP archive'), /^Standard input holds an archive of pg_dump, which is restored from a file:/],
    ] as const) {
      const { code, stderr } = await tundish(['restore', '-', '--without-erasures'], target.env, part)
      assert.equal(code, 1)
      assert.match(stderr, sentence)
    }
    assert.deepEqual(await contents(target.db), before)
  })

  test('whose content was changed is damaged, also when it decompresses well', async () => {
    const script = zstdDecompressSync(readFileSync(file)).toString()
    const changed = script.replace('Sleep quiz', 'Sleep quip')
    assert.notEqual(changed, script)
    await refused(/SHA-256/, write('changed', zstdCompressSync(changed)))
    const unsealed = script.slice(0, script.indexOf('-- tundish seal'))
    await refused(/It is cut off/, write('unsealed', zstdCompressSync(unsealed)))
  })

  test('that is something else is refused', async () => {
    await refused(/is not a backup of Tundish/, write('text', 'hello, this is a letter'))
    await refused(/is not a backup of Tundish/, write('empty', ''))
    await refused(/cannot be read: it does not exist \(ENOENT\)/, join(source.folder, 'nowhere'))
  })

  test('that exists is not overwritten without --force', async () => {
    const path = write('mine', 'mine')
    const { code, stderr } = await source.run('backup', path)
    assert.equal(code, 1)
    assert.match(stderr, /exists already: name another file, or add --force/)
    assert.equal(readFileSync(path, 'utf8'), 'mine')
    assert.equal((await source.run('backup', path, '--force')).code, 0)
    assert.notEqual(readFileSync(path, 'utf8'), 'mine')
    assert.deepEqual(
      readdirSync(source.folder).filter((name) => name.includes('partial')),
      [],
    )
  })

  test('in a folder that does not exist is refused with a sentence', async () => {
    const { code, stderr } = await source.run('backup', join(source.folder, 'no', 'folder', 'file'))
    assert.deepEqual([code, stderr.includes('its folder does not exist')], [1, true])
  })
})

describe('the master key', () => {
  test('must be that of the backup', async () => {
    const before = await contents(target.db)
    const env = { ...target.env, MASTER_KEY: randomBytes(32).toString('base64') }
    const { code, stderr } = await tundish(['restore', file, '--without-erasures'], env)
    assert.equal(code, 1)
    assert.match(stderr, /The master key is not that of the backup: set MASTER_KEY to the one of that installation/)
    assert.deepEqual(await contents(target.db), before)
  })

  test('must be there before an embedded database is made', async () => {
    const folder = join(source.folder, 'new')
    const { code, stderr } = await tundish(['restore', file, '--without-erasures'], { DATA_DIR: folder })
    assert.equal(code, 1)
    assert.match(stderr, /is missing: set MASTER_KEY to .+, or copy its master.key to .+new\/master.key/)
    assert.ok(!existsSync(folder))
  })
})

describe('a backup of another version', () => {
  test('that this program does not know is refused by name', async () => {
    await source.db.query(`insert into schema_migrations (version, name, breaking) values (9999, 'future', false)`)
    const path = join(source.folder, 'newer.backup')
    await source.json('backup', path, '--format', 'tundish')
    await source.db.query('delete from schema_migrations where version = 9999')
    await refused(
      /whose migrations 9999 \(future\) are unknown here: restore it with that version, or with a newer one/,
      path,
    )
  })

  test('that is older gets the migrations that followed, on its rows', async () => {
    const [old, young] = [await install(), await install()]
    try {
      await old.db.query('drop schema public cascade')
      await old.db.query('create schema public')
      await old.db.query(`create table schema_migrations (version int primary key, name text, breaking boolean)`)
      const migrations = new URL('../../../migrations/', import.meta.url)
      for (const name of readdirSync(migrations).sort().slice(0, 9)) {
        await old.db.query(readFileSync(new URL(name, migrations), 'utf8'))
        await old.db.query('insert into schema_migrations values ($1, $2, false)', [
          name.slice(0, 4),
          name.slice(5, -4),
        ])
      }
      await old.db.query(`insert into organizations (id, name) values ('shop', 'Shop')`)
      await old.db.query(`insert into projects (id, organization_id, name) values ('app', 'shop', 'App')`)
      await old.db.query(`insert into project_clocks (project_id) values ('app')`)
      await old.db.query(
        `insert into events values ('app', gen_random_uuid(), 'transaction.created', 't', 1, now(), null, '{}')`,
      )
      const path = join(old.folder, 'old.backup')
      await old.json('backup', path)
      assert.equal((await old.db.query('select from schema_migrations')).length, 9, 'a backup migrates nothing')
      await young.json('restore', path, '--without-erasures')
      const [event] = await young.db.query('select type, pending from events')
      assert.deepEqual({ ...event }, { type: 'transaction.created', pending: 't' })
      assert.equal((await young.run('doctor')).code, 0)
      const objects = `select relkind::text || ' ' || relname as name from pg_class where relnamespace = 'public'::regnamespace
        union all select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace order by 1`
      const fresh = await install()
      assert.deepEqual(await young.db.query(objects), await fresh.db.query(objects))
      await fresh.remove()
    } finally {
      await old.remove()
      await young.remove()
    }
  })
})

describe('a backup from before 1.0', () => {
  test('is restored into the tables of today', async () => {
    const young = await install()
    try {
      const { code, stderr } = await tundish(['restore', BEFORE_1_0.file, '--without-erasures'], {
        ...young.env,
        MASTER_KEY: BEFORE_1_0.masterKey,
      })
      assert.equal(code, 0, stderr)
      const { order_log, profiles, ...others } = await kept(young.db)
      assert.equal(profiles!.length, 3)
      assert.match(order_log![0]!, /^\(shop,01900000-0000-7000-8000-000000000001,.+,charge,,succeeded,12\)$/)
      assert.ok(Object.values(others).flat().length > 20)
      assert.equal((await tundish(['doctor'], { ...young.env, MASTER_KEY: BEFORE_1_0.masterKey })).code, 0)
    } finally {
      await young.remove()
    }
  })

  test('and before the last migration of that time is refused with the way over', async () => {
    const script = zstdDecompressSync(readFileSync(BEFORE_1_0.file)).toString().replace('charge_caps', 'other')
    const [rows, seal] = script.split(/^-- tundish seal /m) as [string, string]
    const sha256 = createHash('sha256').update(rows).digest('hex')
    const path = join(source.folder, 'early.backup')
    writeFileSync(path, zstdCompressSync(`${rows}-- tundish seal ${JSON.stringify({ ...JSON.parse(seal), sha256 })}\n`))
    const { code, stderr } = await tundish(['restore', path, '--without-erasures'], {
      ...target.env,
      MASTER_KEY: BEFORE_1_0.masterKey,
    })
    assert.equal(code, 1)
    assert.match(stderr, /before its migration 81 \(charge_caps\): start the last program before 1\.0 on that database/)
  })
})

describe('data in the way', () => {
  before(() => target.json('org', 'create', 'other'))

  test('is kept, unless it may be replaced', async () => {
    await refused(/holds data already \(.*organizations.*\): restore into an empty one, or add --replace/, file)
  })

  test('is one of all the reasons that are known before the file is read, each in a line', async () => {
    const account = { organization_id: 'other', psp: 'stripe', psp_merchant_id: 'acct_1', is_sandbox: true }
    await addRow(target.db, 'merchant_accounts', account)
    const before = await contents(target.db)
    const env = { ...target.env, MASTER_KEY: randomBytes(32).toString('base64') }
    const { code, stdout, stderr } = await tundish(['restore', file, '--erasures', '/nowhere/a', '/nowhere/b'], env)
    assert.deepEqual([code, stdout], [1, ''], stderr)
    const sentences = [
      /ledger at \/nowhere\/a/,
      /ledger at \/nowhere\/b/,
      /master key is not that/,
      /holds data already/,
      /--accounts none/,
    ]
    const lines = stderr.trim().split('\n')
    assert.equal(lines.length, sentences.length, stderr)
    for (const [n, sentence] of sentences.entries()) assert.match(lines[n]!, sentence)
    assert.deepEqual(await contents(target.db), before)
    const unread = await tundish(['restore', join(source.folder, 'nowhere')], { ...env, ERASURE_LEDGER: '/nowhere/c' })
    assert.match(
      unread.stderr,
      /^There is no ledger of erasures at .+\n.+ cannot be read: .+\nThis database holds data/,
    )
  })

  test('is kept when the restore that may replace it fails in its last line', async () => {
    for (const id of ['one', 'two', 'three']) await target.json('project', 'create', id, '--org', 'other')
    const before = await contents(target.db)
    const script = zstdDecompressSync(readFileSync(file)).toString()
    const unsealed = zstdCompressSync(script.slice(0, script.indexOf('-- tundish seal')))
    const { code, stderr } = await tundish(['restore', '-', '--without-erasures', '--replace'], target.env, unsealed)
    assert.deepEqual([code, stderr], [1, 'The backup is damaged: It is cut off. Nothing was changed.\n'])
    assert.deepEqual(await contents(target.db), before)
    // A sequence is what no transaction turns back by itself.
    await target.json('project', 'create', 'four', '--org', 'other')
  })

  test('is kept while a server works with it', async () => {
    const server = await startTestServer({ MASTER_KEY: source.env.MASTER_KEY! })
    try {
      await server.project()
      const { code, stderr } = await tundish(['restore', file, '--without-erasures', '--replace'], server.env)
      assert.equal(code, 1)
      assert.match(stderr, /Tundish is running on this database: stop every process of it/)
    } finally {
      await server.stop()
    }
  })

  test('is replaced when --replace is given', async () => {
    const { code, stderr } = await restore(file, '--replace')
    assert.equal(code, 0, stderr)
    assert.deepEqual(await kept(target.db), await kept(source.db))
    assert.equal((await target.run('doctor')).code, 0)
    // What the audit log knew is not lost with it.
    const aside = readdirSync(target.folder).filter((name) => name.startsWith('audit-heads.ndjson.before-'))
    assert.equal(aside.length, 1)
  })
})

test('a restore into the empty database of a running server is served by it', async () => {
  const server = await startTestServer({ MASTER_KEY: source.env.MASTER_KEY! })
  try {
    const { secret_key: key } = await source.json('keys', 'regenerate', '--yes', '--project', 'app')
    const path = join(source.folder, 'served.backup')
    await source.json('backup', path)
    const { code, stderr } = await tundish(['restore', path, '--without-erasures'], server.env)
    assert.equal(code, 0, stderr)
    const response = await server.api('/profiles/profile', { key: key as string })
    assert.deepEqual([response.status, response.body.email], [200, 'Ada@example.com'])
  } finally {
    await server.stop()
  }
})
