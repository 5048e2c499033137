// The doctor on a PostgreSQL that archives its log: an archive that is broken is found before it is needed.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { migrate } from '../../../src/lib/pg/migrate.ts'
import { tundish } from '../../support/cli.ts'
import { type Cluster, openCluster } from '../../support/cluster.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { until } from '../../support/time.ts'

let cluster: Cluster
let archive: string
before(async () => {
  cluster = await openCluster()
  await migrate(cluster.url)
})
after(() => cluster?.remove())

async function finding(): Promise<{ level: string; message: string; fix?: string } | undefined> {
  const { stdout, stderr } = await tundish(['doctor', '--json'], env())
  assert.equal(stderr, '')
  return JSON.parse(stdout).findings.find(({ check }: { check: string }) => check === 'archive')
}

const MASTER_KEY = randomBytes(32).toString('base64')
const env = () => ({ DATABASE_URL: cluster.url, DATA_DIR: temporaryFolder(), MASTER_KEY })

const archiver = async () => (await cluster.query('select * from pg_stat_archiver'))[0]!

/** Ends a segment, with something in it. */
async function endSegment(): Promise<void> {
  await cluster.query(`select pg_logical_emit_message(true, 'test', 'x')`)
  await cluster.query('select pg_switch_wal()')
}

async function set(settings: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) await cluster.query(`alter system set ${name} = '${value}'`)
  await cluster.query('select pg_reload_conf()')
}

test('no archive, no finding; one without a command, one that fails, and one that works', async () => {
  assert.equal(await finding(), undefined)
  archive = join(cluster.folder, 'archive')
  mkdirSync(archive)
  chmodSync(archive, 0o777)
  await cluster.stop()
  appendFileSync(
    join(cluster.data, 'postgresql.auto.conf'),
    "archive_mode = 'on'\nwal_level = 'replica'\nmax_wal_senders = 1\n",
  )
  await cluster.start()
  const without = await finding()
  assert.deepEqual([without?.level, without?.fix?.startsWith('Set archive_command')], ['failed', true])

  await set({ archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f` })
  await endSegment()
  await until('a segment to be archived', async () => Number((await archiver()).archived_count) > 0)
  const works = await finding()
  assert.equal(works?.level, 'ok')
  assert.match(works!.message, /^PostgreSQL has archived [0-9A-F]{24} at \d{4}.*Z\. archive_timeout is 0/)

  // As of another server that archives into the same folder.
  const [next] = await cluster.query('select pg_walfile_name(pg_current_wal_lsn()) as name')
  writeFileSync(join(archive, next!.name!), 'another')
  await endSegment()
  await until('the command to fail', async () => Number((await archiver()).failed_count) > 0)
  const fails = await finding()
  assert.equal(fails?.level, 'failed')
  assert.match(
    fails!.message,
    new RegExp(`^PostgreSQL has not archived since .*Z: archive_command fails for ${next!.name}, \\d times? so far\\.`),
  )
  assert.match(fails!.fix!, /another server that archives into the same folder/)
})

test('one whose command does not end is behind', async () => {
  await cluster.query(`select pg_stat_reset_shared('archiver')`)
  await set({ archive_command: '/bin/true' })
  await endSegment()
  await until('a segment to be archived', async () => Number((await archiver()).archived_count) > 0)
  // Until the folder is removed.
  await set({ archive_command: `while test -d ${archive}; do sleep 1; done` })
  for (let segment = 0; segment < 13; segment += 1) await endSegment()
  await until('half a minute to pass', async () => (await finding())?.level !== 'ok')
  const behind = await finding()
  assert.equal(behind?.level, 'warning')
  assert.match(behind!.message, /its archive is 1\d segments behind: archive_command does not end, or is too slow/)
})

test('a server that is a standby, or has paused in a recovery, is refused with what to do', async () => {
  // An orderly stop would wait for the archive.
  await cluster.stop('SIGQUIT')
  writeFileSync(join(cluster.data, 'standby.signal'), '')
  await cluster.start()
  for (const command of ['migrate', 'serve']) {
    const { code, stderr } = await tundish([command], env())
    assert.equal(code, 2)
    assert.match(
      stderr,
      /^The server is a standby\. Point DATABASE_URL at the primary\. .*: select pg_wal_replay_resume\(\);$/m,
    )
  }
})
