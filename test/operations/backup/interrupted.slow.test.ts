// A backup or a restore that is killed in the middle leaves nothing half done, and the next one goes well.
import assert from 'node:assert/strict'
import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { PROGRAM_ENV, program, spawnTundish } from '../../support/cli.ts'
import { holding, untilLocked } from '../../support/database.ts'
import { until } from '../../support/time.ts'
import { contents, type Installation, kept, openInstallations } from './installations.ts'

const { source, target, file } = await openInstallations('night.backup')
// Much to read and little to store, so that there is a middle.
await source.db.query(`
  insert into experiments (project_id, id, title, created_at, updated_at)
  select 'app', 'e' || i, repeat(md5(i::text), 1000), now(), now() from generate_series(1, 6000) i`)

const start = ({ env }: Installation, ...args: string[]) => spawnTundish(args, env)

async function end(program: ChildProcess, signal: NodeJS.Signals): Promise<[code: number | null, said: string]> {
  let said = ''
  program.stderr!.on('data', (text) => {
    said += text
  })
  program.kill(signal)
  const [code] = await once(program, 'close')
  return [code, said]
}

describe('a backup', () => {
  const left = () => readdirSync(source.folder).filter((name) => name.startsWith('night'))
  /** Ends one by the signal when it has written and waits for what it reads last. */
  const interrupt = async (signal: NodeJS.Signals) => {
    const release = await holding(source.db, 'alter sequence projects_number_seq owner to current_user', [])
    const program = start(source, 'backup', file, '--format', 'tundish')
    await untilLocked(source.db.query, 'projects_number_seq')
    assert.ok(left().some((name) => statSync(join(source.folder, name)).size > 0))
    return [program.pid, ...(await end(program, signal).finally(release))] as const
  }

  test('that is killed leaves only its draft, which the next backup removes', async () => {
    const [pid] = await interrupt('SIGKILL')
    assert.deepEqual(left(), [`night.backup.partial-${pid}`])
    assert.equal((await source.run('backup', file, '--format', 'tundish')).code, 0)
    assert.deepEqual(left(), ['night.backup'])
    rmSync(file)
  })

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    test(`that is ended by ${signal} leaves nothing, and says so`, async () => {
      const [, code, said] = await interrupt(signal)
      assert.deepEqual([code, said], [1, 'Interrupted: nothing was changed.\n'])
      assert.deepEqual(left(), [])
    })
  }
})

test('a backup that its disk has no room for leaves nothing, also on standard output, and says why', () => {
  const [node, args] = program('backup')
  const inLittle = (words: string) => {
    const script = `ulimit -f 8; exec ${[node, ...args].join(' ')} --format tundish ${words}`
    const { status, stderr } = spawnSync('sh', ['-c', script], {
      env: { ...PROGRAM_ENV, ...source.env },
      encoding: 'utf8',
    })
    return [status, stderr]
  }
  assert.deepEqual(inLittle(file), [1, `${file} cannot be written: EFBIG. No file was left.\n`])
  assert.ok(!existsSync(file))
  assert.deepEqual(inLittle(`- > ${file}`), [
    1,
    'The output cannot be written (EFBIG).\nThe backup on standard output is not complete: do not keep it.\n',
  ])
  rmSync(file)
})

describe('a restore', () => {
  before(() => source.json('backup', file, '--format', 'tundish'))

  /** One that waits, with half of the backup loaded, for the other half. */
  async function begin(): Promise<ChildProcess> {
    const bytes = readFileSync(file)
    const program = start(target, 'restore', '-', '--without-erasures')
    program.stdin.write(bytes.subarray(0, bytes.length / 2))
    await until('the restore to load', async () => (await atWork()).some((statement) => statement.startsWith('copy')))
    return program
  }

  async function atWork(): Promise<string[]> {
    const rows = await target.db.query(
      `select query from pg_stat_activity where application_name = 'tundish restore' and datname = current_database()`,
    )
    return rows.map(({ query }) => query!)
  }

  for (const signal of ['SIGKILL', 'SIGINT'] as const) {
    test(`that is ended by ${signal} leaves an empty database`, async () => {
      const before = await contents(target.db)
      const [, said] = await end(await begin(), signal)
      assert.equal(said, signal === 'SIGKILL' ? '' : 'Interrupted: nothing was changed.\n')
      await until('its end', async () => (await atWork()).length === 0)
      assert.deepEqual(await contents(target.db), before)
    })
  }

  test('succeeds after interrupted ones', async () => {
    await target.json('restore', file, '--without-erasures')
    assert.deepEqual(await kept(target.db), await kept(source.db))
    const marks = await target.db.query(`select id from organizations o
      where not exists (select from unlisted_accounts u where u.organization_id = o.id)`)
    assert.deepEqual(marks, [], 'organizations whose providers may know more than the backup')
  })
})
