// The history of a person: newest first, without gaps, and what a charge of theirs leads to.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startDashboard } from '../../support/dashboard.ts'
import { BASICS, insert } from '../../support/data.ts'
import { column } from '../../support/rows.ts'
import { ok } from '../../support/server.ts'
import { rowsOf } from './page-numbers.ts'

const ORDER = '01900000-0000-7000-8000-000000000001'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('write')

const see = (path: string, form?: Record<string, string>) => dashboard.visit(path, { cookie, ...(form && { form }) })

/** The moments of the history as texts. */
function momentsOf(html: string): string[] {
  const history = /<h2>History<\/h2>.*?<\/section>/s.exec(html)?.[0] ?? ''
  return [...history.matchAll(/<li[^>]*>(.*?)<\/li>/gs)].map(([, one]) =>
    one!
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  )
}

test('sessions, subscriptions, payments and charges of a person are one history, the newest first', async () => {
  const shop = await dashboard.server.project()
  const at = (created_at: string) => ({ created_at, updated_at: created_at })
  await insert(dashboard.server.db, shop, {
    ...BASICS,
    sessions: [{ id: 'session', ...at('2026-01-01T10:00:00Z'), funnel_id: 'funnel', country: 'BR' }],
    subscriptions: [
      {
        id: 'sub',
        status: 'expired',
        ...at('2026-01-01T11:00:00Z'),
        cancelled_at: '2026-02-10T00:00:00Z',
        period_ends_at: '2026-03-01T11:00:00Z',
      },
    ],
    transactions: ['2026-01-01T11:01:00Z', '2026-02-01T11:00:00Z'].map((created_at, n) => ({
      ...at(created_at),
      id: `trn_${n}`,
      subscription_id: 'sub',
    })),
    customers: [{ external_id: 'ada', profile_id: 'profile' }],
    orders: [
      { order_id: ORDER, external_id: 'ada', status: 'cancelled', amount: '5', created_at: '2026-04-01T00:00:00Z' },
    ],
  })
  const { text } = await see(`/people/profile?project=${shop.id}`)
  assert.deepEqual(momentsOf(text), [
    '1 Apr 2026, 00:00 Custom charge $5.00 cancelled',
    '1 Mar 2026, 11:00 Subscription ended Monthly plan',
    '10 Feb 2026, 00:00 Subscription cancelled Monthly plan',
    '1 Feb 2026, 11:00 Paid $19.99 Monthly plan',
    '1 Jan 2026, 11:01 Paid $19.99 Monthly plan',
    '1 Jan 2026, 11:00 Subscription created Monthly plan',
    '1 Jan 2026, 10:00 Session began Sleep quiz, Brazil',
  ])
  assert.match(text, /\$19\.99\s*<span class="quiet per">\/ month</)
  assert.match(text, /<dt>Paid<\/dt><dd>\$39\.98<\/dd>/)
})

test('what a person paid and got back is without test data', async () => {
  const { db, ...server } = dashboard.server
  const shop = await server.project()
  const created_at = '2026-04-01T00:00:00Z'
  await insert(db, shop, {
    ...BASICS,
    transactions: [
      { id: 'real', price: 3000, created_at },
      { id: 'test', price: 500, sandbox: true, created_at },
    ],
    customers: [{ external_id: 'ada', profile_id: 'profile' }],
  })
  await db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
       amount, currency_code, status, psp, psp_transaction_type)
     select $1, 'ada', n = 10, $2, gen_random_uuid(), gen_random_uuid(), $2::timestamptz + n * interval '1 second', n, 'USD',
       'refunded', 'simulator', 'refund' from unnest('{5,10}'::int[]) n`,
    [shop.organizationId, created_at],
  )
  const { text } = await see(`/people/profile?project=${shop.id}`)
  assert.match(text, /<dt>Paid<\/dt><dd>\$20\.00 <span class="quiet">\(\$30\.00 paid, \$10\.00 returned\)/)
  assert.ok(momentsOf(text).includes('1 Apr 2026, 00:00 Refund $5.00 sandbox'), momentsOf(text).join('\n'))
})

test('a history begins where the records of each kind are complete', async () => {
  const shop = await dashboard.server.project()
  const day = (n: number) => new Date(Date.UTC(2025, 0, 1 + n)).toISOString()
  const transactions = Array.from({ length: 120 }, (_, n) => ({
    id: `trn_${n}`,
    created_at: day(n),
    updated_at: day(n),
  }))
  const sessions = [{ id: 'session', created_at: day(10), updated_at: day(10) }]
  await insert(dashboard.server.db, shop, { ...BASICS, sessions, transactions })
  const { text } = await see(`/people/profile?project=${shop.id}`)
  const moments = momentsOf(text)
  assert.equal(moments.length, 100)
  assert.match(text, /<summary>90 earlier<\/summary>/)
  assert.match(moments.at(-1)!, /^21 Jan 2025, 00:00 Paid/)
  assert.match(
    text,
    /Since <time datetime="2025-01-21T[^>]*>21 Jan 2025, 00:00<\/time>: there are too many older records/,
  )
})

test('a refund that failed, at once or after it had succeeded, is not called a refund', async () => {
  const shop = await dashboard.server.project()
  const { db } = dashboard.server
  await insert(db, shop, { ...BASICS, customers: [{ external_id: 'ida', profile_id: 'profile' }] })
  await db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, amount,
       currency_code, status, psp, psp_transaction_type, psp_transaction_id)
     select $1, 'ida', true, db_clock(), '${ORDER}', gen_random_uuid(), '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 day', 7,
       'USD', given.status, 'simulator', 'refund', psp_id
     from (values (1, 'failed', 're_1'), (2, 'refunded', 're_2'), (3, 'failed', 're_2')) given (n, status, psp_id)`,
    [shop.organizationId],
  )
  const { text } = await see(`/people/profile?project=${shop.id}`)
  const refunds = momentsOf(text).filter((one) => one.includes('Refund'))
  assert.deepEqual(refunds, [
    '4 Jan 2026, 00:00 Refund failed $7.00',
    '3 Jan 2026, 00:00 Refund $7.00',
    '2 Jan 2026, 00:00 Refund failed $7.00',
  ])
  assert.deepEqual(
    rowsOf(text, 'money-back').map(([type]) => type),
    ['Refund failed', 'Refund', 'Refund failed'],
  )
})

test('the form of a charge keeps the chosen project, and a refunded charge says so', async () => {
  const { server } = dashboard
  const shop = await server.project()
  await server.project()
  await insert(server.db, shop, {
    ...BASICS,
    customers: [{ external_id: 'ada', profile_id: 'profile' }],
    orders: [{ order_id: ORDER, external_id: 'ada', amount: '5', amount_refunded: '2', psp_merchant_id: 'gone' }],
  })
  const path = `/charges/${shop.organizationId}/${ORDER}`
  const { text } = await see(`${path}?project=${shop.id}`)
  assert.ok(text.includes(`action="${path}/refund?project=${shop.id}"`))
  assert.match(text, /class="lead">\$5\.00 <[^>]*>succeeded<\/span> <[^>]*>partially refunded</)
  const form = { amount: ' 1 ', idempotency_key: 'key', soft_refund: '1' }
  for (const [amount, sentence] of [
    ['1,50', /role="alert">“Amount in USD” must be [^<]*1,50/],
    ['5', /role="alert">“Amount in USD” must be at most 3/],
  ] as const) {
    const headers = { referer: `${dashboard.origin}${path}?project=${shop.id}` }
    const wrong = { ...form, amount, reason: 'typed' }
    const refused = await dashboard.visit(`${path}/refund?project=${shop.id}`, { cookie, form: wrong, headers })
    assert.match(refused.text, sentence)
    assert.match(refused.text, /<details open.*name="reason" type="text" value="typed"/s)
  }
  const { status, headers } = await see(`${path}/refund?project=${shop.id}`, form)
  assert.deepEqual([status, headers.get('location')], [303, `${path}?project=${shop.id}&done=refunded`])
})

test('a refused page or form keeps the navigation and says why; the search leads to the only result', async () => {
  const shop = await dashboard.server.project()
  await insert(dashboard.server.db, shop, { ...BASICS, customers: [{ external_id: 'eve', profile_id: 'profile' }] })
  const unknown = await see(`/people/nobody?project=${shop.id}`)
  assert.equal(unknown.status, 404)
  assert.match(unknown.text, /role="alert">There is no profile &quot;nobody&quot;\./)
  const erase = `/people/profile/erase?project=${shop.id}`
  const refused = await see(erase, { confirm: 'wrong' })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /role="alert">To confirm, type the profile ID exactly\. Nothing was erased\./)
  for (const { text } of [unknown, refused]) assert.match(text, /<header class="side">.*aria-current="page">People</s)
  const { status, headers } = await see('/people?q=eve')
  assert.deepEqual([status, headers.get('location')], [303, `/people/profile?project=${shop.id}`])
  // As CSV the results are a table, also if there is only one person.
  assert.equal((await see('/people?q=eve&csv=found')).status, 200)
  assert.equal(rowsOf((await see(`/people/profile?project=${shop.id}`)).text, 'customers').length, 1)
})

test('a path that does not exist is a page for a browser, and an error of the API for a program', async () => {
  const at = (path: string, headers: Record<string, string>) => dashboard.visit(path, { cookie, headers })
  const page = await at('/nowhere', { accept: 'text/html,*/*;q=0.8' })
  assert.equal(page.status, 404)
  assert.match(page.text, /<h1>Not found<\/h1>.*<p class="failed" role="alert">This page does not exist\./s)
  assert.match(page.text, /<header class="side">.*<nav aria-label="Pages">/s)
  const signedOut = await dashboard.visit('/nowhere', { headers: { accept: 'text/html' } })
  assert.doesNotMatch(signedOut.text, /<header class="side">/)
  assert.match(page.headers.get('content-security-policy')!, /default-src 'none'/)
  for (const [path, accept] of [
    ['/nowhere', 'application/json'],
    ['/admin/nowhere', 'text/html'],
  ] as const) {
    const { status, text } = await at(path, { accept })
    assert.deepEqual([status, JSON.parse(text)], [404, { message: 'This path does not exist.' }])
  }
})

test('the list of people is filtered by whether they have an address, on the page and in the API', async () => {
  const shop = await dashboard.server.project()
  const profiles = [{ id: 'ada', email: 'ada@example.com' }, { id: 'visitor' }]
  await insert(dashboard.server.db, shop, { profiles })
  for (const [anonymous, there, absent] of [
    ['true', 'visitor', 'ada@example.com'],
    ['false', 'ada@example.com', 'visitor'],
  ] as const) {
    const { text: html } = await see(`/people?project=${shop.id}&anonymous=${anonymous}`)
    assert.ok(html.includes(`>${there}</a>`) && !html.includes(`>${absent}</a>`), anonymous)
    const { body } = await dashboard.server.admin(`/projects/${shop.id}/profiles?anonymous=${anonymous}`)
    assert.deepEqual(column(body.data, 'id'), [anonymous === 'true' ? 'visitor' : 'ada'])
  }
  assert.equal((await dashboard.server.admin(`/projects/${shop.id}/profiles?anonymous=x`)).status, 400)
})

test('the list of people begins with those who have an address; pages of every size have each person once, in that order', async () => {
  const shop = await dashboard.server.project()
  // The newest first within both; the default of created_at is the same for all.
  const profiles = ['a', 'b', 'c', 'd', 'e'].flatMap((id) => [
    { id: `${id}1`, email: `${id}@example.com` },
    { id: `${id}2` },
  ])
  await insert(dashboard.server.db, shop, { profiles })
  const ordered = ['e1', 'd1', 'c1', 'b1', 'a1', 'e2', 'd2', 'c2', 'b2', 'a2']
  const list = (query: string) => dashboard.server.admin(`/projects/${shop.id}/profiles?${query}`)
  const walk = async (query: string) => {
    const ids: string[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const body = await ok(list(`${query}${cursor && `&cursor=${cursor}`}`))
      ids.push(...body.data.map(({ id }: { id: string }) => id))
      assert.equal(body.pagination.has_more, body.pagination.next_cursor !== undefined)
      cursor = body.pagination.next_cursor
    }
    return ids
  }
  for (let limit = 1; limit <= 11; limit += 1)
    assert.deepEqual(await walk(`limit=${limit}`), ordered, `${limit} a page`)
  assert.deepEqual(await walk('limit=2&anonymous=true'), ordered.slice(5))
  assert.deepEqual(await walk('limit=2&anonymous=false'), ordered.slice(0, 5))
  // The same place in another part is another place.
  const { body } = await list('limit=6')
  for (const other of ['anonymous=true', 'anonymous=false', 'country=DE'])
    assert.equal((await list(`limit=6&${other}&cursor=${body.pagination.next_cursor}`)).status, 400, other)
  const { text } = await see(`/people?project=${shop.id}`)
  const shown = [...text.matchAll(/<a class="cut" href="\/people\/([a-e][12])/g)].map(([, id]) => id)
  assert.deepEqual(shown, ordered)
})
