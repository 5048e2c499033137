// tundish import api from a service with the variations of the hosted one: what its lists, details and reports can show is copied.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ApiReport } from '../../../../src/data/ingest/api/compare.ts'
import { tundishAgain } from '../../../support/resident.ts'
import type { Json } from '../../../support/server.ts'
import {
  type Between,
  importApi,
  openBetween,
  openShop,
  openTarget,
  type Responding,
  recordsOf,
  rowsOf,
  type Shop,
} from './api-imports.ts'

let shop: Shop
let hosted: Between
before(async () => {
  shop = await openShop(12)
  hosted = await openBetween(shop.server, asHosted)
})
after(async () => {
  hosted.stop()
  await shop.stop()
})

const NOT_THERE = /^\/public\/v1\/(export|experiments|replies|profiles|sessions)$/

/** No export, no lists but those of the specification, small pages, filters ignored, and other forms of the same content. */
const asHosted: Responding = async ({ path, query }, pass) => {
  if (NOT_THERE.test(path)) return { status: 404, body: { message: 'Not found.' } }
  if (Number(query.get('limit') ?? 20) > 100) return { status: 400, body: { message: 'limit: at most 100' } }
  const kept = new URLSearchParams([...query].filter(([name]) => !name.startsWith('filter[')))
  const { status, body } = await pass({ query: kept })
  if (status !== 200) return { status, body }
  if (path.endsWith('/transaction_report')) {
    const transactions = body.transactions.map((row: Json) => ({ ...row, amount: String(row.amount), odd: 1 }))
    return { status, body: { data: { transactions }, status: 'ok', req_id: 'r-1' } }
  }
  if (/\/sessions\/[^/]+$/.test(path)) {
    const { attributes, replies: _, ...session } = body
    return { status, body: { ...session, ...attributes, device: 'phone' } }
  }
  if (/\/subscriptions\/[^/]+$/.test(path)) return { status, body: { data: body, status: 'ok', req_id: 'r-2' } }
  if (/\/(subscriptions|transactions)$/.test(path)) {
    for (const item of body.data) Object.assign(item, { price: String(item.price), note: null })
    delete body.pagination.cursor
  }
  return { status, body }
}

test('everything that such a service shows is copied, and what it does not show is named', async () => {
  const target = await openTarget(shop, 'hosted')
  const rejects: string[] = []
  const report = await importApi(shop.server, target, {
    from: `${hosted.url}/public/v1`,
    billing: { url: `${hosted.url}/shop`, key: shop.source.organizationKey },
    key: shop.source.key,
    onRejected: (line) => rejects.push(line),
  })
  assert.deepEqual([rejects, report.differences], [[], []])
  assert.deepEqual(
    report.missing.slice(0, 3).map((sentence) => sentence.split(':')[0]),
    [
      'The service has no list of profiles',
      'The service has no list of sessions',
      'The service cannot filter transactions by subscription',
    ],
  )
  const hidden: Record<string, string[]> = {
    // Neither list nor detail shows when an experiment was created, or which subscription a transaction paid for.
    experiment: ['created_at', 'updated_at', 'title', 'alias', 'enabled'],
    transaction: ['updated_at', 'subscription_id'],
  }
  const [there, here] = [await recordsOf(shop.server, shop.source), await recordsOf(shop.server, target)]
  const kinds = new Map<string, number>()
  for (const [key, record] of here) {
    const kind = key.split(' ')[0]!
    const expected = there.get(key)
    for (const name of hidden[kind] ?? []) {
      delete record[name]
      delete expected[name]
    }
    // The title of an experiment is that of the subscription's detail.
    if (kind === 'subscription') delete expected.experiment
    if (kind === 'subscription') delete record.experiment
    assert.deepEqual(record, expected, key)
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  }
  for (const kind of ['subscription', 'transaction', 'product']) {
    const all = [...there.keys()].filter((key) => key.startsWith(`${kind} `)).length
    assert.equal(kinds.get(kind), all, kind)
  }
  assert.ok(kinds.get('profile')! > 0 && kinds.get('session')! > 0)
  const rows = await rowsOf(shop.server, 'shop', shop.source.organizationKey)
  assert.deepEqual(await rowsOf(shop.server, target.organizationId, target.organizationKey), rows)
  // Again: nothing changes.
  const again = await importApi(shop.server, target, { from: `${hosted.url}/public/v1`, key: shop.source.key })
  assert.deepEqual(again.differences, [])
})

test('an import that is broken off at several moments continues, and counts nothing twice', async () => {
  const target = await openTarget(shop, 'broken')
  let left = Number.POSITIVE_INFINITY
  const breaking = await openBetween(shop.server, async (request, pass, response) => {
    left -= 1
    return left < 0 ? { status: 401, body: { message: 'No.' } } : asHosted(request, pass, response)
  })
  const given = {
    from: `${breaking.url}/public/v1`,
    billing: { url: `${breaking.url}/shop`, key: shop.source.organizationKey },
    key: shop.source.key,
  }
  try {
    let report: ApiReport | undefined
    let broken = 0
    for (let moment = 1; !report; moment += 6) {
      left = moment
      report = await importApi(shop.server, target, given).catch((error) => {
        assert.match(error.message, /rejects the key \(401\)/)
        broken += 1
        return undefined
      })
    }
    assert.ok(broken >= 4)
    assert.deepEqual([report.differences, report.repeated], [[], 0])
    const [there, here] = [
      await recordsOf(shop.server, shop.source, ['experiment']),
      await recordsOf(shop.server, target, ['experiment']),
    ]
    const ofSubscriptions = (records: typeof here) => [...records].filter(([key]) => key.startsWith('subscription '))
    assert.deepEqual(new Map(ofSubscriptions(here)), new Map(ofSubscriptions(there)))
  } finally {
    breaking.stop()
  }
})

const seconds = (time: string) => Math.floor(Date.parse(time) / 1000)
const only = (item: Json, ...names: string[]) => Object.fromEntries(names.map((name) => [name, item[name]]))

/** Lists that show less than details, flat where those nest, times in details as seconds, and names with the service's own. */
const asPublished: Responding = async ({ path, query }, pass) => {
  if (/^\/public\/v1\/(export|experiments|replies)$/.test(path)) return { status: 404, body: { message: 'Not found.' } }
  const kept = new URLSearchParams([...query].filter(([name]) => !name.startsWith('filter[updated_at')))
  const { status, body } = await pass({ query: kept })
  if (status !== 200) return { status, body }
  if (path.endsWith('/transaction_report')) {
    const renamed = (row: Json) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name.replace('_client_svc_', '_client_old_'), value]),
      )
    return { status, body: { data: { transactions: body.transactions.map(renamed) }, status: 'ok', req_id: 'r-1' } }
  }
  if (path.endsWith('/profiles'))
    for (const [n, item] of body.data.entries())
      body.data[n] = only(item, 'id', 'created_at', 'preview', 'email', 'country', 'funnel_id')
  if (path.endsWith('/sessions'))
    for (const [n, item] of body.data.entries()) {
      const { city, country, ip, postal_code: postal } = item.attributes
      const plain = only(item, 'id', 'created_at', 'funnel_id', 'profile_id', 'user_agent', 'funnel_version', 'origin')
      body.data[n] = { ...plain, city, country, ip, postal }
    }
  if (path.endsWith('/products')) for (const item of body.data) delete item.prices
  if (/\/profiles\/[^/]+$/.test(path)) {
    const created_at = seconds(body.created_at)
    return { status, body: { ...only(body, 'id', 'funnel_id', 'preview', 'email', 'integrations'), created_at } }
  }
  if (/\/sessions\/[^/]+$/.test(path)) {
    const { tracking_cookies: _, updated_at: __, funnel_version: ___, ...session } = body
    return { status, body: { ...session, created_at: seconds(body.created_at) } }
  }
  return { status, body }
}

test('short lists are completed by details, and fields may have names of the service', async () => {
  const target = await openTarget(shop, 'published')
  const published = await openBetween(shop.server, asPublished)
  const report = await importApi(shop.server, target, {
    from: `${published.url}/public/v1`,
    billing: { url: `${published.url}/shop`, key: shop.source.organizationKey },
    key: shop.source.key,
  }).finally(() => published.stop())
  assert.deepEqual(report.differences, [])
  const hidden = ['updated_at', 'phone', 'locale', 'anonymized_at', 'tracking_cookies']
  const [there, here] = [
    await recordsOf(shop.server, shop.source, hidden),
    await recordsOf(shop.server, target, hidden),
  ]
  const shown = new Set(['funnel', 'product', 'profile', 'session', 'session_replies'])
  const keys = [...there.keys()].filter((key) => shown.has(key.split(' ')[0]!))
  assert.ok(keys.length > 50)
  for (const key of keys) assert.deepEqual(here.get(key), there.get(key), key)
  const rows = await rowsOf(shop.server, 'shop', shop.source.organizationKey)
  assert.deepEqual(await rowsOf(shop.server, target.organizationId, target.organizationKey), rows)
})

test('the headers of the keys may have names of the service', async () => {
  const target = await openTarget(shop, 'headers')
  const service = await openBetween(shop.server, async ({ path }, pass) => {
    const { status, body } = await pass()
    if (status === 401) return { status, body }
    if (path.endsWith('/transaction_report')) return { status: 403, body: { message: 'Both keys came.' } }
    return { status, body: { data: [], pagination: { has_more: false, total: 0 } } }
  })
  const { stderr } = await tundishAgain(
    [
      ...['import', 'api', '--project', target.id, '--from', `${service.url}/public/v1`],
      ...['--key-file', shop.keyFile, '--key-header', 'Old-Secret', '--billing-from', `${service.url}/shop`],
      ...['--billing-key-file', shop.billingKeyFile, '--billing-key-header', 'old-secret-key'],
    ],
    shop.server.env,
  ).finally(() => service.stop())
  assert.match(stderr, /Both keys came\./)
})

test('a service that asks for a pause: the command says which, why and how long', async () => {
  const target = await openTarget(shop, 'paused')
  let asked = 0
  const pausing = await openBetween(shop.server, async (request, pass) => {
    if (!request.path.endsWith('/products')) return asHosted(request, pass, undefined as never)
    asked += 1
    return asked > 1
      ? asHosted(request, pass, undefined as never)
      : { status: 503, body: { message: 'Later.' }, headers: { 'retry-after': '2' } }
  })
  try {
    const url = `${pausing.url}/public/v1`
    const args = ['import', 'api', '--from', url, '--key-file', shop.keyFile, '--project', target.id, '--dry-run']
    const { code, stderr } = await tundishAgain(args, shop.server.env)
    assert.equal(code, 0, stderr)
    assert.match(stderr, /\/products could not be read \(it returned status 503\): attempt 2 of 8 follows in 2 s\.\n/)
  } finally {
    pausing.stop()
  }
})

test('an export that is unavailable ends the import; one that is an error page is no export', async () => {
  const target = await openTarget(shop, 'away')
  let response: { status: number; body: unknown } = { status: 503, body: { message: 'Starting.' } }
  const away = await openBetween(shop.server, async (request, pass) =>
    request.path === '/public/v1/export' ? response : asHosted(request, pass, undefined as never),
  )
  try {
    const given = { from: `${away.url}/public/v1`, key: shop.source.key }
    await assert.rejects(
      importApi(shop.server, target, given),
      /\/export could not be read, 8 times in a row \(it returned status 503\)\. Run the command again/,
    )
    response = { status: 200, body: '<html>' }
    assert.deepEqual((await importApi(shop.server, target, given)).differences, [])
  } finally {
    away.stop()
  }
})
