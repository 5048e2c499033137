// Behind a real PgBouncer in transaction mode, with fewer connections to PostgreSQL than there is work for.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openDb } from '../../../src/lib/pg/db.ts'
import { isShared } from '../../../src/lib/pg/pooler.ts'
import type { Billing, Organization } from '../../support/billing.ts'
import { tundish } from '../../support/cli.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { ok } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'
import { walk } from '../../support/walk.ts'
import { type CrowdedShop, openCrowdedShop } from './crowded-shop.ts'
import { noPgBouncer, openPgBouncer, type PgBouncer } from './pgbouncer.ts'

describe(titled('behind PgBouncer in transaction mode', noPgBouncer), {
  skip: noPgBouncer !== undefined,
  timeout: 120_000,
}, () => {
  let database: FreshDatabase
  let bouncer: PgBouncer
  let billing: Billing
  let shop: Organization
  let get: CrowdedShop['get']
  before(async () => {
    database = await freshDatabase()
    bouncer = await openPgBouncer(database.url)
    const people = Array.from({ length: 60 }, (_, n) => ({ id: `person-${n}`, email: `person-${n}@example.com` }))
    const env = { DATABASE_URL: bouncer.url, DIRECT_DATABASE_URL: database.url }
    ;({ billing, shop, get } = await openCrowdedShop(env, people))
  })
  after(async () => {
    await billing?.stop()
    await bouncer?.remove()
    await database?.drop()
  })

  test('serves pages, walks, counts and a horizon', async () => {
    assert.equal((await walk({ get }, '/profiles', { limit: '7' })).length, 61)
    const sync = { 'filter[updated_at.from]': '2020-01-01T00:00:00Z', limit: '20' }
    assert.equal((await walk({ get }, '/profiles', sync)).length, 61)
  })

  test('returns each caller its own result, with many concurrent callers and large parameters', async () => {
    const ask = async (n: number) => {
      // Longer than any buffer on the way.
      const email = `person-${n % 60}@example.com${' '.repeat(n % 3 === 0 ? 8000 : 0)}`
      const body = await ok(get('/profiles', { 'filter[email]': email }))
      const found = body.data.map((one: { id: string }) => one.id)
      assert.deepEqual(found, n % 3 === 0 ? [] : [`person-${n % 60}`])
      const one = await get(`/profiles/person-${n % 60}`)
      assert.equal(one.body.email, `person-${n % 60}@example.com`)
    }
    for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 100 }, (_, n) => ask(n)))
  })

  test('isolates transactions that send many statements at once', async () => {
    const { db } = billing
    const add = (n: number) =>
      db.tx(async (query) => {
        const text = String(n).repeat(n % 4 === 0 ? 2000 : 1)
        const asked = ['a', 'b', 'c'].map((name) => query(`select '${name}' as name, $1::text as text`, [text]))
        const rows = (await Promise.all(asked)).flat()
        assert.deepEqual(
          rows,
          ['a', 'b', 'c'].map((name) => ({ name, text })),
        )
        if (n % 5 === 0) await Promise.all([query('select 1 / 0'), query('select 1')])
      })
    const failed = (error: { code?: string }) => assert.equal(error.code, '22012')
    for (let round = 0; round < 5; round++) {
      await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          n % 5 === 0 ? add(n).then(() => assert.fail('it was committed'), failed) : add(n),
        ),
      )
    }
  })

  test('imports, by the command and past the pooler, while others read', async () => {
    const { server } = billing
    const file = join(String(server.env.DATA_DIR), 'profiles.ndjson')
    const lines = Array.from({ length: 500 }, (_, n) => {
      const data = { id: `imported-${n}`, created_at: '2026-01-01T00:00:00Z', email: `imported-${n}@example.com` }
      return JSON.stringify({ record: 'profile', data })
    })
    writeFileSync(file, `${lines.join('\n')}\n`)
    const importing = tundish(['import', '--json', '--project', shop.projectId, file], server.env)
    const reading = Promise.all(Array.from({ length: 50 }, () => get('/profiles/person-1')))
    const { code, stdout, stderr } = await importing
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).written, 500)
    assert.ok((await reading).every(({ status }) => status === 200))
    assert.equal((await get('/profiles', { 'filter[email]': 'imported-499@example.com' })).body.pagination.total, 1)
  })

  test('charges once, settles what is unknown, refunds', async () => {
    const customer = await shop.customer()
    const key = randomUUID()
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => shop.charge(customer, { idempotency_key: key })),
    )
    const orders = new Set(responses.flatMap(({ body }) => body.order_id ?? []))
    assert.equal(orders.size, 1)
    const [orderId] = [...orders]
    assert.equal((await billing.ledger(orderId)).length, 1)
    const refund = await shop.refund(customer, String(orderId))
    assert.equal(refund.body.refund_status, 'succeeded', refund.text)
  })

  test('erases', async () => {
    const body = { profile_ids: ['person-7', 'person-8'] }
    await ok(billing.server.api('/profiles/anonymize', { key: shop.projectKey, method: 'POST', body }))
    assert.equal((await get('/profiles/person-7')).body.email, null)
  })

  test('the doctor finds it in order', async () => {
    const { stdout } = await tundishAgain(['doctor', '--json'], billing.server.env)
    const { findings } = JSON.parse(stdout)
    const levels = findings.map(({ check, level }: { check: string; level: string }) => `${check} ${level}`)
    assert.ok(levels.includes('pooler ok'), stdout)
    assert.ok(!levels.some((one: string) => one.endsWith('failed')), stdout)
  })

  test('503 while PgBouncer is away, and 200 again when it is back', async () => {
    await bouncer.stop()
    const away = await get('/profiles/person-1')
    assert.equal(away.status, 503, away.text)
    await bouncer.start()
    await ok(get('/profiles/person-1'))
  })

  test('without DIRECT_DATABASE_URL a sentence says what is missing', async () => {
    const { DIRECT_DATABASE_URL: _, ...env } = billing.server.env
    const { code, stderr } = await tundishAgain(['org', 'list'], env)
    assert.equal(code, 2)
    assert.match(stderr, /set DIRECT_DATABASE_URL/)
    const { stdout } = await tundishAgain(['doctor', '--json'], env)
    const { fix } = JSON.parse(stdout).findings.find(({ level }: { level: string }) => level === 'failed')
    assert.match(fix, /set DIRECT_DATABASE_URL/)
  })

  test('connections that PgBouncer made before the settings are refused by name', async () => {
    const fresh = await freshDatabase()
    const early = await openPgBouncer(fresh.url)
    try {
      const env = { ...billing.server.env, DATABASE_URL: early.url, DIRECT_DATABASE_URL: fresh.url }
      const name = new URL(fresh.url).pathname.slice(1)
      // A connection that stays in the pool, with times in another zone.
      await billing.db.query(`alter database ${name} set timezone = 'Asia/Tokyo'`)
      const old = openDb({ url: early.url, directUrl: fresh.url, applicationName: 'test', connections: 1 })
      await old.query('select 1')
      await old.close()
      const refused = await tundishAgain(['org', 'list'], env)
      assert.equal(refused.code, 2)
      assert.match(refused.stderr, /TimeZone.*RECONNECT/)
      await early.console('reconnect')
      assert.equal((await tundishAgain(['org', 'list'], env)).code, 0)
    } finally {
      await early.remove()
      await fresh.drop()
    }
  })

  test('a pooler that ignores the settings of sessions is refused also after a start stored them in the role', async () => {
    const silent = await openPgBouncer(database.url, { ignore_startup_parameters: 'options' })
    try {
      const { DIRECT_DATABASE_URL: direct, ...others } = billing.server.env
      const env = { ...others, DATABASE_URL: silent.url }
      for (const [setting, more] of [
        ['DATABASE_URL', {}],
        ['DIRECT_DATABASE_URL', { DIRECT_DATABASE_URL: silent.url }],
      ] as const) {
        const { code, stderr } = await tundishAgain(['org', 'list'], { ...env, ...more })
        assert.equal(code, 2, stderr)
        assert.match(stderr, new RegExp(`^${setting} leads through a pooler: set DIRECT_DATABASE_URL to`))
        const { stdout } = await tundishAgain(['doctor', '--json'], { ...env, ...more })
        const { findings } = JSON.parse(stdout)
        const { level, message } = findings.find(({ check }: { check: string }) => check === 'pooler')
        assert.equal(
          `${level}: ${message}`,
          `failed: A pooler gives the connections of ${setting} to several clients in turn.`,
        )
      }
      const right = { ...env, DIRECT_DATABASE_URL: String(direct) }
      assert.equal((await tundishAgain(['org', 'list'], right)).code, 0)
    } finally {
      await silent.remove()
    }
  })

  test('a pooler that uses its connections in turn is noticed, however many it has', async () => {
    const given = { ignore_startup_parameters: 'options', server_round_robin: '1' }
    for (const size of [1, 2, 3]) {
      const turning = await openPgBouncer(database.url, given)
      const db = openDb({ url: turning.url, applicationName: 'turning', statementTimeoutMs: 10_000 })
      try {
        const sessions = await Promise.all(Array.from({ length: size }, () => db.connect()))
        for (const { query } of sessions) await query('begin')
        for (const { query } of sessions) await query('rollback')
        for (const { release } of sessions) release()
        assert.equal(await isShared(db.connect), true, `${size} connections`)
      } finally {
        await db.close()
        await turning.remove()
      }
    }
  })

  test('session mode needs no DIRECT_DATABASE_URL after a start stored the settings in the role', async () => {
    const given = { ignore_startup_parameters: 'options', pool_mode: 'session', default_pool_size: '10' }
    const session = await openPgBouncer(database.url, given)
    try {
      const { DIRECT_DATABASE_URL: _, ...env } = billing.server.env
      const { code, stderr } = await tundishAgain(['org', 'list'], { ...env, DATABASE_URL: session.url })
      assert.equal(code, 0, stderr)
    } finally {
      await session.remove()
    }
  })

  test('statement mode is refused by name', async () => {
    const statements = await openPgBouncer(database.url, { pool_mode: 'statement' })
    try {
      const { code, stderr } = await tundishAgain(['org', 'list'], {
        ...billing.server.env,
        DATABASE_URL: statements.url,
      })
      assert.equal(code, 2)
      assert.match(
        stderr,
        /^DATABASE_URL leads through a pooler in statement mode.* set its pool_mode to transaction\.\n$/,
      )
    } finally {
      await statements.remove()
    }
  })

  test('a restore names the pooler whose connections look like a running Tundish', async () => {
    const fresh = await freshDatabase()
    const idle = await openPgBouncer(fresh.url)
    try {
      const env = { ...billing.server.env, DATABASE_URL: idle.url, DIRECT_DATABASE_URL: fresh.url }
      assert.equal((await tundishAgain(['org', 'create', 'acme'], env)).code, 0)
      const file = join(String(billing.server.env.DATA_DIR), 'pooled.backup')
      assert.equal((await tundishAgain(['backup', file], env)).code, 0)
      const restore = () => tundishAgain(['restore', file, '--replace', '--without-erasures'], env)
      assert.match((await restore()).stderr, /If only a pooler has connections of it, send RECONNECT to its console\./)
      await idle.console('reconnect')
      // It closes them a moment later.
      await until('the restore', async () => (await restore()).code === 0)
    } finally {
      await idle.remove()
      await fresh.drop()
    }
  })
})
