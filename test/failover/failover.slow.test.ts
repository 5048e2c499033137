// A standby becomes the primary: promises hold when its clock is behind, and commits that it never received are noticed.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { readerOf } from '../data/sync/copies.ts'
import { type Billing, type Organization, settled, startBilling } from '../support/billing.ts'
import { tundish } from '../support/cli.ts'
import { addRow } from '../support/data.ts'
import { openReplicated, type Replicated } from '../support/replica.ts'
import { type Json, scrape } from '../support/server.ts'
import { until } from '../support/time.ts'

interface Pair extends Replicated {
  billing: Billing
  shop: Organization
  customer: string
  get(path: string, query?: Record<string, string>): Promise<{ status: number; headers: Json; body: Json }>
  /** Kills the primary, promotes the standby, and waits until a charge succeeds and the failover is recorded. */
  failOver(): Promise<void>
  end(): Promise<void>
}

/** A primary with a standby, and a server that has both in its address. */
async function openPair(): Promise<Pair> {
  const databases = await openReplicated()
  const { primary, replica } = databases
  const hosts = encodeURIComponent(`${primary.sockets()},${replica.sockets()}`)
  const url = `${primary.url.replace(encodeURIComponent(primary.sockets()), hosts)}&target_session_attrs=read-write`
  const billing = await startBilling({ DATABASE_URL: url }, { worker: true })
  const shop = await billing.organization()
  const customer = await shop.customer({ profileId: 'ada' })
  return {
    ...databases,
    billing,
    shop,
    customer,
    get: (path, query = {}) =>
      billing.server.api(`${path}?${new URLSearchParams(query)}`, { key: shop.projectKey }) as never,
    async failOver() {
      await primary.stop('SIGQUIT')
      await replica.promote()
      const body = { idempotency_key: randomUUID() }
      await until('a charge to pass', async () => (await shop.charge(customer, body)).status === 200)
      await until(
        'the failover to be recorded',
        async () => (await billing.db.query('select 1 from failovers')).length > 0,
      )
    },
    async end() {
      await billing.stop()
      await databases.close()
    },
  }
}

const doctor = async ({ billing }: Pair) => {
  const { stdout } = await tundish(['doctor', '--json'], billing.server.env)
  const findings: { check: string; level: string; message: string; fix: string }[] = JSON.parse(stdout).findings
  return findings.filter(({ check }) => check === 'failover')
}

describe('a failover to a standby whose clock is an hour behind, with commits that wait for it', {
  timeout: 240_000,
}, () => {
  let pair: Pair
  let from: string
  const charged: string[] = []
  before(async () => {
    pair = await openPair()
    const { primary, replica } = pair
    await replica.query(`alter system set tundish.clock_offset = '-1 hour'`)
    await replica.query('select pg_reload_conf()')
    await replica.catchUp()
    await primary.query(`alter system set synchronous_standby_names = '*'`)
    await primary.query('select pg_reload_conf()')
    await until('beats that waited', async () => {
      const [row] = await pair.billing.db.query('select waits from commit_beat')
      return row?.waits === 't'
    })
  })
  after(() => pair.end())

  const charge = async () => {
    const key = randomUUID()
    const { body } = await settled(() => pair.shop.charge(pair.customer, { idempotency_key: key }))
    charged.push(body.order_id)
  }
  const horizon = async () =>
    String((await pair.get('/transactions', { 'filter[updated_at.from]': from, limit: '1' })).headers['x-sync-horizon'])
  const stamps = async () => {
    let rows: Json[] | undefined
    // Connections to the old primary are found broken one by one.
    await until('the report', async () => {
      rows = await pair.shop.report({ last_transaction_date: '2020-01-01T00:00:00Z' })
      return rows !== undefined
    })
    return rows!.map(({ trx_created_at }: Json) => trx_created_at as string)
  }

  test('sets no stamp, no report row and no horizon back', async () => {
    from = '2020-01-01T00:00:00Z'
    await charge()
    await charge()
    const newest = (await stamps()).at(-1)!
    await until('the horizon to pass both', async () => (await horizon()) > newest)
    from = await horizon()
    await pair.failOver()
    const [clock] = await pair.billing.db.query(`select db_clock() < $1::timestamptz as behind`, [newest])
    assert.equal(clock!.behind, 't', 'The clock of the new primary must be behind, or the test finds nothing.')
    await charge()
    const after = await stamps()
    assert.deepEqual(after, [...after].sort())
    assert.ok(after.at(-1)! > newest, `${after.at(-1)} is not after ${newest}`)
    const last = after.at(-1)!
    let seen = from
    await until('the horizon to pass the last', async () => {
      const now = await horizon()
      assert.ok(now >= seen, `The horizon went back from ${seen} to ${now}.`)
      seen = now
      return now > last
    })
    const window = { 'filter[updated_at.from]': from, 'filter[updated_at.to]': seen }
    const { body } = await pair.get('/transactions', window)
    assert.equal(body.data.length, 2, 'The charge of the failover, and the one after it.')
  })

  test('is no loss to readers and to the doctor', async () => {
    const { headers } = await pair.get('/transactions', { 'filter[updated_at.from]': from })
    assert.equal(headers['x-void-from'], undefined)
    assert.deepEqual(
      (await doctor(pair)).map(({ level, message }) => `${level}: ${message}`),
      ['ok: 1 failover in 30 days, none lost a commit.'],
    )
  })
})

describe('a failover to a standby that has not received the last commits', { timeout: 240_000 }, () => {
  let pair: Pair
  let folder: string
  let lost: { order_id: string; key: string }
  let horizon: string
  const events: Json[] = []
  before(async () => {
    pair = await openPair()
    folder = mkdtempSync(join(tmpdir(), 'tundish-failover-'))
    const { primary, replica, billing, shop } = pair
    await addRow(billing.db, 'webhook_endpoints', { project_id: shop.projectId, url: 'https://example.com/' })
    await replica.catchUp()
    await replica.query(`alter system set primary_conninfo = ''`)
    await replica.query('select pg_reload_conf()')
    await until(
      'the standby to be cut off',
      async () => (await primary.query('select 1 from pg_stat_replication')).length === 0,
    )
    await write(`insert into profiles (project_id, id, created_at, updated_at) values ($1, 'lost', $2, $2)`)
    await write(`update profiles set country = 'DE', updated_at = $2 where project_id = $1 and id = 'ada'`)
    const key = randomUUID()
    const { body } = await settled(() => shop.charge(pair.customer, { idempotency_key: key }))
    lost = { order_id: body.order_id, key }
    const beat = async () => Number((await billing.db.query('select number from commit_beat'))[0]!.number)
    const begun = await beat()
    await until('beats that the standby does not receive', async () => (await beat()) > begun + 1)
    await copy()
    const { headers } = await pair.get('/profiles', { 'filter[updated_at.from]': '2020-01-01T00:00:00Z' })
    horizon = headers['x-sync-horizon']
    await pair.failOver()
    await until('the events', async () => {
      events.splice(0, 10, ...(await billing.db.query(`select type, data from events where type like 'project.%'`)))
      return events.length > 0
    })
  })
  after(async () => {
    await pair.end()
    rmSync(folder, { recursive: true, force: true })
  })

  /** As the program writes records: stamped with what `begin_write` returns. */
  const write = (text: string) =>
    pair.billing.db.tx(async (query) => {
      const [begun] = await query('select begin_write($1) as stamp', [pair.shop.projectId])
      await query(text, [pair.shop.projectId, begun!.stamp!])
    })
  const copy = async () => {
    const { url } = pair.billing.server
    const env = { SYNC_URL: url, SYNC_KEY: pair.shop.projectKey }
    const { code, stderr } = await tundish(['sync', '--to', `sqlite:${join(folder, 'copy.sqlite')}`], env)
    assert.equal(code, 0, stderr)
    const rows = await readerOf(`sqlite:${join(folder, 'copy.sqlite')}`)('profiles')
    return rows.map(({ id, country }: Json) => [id, country]).sort()
  }
  const ask = async (from: string) =>
    (await pair.get('/profiles', { 'filter[updated_at.from]': from })).headers['x-void-from'] as string | undefined

  test('is reported by the doctor and a metric, with its instant', async () => {
    const [finding] = await doctor(pair)
    assert.equal(finding!.level, 'failed')
    const [, instant] = /^A failover lost commits that were made after (\S+Z)\.$/.exec(finding!.message)!
    const [, since] = /^Run: tundish reconcile --since (\S+Z)\. /.exec(finding!.fix)!
    assert.equal(Date.parse(since!), Date.parse(instant!) - 3_600_000)
    const text = await scrape(pair.billing.server)
    const [, seconds] = /^tundish_commits_lost_from_timestamp_seconds (\S+)$/m.exec(text)!
    assert.equal(Math.floor(Number(seconds) * 1000), Date.parse(instant!))
  })

  test('sends one event to each project', () => {
    assert.equal(events.length, 1)
    const data = JSON.parse(events[0].data)
    assert.deepEqual([events[0].type, data.id, data.certain], ['project.commits_lost', pair.shop.projectId, true])
  })

  test('is reported to readers of the lost changes, by lists and the export, and to no others', async () => {
    const voidFrom = await ask(horizon)
    assert.ok(voidFrom! < horizon, `${voidFrom} is not before ${horizon}`)
    const query = new URLSearchParams({ from: horizon })
    const { headers } = await pair.billing.server.api(`/export?${query}`, { key: pair.shop.projectKey })
    assert.equal(headers['x-void-from'], voidFrom)
    assert.equal(await ask('2020-01-01T00:00:00Z'), undefined)
    assert.equal(await ask(voidFrom!), undefined)
    let later = ''
    await until('a horizon after the loss', async () => {
      later = (await pair.get('/profiles', { 'filter[updated_at.from]': voidFrom! })).headers['x-sync-horizon']
      return later > horizon
    })
    await until('the new horizon to be told nothing', async () => {
      const { headers } = await pair.get('/profiles', { 'filter[updated_at.from]': voidFrom! })
      return (await ask(headers['x-sync-horizon'])) === undefined
    })
  })

  test('makes tundish sync remove what is lost and read what was undone', async () => {
    assert.deepEqual(await copy(), [['ada', null]])
    assert.deepEqual(await copy(), [['ada', null]])
  })

  test('lets the same key bring a lost order back without another charge', async () => {
    const { billing, shop, customer } = pair
    const found = await billing.db.query('select 1 from orders where order_id = $1', [lost.order_id])
    assert.deepEqual(found, [], 'The order must be lost, or the test finds nothing.')
    const before = (await billing.ledger()).length
    const { body } = await settled(() => shop.charge(customer, { idempotency_key: lost.key }))
    assert.equal(body.checkout_status, 'succeeded')
    assert.equal((await billing.ledger()).length, before)
  })
})
