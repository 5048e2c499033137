// Whoever was erased after a backup was made stays erased when it is restored, and nobody sees them in between.
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { auditHeadsPath, openAudit } from '../../../src/core/audit/audit.ts'
import { erase } from '../../../src/core/erasure/erasure.ts'
import { openSeal } from '../../../src/lib/secrets.ts'
import { fill, type Installation, install, MASTER_KEY } from './installations.ts'

const source = await install()
await fill(source)
const file = join(source.folder, 'before.backup')
await source.json('backup', file)
const audit = openAudit(openSeal(Buffer.from(MASTER_KEY, 'base64')), auditHeadsPath({ dataDir: source.folder }))
const actor = { kind: 'tundish', id: 'test', source: 'test' } as const
const { missing } = await erase({ db: source.db, audit, erasureLedger: source.ledger }, actor, 'app', ['profile'])
assert.deepEqual(missing, [])
after(() => source.remove())

const email = async ({ db }: Installation) =>
  (await db.query(`select email from profiles where id = 'profile'`))[0]?.email

const lines = (path: string) => readFileSync(path, 'utf8').trim().split('\n')

async function onNew(from: Installation | undefined, work: (target: Installation) => Promise<void>): Promise<void> {
  const target = await install(from)
  try {
    await work(target)
  } finally {
    await target.remove()
  }
}

describe('a restore of what is older than an erasure', () => {
  test('erases again by the ledger of the same machine, before anybody can look', async () => {
    await onNew(source, async (target) => {
      const seen = new Set<unknown>()
      let looking = true
      const look = (async () => {
        while (looking) seen.add(await email(target))
      })()
      const { erasures } = await target.json('restore', file)
      looking = false
      await look
      seen.add(await email(target))
      assert.deepEqual(erasures, { erased: 1, already_erased: 0, unknown: 1 })
      assert.deepEqual([...seen], [undefined, null])
      const [reply] = await target.db.query('select value from replies')
      assert.equal(reply!.value, 'null')
    })
  })

  test('leaves both ledgers with the same erasures, each of them once', async () => {
    await onNew(source, async (target) => {
      await target.json('restore', file)
      const rows = await target.db.query('select profile_id from erasures order by 1')
      assert.deepEqual(
        rows.map(({ profile_id }) => profile_id),
        ['gone', 'profile'],
      )
      assert.deepEqual(
        lines(source.ledger)
          .map((line) => JSON.parse(line).profile_id)
          .sort(),
        ['gone', 'profile'],
      )
      assert.match((await target.run('doctor')).stdout, /^ok +erasures +Both ledgers agree on 2/m)
      // The entry of the erasure is lost with the database; the file that knew it is set aside, and the log is sound.
      assert.equal((await target.run('audit', 'verify')).code, 0)
    })
  })

  test('is refused without a ledger', async () => {
    await onNew(undefined, async (target) => {
      const { code, stderr } = await target.run('restore', file)
      assert.equal(code, 1)
      assert.match(stderr, /^There is no ledger of erasures at .+: name it with --erasures, or add --without-erasures/)
      assert.deepEqual(await target.db.query('select from organizations'), [])
    })
  })

  test('takes the ledgers of other machines, and keeps one here from then on', async () => {
    await onNew(undefined, async (target) => {
      const elsewhere = join(target.folder, 'other.ndjson')
      copyFileSync(source.ledger, elsewhere)
      const { erasures } = await target.json('restore', file, '--erasures', elsewhere)
      assert.deepEqual(erasures, { erased: 1, already_erased: 0, unknown: 1 })
      assert.equal(await email(target), null)
      assert.equal(lines(target.ledger).length, 2)
    })
  })

  test('is refused with a ledger that cannot be read, or not to its end', async () => {
    await onNew(undefined, async (target) => {
      const missing = await target.run('restore', file, '--erasures', '/nowhere')
      assert.match(missing.stderr, /There is no readable ledger at \/nowhere/)
      const torn = join(target.folder, 'torn.ndjson')
      writeFileSync(torn, `${lines(source.ledger)[0]}\n{"project_id":"app","prof`)
      const { code, stderr } = await target.run('restore', file, '--erasures', torn)
      assert.deepEqual([missing.code, code], [1, 1])
      assert.match(stderr, /torn.ndjson:2: .+\nRemove such a line if a crash has cut it off/)
      assert.deepEqual(await target.db.query('select from organizations'), [])
    })
  })

  test('erases by the database that it replaces if the file is lost', async () => {
    const lost = join(source.folder, 'lost.ndjson')
    copyFileSync(source.ledger, lost)
    rmSync(source.ledger)
    const { erasures } = await source.json('restore', file, '--replace', '--without-erasures')
    assert.deepEqual(erasures, { erased: 1, already_erased: 0, unknown: 1 })
    assert.equal(await email(source), null)
    assert.equal(lines(source.ledger).length, 2)
  })
})
