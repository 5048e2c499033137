// Metrics, logs and traces: what an operator can see, and what nobody may.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Billing, startBilling } from '../../support/billing.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { openProxy } from '../../support/proxy.ts'
import { startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const ROOT = join(import.meta.dirname, '../../..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

describe('metrics', () => {
  let billing: Billing
  before(async () => {
    // At an address without a server: only the metrics have to be there.
    billing = await startBilling({ READ_DATABASE_URL: 'postgresql://127.0.0.1:9/nowhere' })
    const shop = await billing.organization()
    const customer = await shop.customer()
    await shop.charge(customer)
    await shop.charge(await shop.customer({ token: 'sim_charge_then_drop' }))
    const key = shop.projectKey
    await billing.server.api('/funnels/one', { key })
    await billing.server.api('/funnels/two', { key })
    await billing.server.api('/nowhere', { key })
  })
  after(() => billing.stop())

  const scrape = async () => {
    const response = await fetch(`${billing.server.adminUrl}/metrics`)
    assert.equal(response.status, 200)
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
    return response.text()
  }
  const value = (text: string, sample: string) => {
    const line = text.split('\n').find((one) => one.startsWith(`${sample} `))
    return line === undefined ? undefined : Number(line.split(' ').at(-1))
  }

  test('count requests by the route as it is declared', async () => {
    const text = await scrape()
    const counted = (labels: string) => value(text, `tundish_http_request_duration_seconds_count{${labels}}`)
    assert.equal(counted('interface="data",route="/public/v1/funnels/:id",method="GET",status="404"'), 2)
    assert.equal(counted('interface="data",route="/public/v1/*",method="GET",status="404"'), 1)
    assert.equal(
      counted('interface="billing",route="/:org_id/v1/payment/one_off_charge",method="POST",status="200"'),
      2,
    )
  })

  test('include provider calls, circuits, the pool and the work in the database', async () => {
    const text = await scrape()
    const calls = (labels: string) => value(text, `tundish_provider_call_duration_seconds_count{${labels}}`)
    assert.equal(calls('provider="simulator",call="charge",outcome="succeeded"'), 1)
    assert.equal(calls('provider="simulator",call="charge",outcome="unknown"'), 1)
    assert.equal(value(text, 'tundish_provider_circuit_open{provider="simulator",merchant_id="merchant-1"}'), 0)
    assert.equal(value(text, 'tundish_database_connections{state="max"}'), 12)
    assert.equal(value(text, 'tundish_database_up'), 1)
    assert.ok(value(text, 'tundish_charges_in_progress')! <= 1)
    assert.match(text, /^tundish_build_info\{version="[0-9.]+",node="v24[^"]*"\} 1$/m)
  })

  test('include the age of work and the lag of syncs', async () => {
    const { db } = billing
    const shop = await billing.organization('aging')
    const customer = await shop.customer()
    // The charge whose response was lost: its look-up may be overdue on a busy machine.
    await until('the earlier charge to be settled', async () => {
      const [row] = await db.query(`select count(*) as n from orders where status = 'processing'`)
      return row!.n === '0'
    })
    const order = await shop.charge(customer)
    await db.query(
      `update orders set status = 'processing', settled_at = null, created_at = db_clock() - interval '1 hour',
         next_look_at = db_clock() + interval '1 hour' where order_id = $1`,
      [order.body.order_id],
    )
    const { client, release } = await db.connect()
    try {
      await client.query('begin')
      await client.query('select begin_write($1)', [shop.projectId])
      await new Promise((resolve) => setTimeout(resolve, 300))
      const text = await scrape()
      const oldest = value(text, 'tundish_charges_oldest_seconds')!
      assert.ok(oldest >= 3600 && oldest < 3660, String(oldest))
      assert.ok(value(text, 'tundish_charges_in_progress')! >= 1)
      assert.equal(value(text, 'tundish_settling_overdue_seconds'), 0)
      const lag = value(text, 'tundish_sync_horizon_lag_seconds')!
      assert.ok(lag >= 0.3 && lag < 30, String(lag))
    } finally {
      release(true)
    }
  })

  test('name no tenant', async () => {
    const text = await scrape()
    assert.doesNotMatch(text, /shop-1|aging/)
  })

  /** Every name that stands in a query: what is followed by braces, brackets or nothing that makes it a function. */
  const metricsIn = (text: string) => new Set(text.match(/\b(?:tundish|nodejs|process)_[a-z0-9_]+/g) ?? [])

  for (const file of ['monitoring/grafana-dashboard.json', 'monitoring/alerts.yaml', 'docs/metrics.md']) {
    test(`${file} names only metrics that exist`, async () => {
      const text = await scrape()
      const known = new Set([...text.matchAll(/^(?:# TYPE )?([a-z0-9_]+)/gm)].map(([, name]) => name!))
      const named = [...metricsIn(read(file))]
      assert.ok(named.length >= 8)
      assert.deepEqual(
        named.filter((name) => !known.has(name)),
        [],
      )
    })
  }

  test('docs/metrics.md and the Grafana dashboard have each of our metrics', async () => {
    const text = await scrape()
    const ours = [...text.matchAll(/^# TYPE (tundish_[a-z0-9_]+)/gm)].map(([, name]) => name!)
    assert.ok(ours.length >= 18)
    for (const file of ['docs/metrics.md', 'monitoring/grafana-dashboard.json']) {
      const page = read(file)
      assert.deepEqual(
        ours.filter((name) => !page.includes(name)),
        [],
        file,
      )
    }
  })

  test('queries use only labels that exist', async () => {
    const text = await scrape()
    for (const file of ['monitoring/grafana-dashboard.json', 'monitoring/alerts.yaml']) {
      for (const [, name, label] of read(file).matchAll(/(tundish_[a-z_]+)\{([a-z_]+)[=!]/g)) {
        const samples = text.split('\n').filter((line) => line.startsWith(`${name}{`))
        assert.ok(
          samples.some((line) => line.includes(`${label}="`)),
          `${name} has no label ${label}`,
        )
      }
    }
  })

  test('the alert on uncertain charges counts both calls that move money: Stripe confirms what it has prepared', () => {
    const calls = [...read('monitoring/alerts.yaml').matchAll(/call_duration_seconds_count\{call=~"([^"]+)"/g)]
    assert.equal(calls.length, 2)
    for (const [, pattern] of calls) assert.deepEqual(pattern!.split('|').sort(), ['charge', 'confirm'])
  })

  test('every alert has its heading in the guide', () => {
    const alerts = [...read('monitoring/alerts.yaml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name!)
    const headings = [...read('docs/production.md').matchAll(/^### (Tundish\w+)$/gm)].map(([, name]) => name!)
    assert.deepEqual(headings.sort(), alerts.sort())
  })
})

describe('without its database', () => {
  test('the metrics of the process are still served', async () => {
    const database = await freshDatabase()
    const proxy = await openProxy(database.url)
    const server = await startTestServer({ DATABASE_URL: proxy.url }, { worker: false })
    try {
      assert.match(await (await fetch(`${server.adminUrl}/metrics`)).text(), /^tundish_charges_in_progress 0$/m)
      await proxy.cut()
      const response = await fetch(`${server.adminUrl}/metrics`)
      const text = await response.text()
      assert.equal(response.status, 200)
      assert.match(text, /^tundish_database_up 0$/m)
      assert.doesNotMatch(text, /^tundish_charges_in_progress [0-9]/m)
      assert.match(text, /^process_cpu_seconds_total /m)
    } finally {
      await server.stop()
      await proxy.cut()
      await database.drop()
    }
  })
})
