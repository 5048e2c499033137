// Imports that are broken off, fail on the way, or meet each other: all of it, or nothing, and once.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { importRecords } from '../../../src/data/ingest/load.ts'
import type { Progress } from '../../../src/data/ingest/progress.ts'
import { Refusal } from '../../../src/lib/errors.ts'
import { openDb } from '../../../src/lib/pg/db.ts'
import { untilLocked, untilUnlocked } from '../../support/database.ts'
import { line, openImports, textOf } from '../../support/imports.ts'
import { until } from '../../support/time.ts'
import { assertCounted } from './counters.ts'

const log = pino({ level: 'silent' })
const ABORTED = new Refusal('The import was aborted: nothing was written.')

const imports = await openImports()
after(() => imports.stop())

const profiles = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, n) => line.profile({ id: `profile-${n}`, ...more }))

/** Waits until no import works in the database: a statement under way may take a moment to notice. */
async function quiet(): Promise<void> {
  await untilUnlocked(imports.db.query, 7486)
}

test('broken off while it reads: nothing', async () => {
  const project = await imports.project()
  const stop = new AbortController()
  const stream = () =>
    new Readable({
      read() {
        this.push(textOf(profiles(100)))
        if (!stop.signal.aborted) setTimeout(() => stop.abort(), 20)
      },
    })
  const running = importRecords({ db: imports.db, log }, { projectId: project.id, signal: stop.signal }, [
    { name: 'endless', stream },
  ])
  await assert.rejects(running, ABORTED)
  await quiet()
  assert.equal(await imports.count(project, 'profiles'), 0)
})

test('broken off while it waits for a lock or writes: nothing', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile({ id: 'profile-0', phone: 'before' })])
  const { query, release } = await imports.db.connect()
  await query('begin')
  await query('select 1 from profiles where project_id = $1 for update', [project.id])
  const stop = new AbortController()
  const running = imports.run(project, profiles(50, { phone: 'after' }), { signal: stop.signal })
  running.catch(() => {})
  await untilLocked(imports.db.query)
  stop.abort()
  await assert.rejects(running, ABORTED)
  await query('rollback')
  release()
  await quiet()
  assert.equal(await imports.count(project, 'profiles'), 1)
  await assertCounted(imports.db, project)
})

test('broken off before it began: nothing', async () => {
  const project = await imports.project()
  await assert.rejects(imports.run(project, profiles(1), { signal: AbortSignal.abort() }), ABORTED)
  assert.equal(await imports.count(project, 'profiles'), 0)
})

test('a source that fails on the way ends the import with its own error', async () => {
  const project = await imports.project()
  async function* failing() {
    yield Buffer.from(textOf(profiles(3)))
    throw new Error('the disk is gone')
  }
  const source = { name: 'file', stream: () => Readable.from(failing()) }
  await assert.rejects(importRecords({ db: imports.db, log }, { projectId: project.id }, [source]), /the disk is gone/)
  assert.equal(await imports.count(project, 'profiles'), 0)
})

test('a database connection that is lost while it reads: nothing, and an error', async () => {
  const project = await imports.project()
  async function* slow() {
    yield Buffer.from(textOf(profiles(2000)))
    await until('the import to send its first lines', async () => {
      const ended = await imports.rows(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query like '%import_%'`,
      )
      return ended.length > 0
    })
    for (let n = 0; n < 20; n++) yield Buffer.from(textOf(profiles(2000)))
  }
  const source = { name: 'file', stream: () => Readable.from(slow()) }
  await assert.rejects(importRecords({ db: imports.db, log }, { projectId: project.id }, [source]))
  assert.equal(await imports.count(project, 'profiles'), 0)
})

test('several sources are one import, and a bad line in one of them keeps all out', async () => {
  const project = await imports.project()
  const source = (name: string, text: string) => ({ name, stream: () => Readable.from([Buffer.from(text)]) })
  const good = source('good', textOf([line.profile()]))
  const run = (...sources: (typeof good)[]) =>
    importRecords({ db: imports.db, log }, { projectId: project.id }, sources)
  const result = await run(source('needs', textOf([line.session()])), good, source('bad', '\n{}'))
  assert.deepEqual(
    [result.rejects.map(({ source, line }) => `${source}:${line}`), await imports.count(project, 'profiles')],
    [['bad:2'], 0],
  )
  assert.equal((await run(source('needs', textOf([line.session()])), good)).written, 2)
})

test('statements may take longer than the pool lets others take', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile()])
  const hurried = openDb({ url: imports.url, applicationName: 'test', statementTimeoutMs: 100 })
  const { query, release } = await imports.db.connect()
  await query('begin')
  await query('select 1 from profiles where project_id = $1 for update', [project.id])
  const source = { name: 'file', stream: () => Readable.from([Buffer.from(textOf([line.profile({ phone: '1' })]))]) }
  const running = importRecords({ db: hurried, log }, { projectId: project.id }, [source])
  await untilLocked(imports.db.query, '', 0.2)
  await query('commit')
  release()
  assert.equal((await running).written, 1)
  await hurried.close()
})

test('an import that has to wait for another one says so', async () => {
  const project = await imports.project()
  const { query, release } = await imports.db.connect()
  await query('select pg_advisory_lock(7486, hashtext($1))', [project.organizationId])
  const steps: Progress['step'][] = []
  const running = imports.run(project, [line.profile()], { onProgress: ({ step }) => steps.push(step) })
  await untilLocked(imports.db.query)
  release(true)
  await running
  assert.deepEqual([...new Set(steps)], ['reading', 'checking', 'waiting', 'writing'])
})

test('a deadlock with another writer is tried again', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile(), line.product(), line.subscription()])
  const { query, release } = await imports.db.connect()
  await query('begin')
  await query('select 1 from subscriptions where project_id = $1 for update', [project.id])
  const running = imports.run(project, [line.profile({ phone: '1' }), line.subscription({ status: 'expired' })])
  await untilLocked(imports.db.query)
  // Now each waits for the other; the import, which has waited longer, is the one that PostgreSQL ends.
  await query('select 1 from profiles where project_id = $1 for update', [project.id])
  await query('commit')
  release()
  assert.equal((await running).written, 2)
  await assertCounted(imports.db, project)
})

test('two imports of the same records at once: both succeed, everything is there once, and counted once', async () => {
  for (let round = 0; round < 5; round++) {
    const project = await imports.project()
    const lines = [line.funnel(), line.product(), ...profiles(200, { funnel_id: 'funnel' })]
    const subscriptions = (status: string) =>
      Array.from({ length: 200 }, (_, n) => line.subscription({ id: `s${n}`, profile_id: `profile-${n}`, status }))
    const payments = Array.from({ length: 20 }, (_, n) => line.payment({ external_id: `user-${n}` }))
    const results = await Promise.all([
      imports.run(project, [...lines, ...subscriptions('active'), ...payments]),
      imports.run(project, [...payments, ...subscriptions('expired'), ...lines].reverse()),
      imports.run(project, [...lines, ...subscriptions('paused')], { live: true }),
    ])
    assert.deepEqual(
      results.map(({ read, written, unchanged }) => read - written - unchanged),
      [0, 0, 0],
    )
    assert.equal(await imports.count(project, 'profiles'), 200)
    await assertCounted(imports.db, project)
  }
})

test('imports of two projects of an organization at once share its customers and report without a clash', async () => {
  const first = await imports.project()
  const second = await imports.project(first.organizationId)
  const payments = (prefix: string) =>
    Array.from({ length: 100 }, (_, n) =>
      line.payment({ external_id: `${prefix}-${n}`, trx_created_at: '2026-01-02T00:00:00Z' }),
    )
  await Promise.all([
    imports.run(first, payments('a')),
    imports.run(second, payments('b')),
    imports.run(first, payments('c'), { live: true }),
  ])
  const row = await imports.row(
    'select count(*) as n, count(distinct trx_created_at) as instants from report_transactions where organization_id = $1',
    [first.organizationId],
  )
  assert.deepEqual(row, { n: '300', instants: '300' })
})

test('a writer of records that works at the same time is counted, too', async () => {
  const project = await imports.project()
  await imports.run(project, profiles(50))
  const charge = (n: number) =>
    imports.db.tx(async (query) => {
      await query('select begin_write($1)', [project.id])
      await query(
        `with added as (insert into transactions (project_id, id, created_at, updated_at, profile_id, currency, price)
           values ($1, $2, db_clock(), db_clock(), 'profile-1', 'USD', 1))
         insert into counts (project_id, list, field, value, n) values ($1, 'transactions', '', '', 1)`,
        [project.id, `charge-${n}`],
      )
    })
  const transactions = Array.from({ length: 100 }, (_, n) =>
    line.transaction({ id: `t${n}`, profile_id: `profile-${n % 50}` }),
  )
  await Promise.all([
    imports.run(project, transactions, { live: true }),
    ...Array.from({ length: 30 }, (_, n) => charge(n)),
  ])
  const kept = await assertCounted(imports.db, project)
  assert.ok(kept.includes('transactions.=: 130'))
})
