// Moves that break off: whatever is in the way, nothing is lost on either shard, and a sentence says how to go on.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { beginPass, continuePass } from '../../src/data/figures/pass.ts'
import { openDb } from '../../src/lib/pg/db.ts'
import { tundish } from '../support/cli.ts'
import type { Json } from '../support/server.ts'
import { setUpPair } from './pair.ts'

const { folder, settings, clusters, run, on, moveWhile, numberOf, assertServedBy, assertNothingLeft } = setUpPair()

const HOW = 'If that was broken off, run the move again, or with --give-up.'
const SLOT = `tundish_move_${createHash('sha256').update('shop').digest('hex').slice(0, 16)}`

test('another organization with its id, which appears on the other shard in between, is not taken for it', async () => {
  const appear = () => clusters.b.query(`insert into organizations (id, name) values ('shop', 'Another')`)
  await assert.rejects(moveWhile('Stopping requests', appear), /organizations_pkey/)
  const { code, stderr } = await run('a', 'b')
  assert.equal(code, 1)
  assert.equal(stderr, 'There is an organization "shop" on b already.\n')
  await clusters.b.query(`delete from organizations where id = 'shop'`)
  await assertServedBy('a')
})

test('its ids cannot be given to others while it is copied', async () => {
  const refusals: string[] = []
  const create = async () => {
    const { findings } = JSON.parse((await on('b', 'doctor', '--json')).stdout)
    assert.deepEqual(
      findings.filter(({ check }: Json) => check === 'shards').map(({ message }: Json) => message),
      ['"shop" is being moved to this shard.'],
    )
    for (const words of [
      ['org', 'create', 'shop'],
      ['project', 'create', 'shop-app', '--org', 'other'],
    ])
      refusals.push((await on('b', ...words)).stderr)
    await clusters.b.stop('SIGQUIT')
  }
  await assert.rejects(moveWhile('Stopping requests', create))
  await clusters.b.start()
  assert.deepEqual(refusals, [
    `The organization id "shop" is in use: the organization "shop" is being moved here from another shard. ${HOW}\n`,
    `The project id "shop-app" is in use: the organization "shop" is being moved here from another shard. ${HOW}\n`,
  ])
  const { findings } = JSON.parse((await on('b', 'doctor', '--json')).stdout)
  assert.deepEqual(
    findings.filter(({ check }: Json) => check === 'shards').map(({ level, message }: Json) => [level, message]),
    [
      [
        'warning',
        'A move of "shop" to this shard was broken off. Its ids and those of its projects are reserved here.',
      ],
    ],
  )
  assert.equal((await run('a', 'b', '--give-up')).code, 0)
  await assertServedBy('a')
  assert.equal((await on('b', 'project', 'create', 'shop-app', '--org', 'other')).code, 0)
  const { stderr } = await run('a', 'b')
  assert.equal(stderr, 'There is a project "shop-app" of another organization on b.\n')
  await clusters.b.query(`
    delete from secret_keys where project_id = 'shop-app'; delete from project_clocks where project_id = 'shop-app';
    delete from projects where id = 'shop-app'`)
})

test('the other shard is gone in the last step: the first one serves it again, once it is said that it is gone', async () => {
  await assert.rejects(
    moveWhile('Stopping requests', () => clusters.b.stop('SIGQUIT')),
    /The move of "shop" was broken off .*Run the same command again/,
  )
  const again = await run('a', 'b')
  assert.equal(again.code, 2)
  assert.match(again.stderr, /^b: The database of DATABASE_URL cannot be used/)
  assert.equal((await run('a', 'b', '--give-up')).code, 2)
  const { code, stdout, stderr } = await run('a', 'b', '--give-up', '--target-is-gone')
  assert.equal(code, 0, stderr)
  assert.equal(stdout, 'The move of "shop" to b is given up: a serves it.\n')
  await assertNothingLeft('a')
  assert.equal(await numberOf('a', `secret_keys where organization_id = 'shop' and expires_at is null`), 2)
  // It is back after all, with its end of the copy.
  await clusters.b.start()
  const responds = await run('a', 'b', '--give-up', '--target-is-gone')
  assert.deepEqual([responds.code, responds.stderr], [1, 'b responds: leave out --target-is-gone.\n'])
  assert.equal((await run('a', 'b', '--give-up')).code, 0)
  await assertServedBy('a')
})

test('a backup of the other shard made in between can be restored, without what had been copied', async () => {
  const file = join(folder, 'b.backup')
  let backedUp = false
  const backUp = async () => {
    backedUp = (await on('b', 'backup', file)).code === 0
    await clusters.b.stop('SIGQUIT')
  }
  await assert.rejects(moveWhile('Stopping requests', backUp))
  assert.ok(backedUp)
  await clusters.b.start()
  const { code, stderr } = await on('b', 'restore', file, '--replace', '--without-erasures')
  assert.equal(code, 0, stderr)
  assert.equal(await numberOf('b', `profiles where project_id = 'other-app'`), 4)
  for (const rows of [`profiles where project_id = 'shop-app'`, `instance where name ~ '^arriving '`])
    assert.equal(await numberOf('b', rows), 0)
  assert.equal((await run('a', 'b', '--give-up')).code, 0)
  await assertServedBy('a')
})

test('PostgreSQL fails to copy again and again: the move is given up, with where to look', async () => {
  // One for the subscription, none for the copies of its tables.
  await clusters.a.query('alter system set max_replication_slots = 1')
  await clusters.a.stop()
  await clusters.a.start()
  const { code, stderr } = await run('a', 'b')
  assert.equal(code, 1)
  assert.match(
    stderr,
    /^Copying\nPostgreSQL on b tries to copy and fails again and again: .* max_replication_slots .* of a/,
  )
  await assertServedBy('a')
  await clusters.a.query('alter system reset max_replication_slots')
  await clusters.a.stop()
  await clusters.a.start()
})

test('PostgreSQL does not copy, and counts no failure: the move is given up too', async () => {
  // As when another program drops the slots of a copy that is under way.
  await clusters.b.query('alter system set max_sync_workers_per_subscription = 0')
  await clusters.b.query('select pg_reload_conf()')
  const { code, stderr } = await run('a', 'b')
  await clusters.b.query('alter system reset max_sync_workers_per_subscription')
  await clusters.b.query('select pg_reload_conf()')
  assert.equal(code, 1)
  assert.match(stderr, /^Copying\nPostgreSQL on b tries to copy and fails again and again: .* ignore_slots/)
  await assertServedBy('a')
})

test('an import that does not end: the first shard serves it again, and a sentence says what is in the way', async () => {
  const importing = new pg.Client({ connectionString: clusters.a.url })
  await importing.connect()
  await importing.query('begin')
  await importing.query(`select begin_write('shop-app')`)
  const { code, stderr } = await run('a', 'b').finally(() => importing.end())
  assert.equal(code, 1)
  assert.match(
    stderr,
    /\nLocking\nAn import or another long change of "shop" did not end within 10 seconds: move it when it has\. a serves it again\.\n$/,
  )
  await assertServedBy('a')
})

test('1 and a sentence for a move to another database of the same server', async () => {
  await clusters.a.query('create database second')
  const one = join(folder, 'one-server')
  cpSync(settings, one, { recursive: true })
  const file = join(one, 'b.env')
  const url = clusters.a.url.replace('/tundish?', '/second?')
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^DATABASE_URL=.*$/m, `DATABASE_URL='${url}'`))
  assert.equal((await tundish(['migrate', '--env-file', file])).code, 0)
  const { code, stderr } = await tundish(['shards', 'move', 'shop', '--in', one, '--from', 'a', '--to', 'b'])
  assert.equal(code, 1)
  assert.match(stderr, /^a and b are databases of one PostgreSQL server, which cannot replicate to itself/)
  await assertServedBy('a')
})

test('1 and a sentence for settings that lead to the same database, to one without tables, or to an address that PostgreSQL does not take', async () => {
  await clusters.b.query('create database empty')
  const same = `${clusters.a.url}&application_name=copy`
  const address = clusters.a.url.replace('sslmode=disable', 'sslmode=disable&unknown=1')
  const cases: [Record<string, string>, Record<string, string>, RegExp][] = [
    [{}, { DATABASE_URL: same }, /^The shards a and b have the same database: correct their settings\.\n$/],
    [
      {},
      { DATABASE_URL: clusters.b.url.replace('/tundish?', '/empty?') },
      /^The shard b has no tables of Tundish: start Tundish there\.\n$/,
    ],
    [
      { REPLICATION_DATABASE_URL: address },
      {},
      /^Copying\nThe server of b does not understand the address of a \(.*"unknown".*\): set REPLICATION_DATABASE_URL of a\.\n$/,
    ],
  ]
  for (const [n, [ofA, ofB, sentence]] of cases.entries()) {
    const changed = join(folder, `changed-${n}`)
    cpSync(settings, changed, { recursive: true })
    for (const [name, env] of [['a', ofA] as const, ['b', ofB] as const])
      for (const [key, value] of Object.entries(env))
        appendFileSync(join(changed, `${name}.env`), `${key}='${value}'\n`)
    const { code, stderr } = await tundish(['shards', 'move', 'shop', '--in', changed, '--from', 'a', '--to', 'b'])
    assert.match(stderr, sentence)
    assert.equal(code, 1)
  }
  await assertServedBy('a')
})

test('1 and a sentence for a shard whose master key was replaced, which could decrypt nothing of the organization', async () => {
  for (const side of ['a', 'b'] as const) {
    await clusters[side].query(`update instance set value = 'x' || value where name = 'master key'`)
    const { code, stderr } = await run('a', 'b')
    assert.equal(code, 1)
    assert.match(
      stderr,
      new RegExp(`^The database of ${side} has another master key than the settings of the shards: `),
    )
    await clusters[side].query(`update instance set value = substr(value, 2) where name = 'master key'`)
  }
  await assertServedBy('a')
})

test('figures that were never computed cannot be computed in the last step, whose marks are copied', async () => {
  const db = openDb({ url: clusters.a.url, applicationName: 'figures' })
  assert.equal(await numberOf('a', 'figure_progress'), 0)
  const pass = await beginPass(db, 'shop-app', { ifLocked: 'skip', writers: '[]' })
  let result = 'not tried'
  const compute = async () => {
    await clusters.a.query(
      `insert into figure_marks (project_id, family, day) values ('shop-app', 'visits', '2100-01-01')`,
    )
    result = await continuePass(db, pass!, () => false)
  }
  await moveWhile('Copying the rest', compute).finally(() => db.close())
  assert.equal(result, 'locked')
  await moveWhile('', async () => {}, ['b', 'a'])
  await assertServedBy('a')
})

test('a slot that was left behind is dropped, and so is a subscription without its slot', async () => {
  await clusters.a.query(`select pg_create_logical_replication_slot('${SLOT}', 'pgoutput')`)
  await clusters.b.query(`
    create subscription ${SLOT} connection 'host=/nowhere' publication ${SLOT} with (connect = false, slot_name = gone)`)
  const steps = await moveWhile('', async () => {})
  await assertServedBy('b')
  // Otherwise a directory that looks at a before b would find it on neither, and its requests would get 401.
  assert.ok(steps.get('Removing the old rows')! - steps.get('Waiting for the directories')! > 1000)
  const gone = await run('a', 'b')
  assert.deepEqual([gone.code, gone.stderr], [1, 'There is no organization "shop" on a. It is on b.\n'])
})
