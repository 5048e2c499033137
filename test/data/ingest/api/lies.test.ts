// tundish import api from a service that lies: differences are named in sentences, and nothing is written by halves.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Refusal } from '../../../../src/lib/errors.ts'
import type { Json } from '../../../support/server.ts'
import { importApi, openBetween, openShop, openTarget, type Responding } from './api-imports.ts'

const shop = await openShop(0)
after(() => shop.stop())

const T = '2026-01-02T03:04:05.000006Z'
const product = (id: string, more: object = {}) => ({ id, name: 'Monthly', status: 'active', created_at: T, ...more })
const subscription = (id: string, more: object = {}) => ({
  id,
  status: 'active',
  renews: true,
  created_at: T,
  price: 1999,
  currency: 'USD',
  billing_interval: 'month',
  billing_interval_count: 1,
  profile: { id: 'person' },
  product: { id: 'plan' },
  ...more,
})
const page = (data: unknown[], pagination: object = {}) => ({
  status: 200,
  body: { data, pagination: { has_more: false, total: data.length, ...pagination } },
})
const missing = { status: 404, body: { message: 'Not found.' } }

/** Lists by path, and records by path; everything else is not there. */
type Service = Record<string, (query: URLSearchParams, body: Json) => ReturnType<Responding> | Json>

const HONEST: Service = {
  '/funnels': () => page([]),
  '/products': () => page([product('plan')]),
  '/subscriptions': () => page([]),
  '/transactions': () => page([]),
  '/profiles/person': () => ({ status: 200, body: { id: 'person', created_at: T } }),
}

let made = 0

async function importFrom(service: Service, { billing = false } = {}) {
  const target = await openTarget(shop, `lies-${++made}`)
  const rejects: string[] = []
  const between = await openBetween(shop.server, async ({ path, query, body }, _pass, response) => {
    const answer = { ...HONEST, ...service }[path]
    return answer ? await (answer as (...given: unknown[]) => never)(query, body, response) : missing
  })
  const given = {
    from: between.url,
    key: 'any',
    onRejected: (line: string) => rejects.push(line),
    ...(billing && { billing: { url: between.url, key: 'any' } }),
  }
  try {
    const report = await importApi(shop.server, target, given)
    return { target, rejects, report }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { target, rejects, refusal: error.message.replaceAll(between.url, 'URL') }
  } finally {
    between.stop()
  }
}

const ids = async (target: { get(path: string): Promise<Json> }, list: string) =>
  (await target.get(list)).body.data.map(({ id }: { id: string }) => id).sort()

describe('a list', () => {
  test('that repeats a record and skips another: both are named', async () => {
    const { target, report } = await importFrom({
      '/products': (query) =>
        query.get('cursor') === null
          ? page([product('plan'), product('b')], { has_more: true, next_cursor: 'two', total: 4 })
          : page([product('b', { name: 'Other' }), product('c')], { total: 4 }),
    })
    assert.deepEqual(await ids(target, '/products'), ['b', 'c', 'plan'])
    assert.deepEqual(report!.differences, [
      'products: the service says that it has 4, and 3 were read.',
      '1 records came more than once (product b …): each is stored once, as it came last.',
    ])
    assert.equal((await target.get('/products/b')).body.name, 'Other')
  })

  test('with values of wrong types: each is named, the others are stored', async () => {
    const { target, rejects, report } = await importFrom({
      '/products': () => page([product('plan'), product('bad', { name: 7 }), 'text', { name: 'without id' }]),
      '/subscriptions': () =>
        page([
          subscription('good', { price: '1999' }),
          subscription('words', { price: 'much' }),
          subscription('major', { price: '19.99' }),
          subscription('nobody', { profile: { id: 'nobody' } }),
          subscription('elsewhere', { funnel: { id: 'gone' } }),
        ]),
    })
    assert.deepEqual(await ids(target, '/products'), ['plan'])
    assert.deepEqual(await ids(target, '/subscriptions'), ['elsewhere', 'good'])
    const named = (id: string) => rejects.find((line) => line.startsWith(`${id} `)) ?? ''
    assert.match(named('bad'), /product\.name must be a string/)
    assert.match(named('words'), /subscription\.price must be a whole number/)
    assert.match(named('major'), /subscription\.price must be a whole number/)
    assert.match(named('nobody'), /profile/)
    assert.match(named('elsewhere'), /funnel_id was left out: the service does not have "gone"/)
    assert.ok(rejects.includes('products has an item without an id'))
    assert.ok(rejects.includes('products has 1 items that are no objects'))
    assert.equal(report!.rejected, rejects.length)
    assert.ok(report!.differences.some((line) => line.startsWith('subscriptions USD: 5 at the service, 2 here')))
  })

  const REFUSED: Record<string, [Service, RegExp]> = {
    'whose cursor comes again': [
      { '/products': () => page([product('plan')], { has_more: true, next_cursor: 'same' }) },
      /^URL\/products returns a cursor a second time: the list has no end\.$/,
    ],
    'with more items and no cursor': [
      { '/products': () => page([], { has_more: true }) },
      /^URL\/products says that more items follow, and returns no cursor\.$/,
    ],
    'of empty pages': [
      { '/products': (query) => page([], { has_more: true, next_cursor: `${query.get('cursor')}x` }) },
      /^URL\/products sent 10 empty pages and says that more follow\.$/,
    ],
    'that is none': [
      { '/products': () => ({ status: 200, body: { data: 7 } }) },
      /^URL\/products did not return a list/,
    ],
    'that is a page for people': [
      { '/products': () => ({ status: 200, body: '<html>' }) },
      /^URL\/products could not be read, 8 times in a row \(it returned a body that is not complete JSON\)/,
    ],
    'that is a page of HTML by its header': [
      { '/products': () => ({ status: 200, body: '<html>', headers: { 'content-type': 'text/html; charset=utf-8' } }) },
      /8 times in a row \(it returned a body that is not complete JSON, but an HTML page: check the address\)/,
    ],
    'behind a redirect': [
      { '/products': () => ({ status: 302, body: '', headers: { location: 'http://example.com' } }) },
      /^URL\/products redirects to another address/,
    ],
    'with a body without an end': [
      { '/products': ((_query: unknown, _body: unknown, response: Json) => void endless(response)) as never },
      /^URL\/products sends more than 64 MiB: that is no page of records\.$/,
    ],
  }
  for (const [name, [service, sentence]] of Object.entries(REFUSED))
    test(`${name}: one sentence, and what was read before is whole`, async () => {
      const { refusal, target } = await importFrom(service)
      assert.match(refusal ?? '', sentence)
      assert.ok((await ids(target, '/products')).length <= 1)
    })

  test('that cuts bodies, asks to wait, and fails for a while, is read to its end', async () => {
    const troubles: Json[] = [
      { status: 429, body: '', headers: { 'retry-after': '1' } },
      { status: 500, body: '' },
      { status: 200, body: '{"data":[{"id":"pl' },
      { status: 503, body: '', headers: { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' } },
    ]
    const { target, report } = await importFrom({
      '/products': () => troubles.shift() ?? page([product('plan')]),
    })
    assert.deepEqual([await ids(target, '/products'), report!.differences], [['plan'], []])
  })
})

describe('a report', () => {
  const row = (n: number, at: string, more: object = {}) => ({
    order_id: `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`,
    trx_id: `01900000-0000-7000-9000-${String(made * 10_000 + n).padStart(12, '0')}`,
    amount: '10.50',
    currency_code: 'USD',
    status: 'succeeded',
    psp: 'x',
    psp_transaction_type: 'sale',
    trx_created_at: at,
    ...more,
  })
  const many = (at: (n: number) => string) => Array.from({ length: 500 }, (_, n) => row(n, at(n)))
  const second = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString()
  const reportOf = (rows: (after: string) => Json[]): Service => ({
    '/v1/transaction_report': (_query, { last_transaction_date }) => ({
      status: 200,
      body: { transactions: rows(last_transaction_date) },
    }),
  })

  test('whose page always is the same ends in a sentence', async () => {
    const rows = many(second)
    const { refusal } = await importFrom(
      reportOf(() => rows),
      { billing: true },
    )
    assert.match(refusal ?? '', /repeats the rows of 2026-01-01T00:08:19\.000Z and does not go on/)
  })

  test('in another order ends in a sentence, and writes nothing', async () => {
    const { refusal, target } = await importFrom(
      reportOf(() => many((n) => second(500 - n))),
      { billing: true },
    )
    assert.match(refusal ?? '', /is not in the order of trx_created_at/)
    const stored = await shop.server.db.query('select 1 from report_transactions where organization_id = $1', [
      target.organizationId,
    ])
    assert.deepEqual(stored, [])
  })

  test('with bad rows: they are named, the others are stored with their sum', async () => {
    const rows: Json[] = [
      row(1, second(1)),
      row(2, second(2), { amount: 'much' }),
      row(3, second(3), { trx_id: 'x' }),
      { amount: 1 },
    ]
    const { rejects, report } = await importFrom(
      reportOf((after) => rows.filter((one) => one.trx_created_at === undefined || one.trx_created_at > after)),
      { billing: true },
    )
    assert.equal(rejects.length, 3)
    assert.deepEqual(
      report!.figures
        .filter(({ kind }) => kind.startsWith('payments'))
        .map(({ here_count, here_sum }) => [here_count, here_sum]),
      [[1, '10.50']],
    )
  })
})

/** Sends pieces of a list until the reader leaves. */
function endless(response: Json): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  const piece = `${' '.repeat(1 << 20)}`
  const send = () => {
    while (!response.destroyed && response.write(piece));
    if (!response.destroyed) response.once('drain', send)
  }
  response.write('{"data":[')
  send()
}
