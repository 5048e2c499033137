// Commands that root runs on the data folder of a service with its own user: what they make is that user's.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { before, describe, test } from 'node:test'
import type { Finding } from '../../../src/operator/doctor/doctor.ts'
import { PROGRAM_ENV, program, succeeded, tundish } from '../../support/cli.ts'
import { setUpEnv } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { openProxy } from '../../support/proxy.ts'
import { titled } from '../../support/titled.ts'

const notRoot = process.getuid?.() === 0 ? undefined : 'this user is not root'
const NOBODY = 65534
// An account with this number is on no machine.
const NAMELESS = 1_234_567_890

describe(titled('as root', notRoot), { skip: notRoot }, () => {
  let base: string
  before(() => {
    base = temporaryFolder()
    // PostgreSQL's account has to pass.
    chmodSync(base, 0o711)
  })

  function folderOfNobody(name: string): string {
    const folder = join(base, name)
    mkdirSync(folder)
    chownSync(folder, NOBODY, NOBODY)
    return folder
  }

  const ownersIn = (folder: string) =>
    Object.fromEntries(readdirSync(folder).map((name) => [name, lstatSync(join(folder, name)).uid]))

  test('everything that the first command creates in DATA_DIR belongs to the folder’s owner', async () => {
    const folder = folderOfNobody('embedded')
    const ledger = join(base, 'ledger.ndjson')
    writeFileSync(
      ledger,
      `${JSON.stringify({ project_id: 'shop', profile_id: 'ada', erased_at: '2026-01-01T00:00:00Z' })}\n`,
    )
    for (const command of ['org create acme', 'project create shop --org acme', `erasures reapply ${ledger}`]) {
      await succeeded(tundish(command.split(' '), { DATA_DIR: folder }))
    }
    const owners = ownersIn(folder)
    for (const name of [
      'audit-heads.ndjson',
      'erasures.ndjson',
      'master.key',
      'postgres',
      'postgres.log',
      'postgres.password',
    ])
      assert.equal(owners[name], NOBODY, name)
    assert.deepEqual(new Set(Object.values(owners)), new Set([NOBODY]))
  })

  test('a new DATA_DIR and its content belong to the owner of the folder above', async () => {
    const home = folderOfNobody('service')
    const folder = join(home, 'a/data')
    await succeeded(tundish(['org', 'create', 'acme'], { DATA_DIR: folder }))
    assert.deepEqual([ownersIn(home), ownersIn(join(home, 'a'))], [{ a: NOBODY }, { data: NOBODY }])
    assert.equal(lstatSync(folder).mode & 0o777, 0o711)
    assert.deepEqual(new Set(Object.values(ownersIn(folder))), new Set([NOBODY]))
  })

  describe('with a database elsewhere', () => {
    const env = setUpEnv()

    test('folders that are missing belong to the owner of the one above', async () => {
      const home = folderOfNobody('home')
      await succeeded(tundish(['org', 'create', 'acme'], { ...env, DATA_DIR: join(home, 'a/b') }))
      assert.deepEqual([home, join(home, 'a'), join(home, 'a/b')].map(ownersIn), [
        { a: NOBODY },
        { b: NOBODY },
        { 'audit-heads.ndjson': NOBODY },
      ])
    })

    test('a user without a name, as in a container that chooses it, makes changes; the audit log has its number', async () => {
      const folder = join(base, 'nameless')
      mkdirSync(folder)
      chownSync(folder, NAMELESS, NAMELESS)
      // Only root and PostgreSQL's account reach its socket.
      const proxy = await openProxy(env['DATABASE_URL']!)
      const [node, args] = program('org', 'create', 'nameless')
      const settings = { ...PROGRAM_ENV, NODE_COMPILE_CACHE: '', ...env, DATABASE_URL: proxy.url, DATA_DIR: folder }
      const child = spawn(node, args, {
        uid: NAMELESS,
        gid: NAMELESS,
        env: settings,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const [[code], stderr] = await Promise.all([once(child, 'close'), text(child.stderr)])
      await proxy.cut()
      assert.deepEqual([code, stderr], [0, ''])
      const { stdout } = await tundish(['audit', 'list', '--json'], { ...env, DATA_DIR: folder })
      assert.ok(stdout.includes(`"uid ${NAMELESS}"`), stdout)
    })

    test('the doctor fails a file of another user than its folder, and says how to give it back', async () => {
      const folder = folderOfNobody('data')
      const file = join(folder, 'audit-heads.ndjson')
      assert.equal((await tundish(['org', 'create', 'other'], { ...env, DATA_DIR: folder })).code, 0)
      chownSync(file, 0, 0)
      const { code, stdout } = await tundish(['doctor', '--json'], { ...env, DATA_DIR: folder })
      const { findings } = JSON.parse(stdout) as { findings: Finding[] }
      const [finding] = findings.filter(({ check }) => check === 'files')
      assert.equal(code, 1)
      assert.match(finding!.message, /audit-heads\.ndjson belongs to user 0 and its folder to user 65534/)
      assert.equal(finding!.fix, `Run, as root: chown 65534:65534 ${file}`)
    })
  })
})
