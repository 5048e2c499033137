// The file of the master key: made once, and never again when it is lost, for what was sealed under it opens to no other.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config.ts'
import { openLog } from '../../../src/lib/log.ts'
import { makeMasterKeyIn } from '../../../src/lib/secrets.ts'
import type { Finding } from '../../../src/operator/doctor/doctor.ts'
import { tundish } from '../../support/cli.ts'
import { untilLocked } from '../../support/database.ts'

describe('master.key', () => {
  let env: { DATA_DIR: string }
  let file: string
  before(async () => {
    env = { DATA_DIR: await mkdtemp(join(tmpdir(), 'tundish-master-key-')) }
    // Else root's database would be elsewhere, and left there.
    await chmod(env.DATA_DIR, 0o711)
    file = join(env.DATA_DIR, 'master.key')
    const { code, stderr } = await tundish(['org', 'create', 'acme'], env)
    assert.equal(code, 0, stderr)
  })
  after(() => rm(env.DATA_DIR, { recursive: true, force: true }))

  /** What the doctor fails, and whether it looked at the audit log. */
  async function examine() {
    const { stdout } = await tundish(['doctor', '--json'], env)
    const { findings } = JSON.parse(stdout) as { findings: Finding[] }
    const failed = findings.filter(({ level }) => level === 'failed')
    return {
      failed: failed.map(({ check, message }) => `${check}: ${message}`),
      audit: findings.find(({ check }) => check === 'audit')!.message,
    }
  }

  test('2 and a sentence for a folder in its place, and for an empty file', async () => {
    await rename(file, `${file}.kept`)
    for (const [make, sentence] of [
      [() => mkdir(file), `${file} is a folder: restore the file from your backup.`],
      [
        () => writeFile(file, '', { mode: 0o600 }),
        `${file} does not hold 32 bytes in base64: restore it from your backup.`,
      ],
    ] as const) {
      await make()
      const { code, stderr } = await tundish(['org', 'list'], env)
      assert.deepEqual([code, stderr], [2, `${sentence}\n`])
      const { stdout } = await tundish(['doctor', '--json'], env)
      const found = JSON.parse(stdout).findings.filter(({ message }: Finding) => message === sentence)
      assert.deepEqual(found, [
        { check: 'files', level: 'failed', message: sentence, fix: 'Correct that file, and run the doctor again.' },
      ])
      await rm(file, { recursive: true })
    }
    await rename(`${file}.kept`, file)
  })

  test('1 from the doctor for folders in the place of the ledger and of the heads of the audit log', async () => {
    for (const [setting, name] of [
      ['ERASURE_LEDGER', 'ledger'],
      ['DATA_DIR', 'audit-heads.ndjson'],
    ] as const) {
      const path = join(env.DATA_DIR, name)
      const kept = await readFile(path).catch(() => undefined)
      await rm(path, { force: true })
      await mkdir(path)
      const { stdout } = await tundish(['doctor', '--json'], setting === 'DATA_DIR' ? env : { ...env, [setting]: path })
      const failed = JSON.parse(stdout).findings.filter(({ level }: Finding) => level === 'failed')
      assert.deepEqual(
        failed.map(({ check, message }: Finding) => [check, message]),
        [
          ['files', `${path} cannot be written (EISDIR).`],
          ['files', `${path} cannot be read: it is a folder (EISDIR).`],
        ],
      )
      await rm(path, { recursive: true })
      if (kept) await writeFile(path, kept)
    }
  })

  test('2 and a sentence while it is missing, and none is made', async () => {
    await rename(file, `${file}.kept`)
    const { code, stdout, stderr } = await tundish(['org', 'list'], env)
    assert.deepEqual([code, stdout], [2, ''])
    assert.equal(stderr, `master.key is missing in ${env.DATA_DIR}: restore it from your backup, or set MASTER_KEY.\n`)
    assert.deepEqual(await examine(), {
      failed: ['master key: master.key is missing in DATA_DIR.'],
      audit: 'Not checked: this needs the master key.',
    })
    assert.ok(!existsSync(file))
    await rename(`${file}.kept`, file)
    assert.deepEqual((await examine()).failed, [])
  })

  test('that is the wrong key: the doctor reports the key, and does not check the audit log', async () => {
    await rename(file, `${file}.kept`)
    await writeFile(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 })
    assert.deepEqual(await examine(), {
      failed: ['master key: The master key is not that of this database.'],
      audit: 'Not checked: this needs the master key.',
    })
    await rename(`${file}.kept`, file)
  })

  test('is replaced, and the old one kept next to it', async () => {
    const old = await readFile(file, 'utf8')
    const { code, stdout, stderr } = await tundish(['master-key', 'replace'], env)
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(
      stdout,
      /^The master key is replaced\. Secret keys: 1, merchant accounts: 0, alert destinations: 0\.\n/,
    )
    assert.notEqual(await readFile(file, 'utf8'), old)
    assert.equal(await readFile(`${file}.old`, 'utf8'), old)
    assert.deepEqual(await examine(), { failed: [], audit: '2 entries, all present and unchanged.' })
  })

  test('is replaced again, and every earlier one kept', async () => {
    const first = await readFile(`${file}.old`, 'utf8')
    const second = await readFile(file, 'utf8')
    const { stdout } = await tundish(['master-key', 'replace'], env)
    assert.match(stdout, /\nThe new key is in master\.key, the old one in master\.key\.old-2\. Keep the old key /)
    assert.deepEqual([await readFile(`${file}.old`, 'utf8'), await readFile(`${file}.old-2`, 'utf8')], [first, second])
    await rename(`${file}.old-2`, `${file}.old`)
  })

  test('is replaced by the next key if the command was killed after its commit, and kept if before', async () => {
    const present = await readFile(file, 'utf8')
    // As the command leaves them when it is killed before it renames them.
    await rename(file, `${file}.next`)
    await rename(`${file}.old`, file)
    assert.equal((await tundish(['org', 'list'], env)).code, 0)
    assert.equal(await readFile(file, 'utf8'), present)
    await writeFile(`${file}.next`, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 })
    assert.equal((await tundish(['org', 'list'], env)).code, 0)
    assert.equal(await readFile(file, 'utf8'), present)
  })

  test('that another first start makes at this moment is used', async (t) => {
    const app = await openApp(readConfig(env), { log: openLog('silent') })
    t.after(() => app.close())
    await rename(file, `${file}.kept`)
    const late = await app.db.tx(async (query) => {
      await query('lock table instance')
      // It has found no key, and asks whether there is to be one.
      const ended = tundish(['org', 'list'], env)
      await untilLocked(app.db.query, 'from instance')
      await rename(`${file}.kept`, file)
      return { ended }
    })
    const { code, stderr } = await late.ended
    assert.deepEqual([code, stderr], [0, ''])
  })
})

test('a master.key that cannot be written completely is not created, and the next start creates one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tundish-master-key-'))
  const secrets = join(import.meta.dirname, '../../../src/lib/secrets.ts')
  const script = `import { makeMasterKeyIn } from ${JSON.stringify(secrets)}; makeMasterKeyIn(${JSON.stringify(folder)})`
  // No byte may be written to a file.
  const limited = ['-c', 'ulimit -f 0; exec "$0" --input-type=module-typescript -e "$1"', process.execPath, script]
  const { status, stderr } = spawnSync('sh', limited, { encoding: 'utf8' })
  assert.notEqual(status, 0)
  assert.match(stderr, /EFBIG/)
  assert.deepEqual(await readdir(folder), [])
  assert.equal(makeMasterKeyIn(folder).length, 32)
  assert.deepEqual(await readdir(folder), ['master.key'])
  await rm(folder, { recursive: true })
})
