// The page Finance shows what its operation and its command have; its CSV has every row; the button closes the month.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { FULL_ACCESS } from '../../../src/core/tenants/access.ts'
import { openCall } from '../../../src/operator/dashboard/call.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { addRow } from '../../support/data.ts'
import type { Json } from '../../support/server.ts'
import { setDatabaseClock } from '../../support/time.ts'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const { server, operator, visit, signIn } = dashboard
const { db } = server
const [project] = await db.query('select id, organization_id from projects limit 1')
const [projectId, organizationId] = [project!.id!, project!.organization_id!]
const cookie = await signIn((await operator('write')).key)

const owner = { organization_id: organizationId, project_id: projectId }
await addRow(db, 'customers', { ...owner, external_id: 'ada', email: 'ada@example.com' })
// 30 payments in two currencies, of which one has no rate, and a refund.
await db.query(
  `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, psp_date,
     amount, amount_usd, currency_code, status, psp, psp_merchant_id, psp_transaction_type)
   select $1, 'ada', true, db_clock(), gen_random_uuid(), gen_random_uuid(), at, at, 10.5 + n,
     case when n % 3 > 0 then 10 + n end, case when n % 3 > 0 then 'USD' else 'EUR' end,
     case when n = 7 then 'refunded' else 'succeeded' end, 'elsewhere', 'main', case when n = 7 then 'refund' else 'sale' end
   from generate_series(1, 30) n, lateral (select timestamptz '2025-10-01T12:00:00Z' + n * interval '1 day' as at) t`,
  [organizationId],
)
const see = async (path: string) => {
  const { status, text, headers } = await visit(path, { cookie })
  assert.equal(status, 200, text)
  return { text, headers }
}
const get = async (path: string): Promise<Json> =>
  (await server.admin(`/organizations/${organizationId}/finance${path}`)).body
const MONTH = `/finance?project=${projectId}&month=2025-10`

test('the sums are those of the operation, and what has no rate is named with how much', async () => {
  const { text } = await see(MONTH)
  const { usd, currencies } = await get('?month=2025-10')
  for (const amount of [usd.net, usd.gross]) assert.ok(text.includes(`$${amount.toFixed(2)}`), String(amount))
  const euro = currencies.find((one: Json) => one.currency_code === 'EUR')
  assert.match(
    text,
    new RegExp(
      `Without a value in USD, and so not in the figures above: €${euro.net_without_usd.toFixed(2)} \\(${euro.without_usd} movements\\)`,
    ),
  )
  // The value of a payment in US dollars is stored with it: rates that are loaded later give it none.
  assert.match(text, />Import them with their value<\/a>, or <a [^>]*>load exchange rates<\/a> before you charge/)
  assert.match(text, /From finance to the dashboard/)
})

test('amounts of fifteen digits and their sums have every digit, on the page and in each CSV', async () => {
  await db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, psp_date,
       amount, currency_code, status, psp, psp_merchant_id, psp_transaction_type)
     select $1, 'ada', true, db_clock(), gen_random_uuid(), gen_random_uuid(), at, at, amount, currency, 'succeeded', 'elsewhere', 'main', 'sale'
     from (values (1, 999999999999999.99, 'USD'), (2, 999999999999999.98, 'USD'), (3, 9007199254740993, 'VND')) v (n, amount, currency),
       lateral (select timestamptz '2019-09-11T12:00:00Z' + n * interval '1 minute' as at) t`,
    [organizationId],
  )
  const page = `/finance?project=${projectId}&month=2019-09`
  const { text } = await see(page)
  for (const shown of ['$999,999,999,999,999.98', '$1,999,999,999,999,999.97', '9,007,199,254,740,993'])
    assert.ok(text.includes(shown), shown)
  assert.doesNotMatch(text, /000,000,000,000|740,992/)
  for (const [path, line] of [
    [`${page}&csv=accounts`, /^elsewhere main,USD,1999999999999999\.97,1999999999999999\.97,/m],
    [`${page}&csv=rows`, /,999999999999999\.98,USD,sale,999999999999999\.98,/],
    [`${page}&csv=tie-out`, /^Finance,1999999999999999\.97,USD 1999999999999999\.97; VND 9007199254740993,/m],
    [`${page}&csv=tie-out`, /^not_computed,-1999999999999999\.97,USD -1999999999999999\.97; /m],
    [`${page}&csv=tie-out-currencies`, /^USD,-1999999999999999\.97,0\.00,1999999999999999\.97/m],
    [`/finance/differences?project=${projectId}&month=2019-09&csv=differences`, /,-1999999999999999\.97,USD,/],
  ] as const)
    assert.match((await see(path)).text, line, path)
})

test('the CSV of the differences has all of more than a thousand, the largest first', async () => {
  await addRow(db, 'profiles', { project_id: projectId, id: 'of_many' })
  await db.query(
    `insert into transactions (project_id, id, created_at, updated_at, profile_id, currency, price, price_usd)
     select $1, 'many_' || n, timestamptz '2018-10-02T12:00:00Z' + n * interval '1 second', db_clock(), 'of_many', 'USD', 100 * n, 100 * n
     from generate_series(1, 1002) n`,
    [projectId],
  )
  const name = 'transaction_without_payment'
  const path = `/finance/differences?project=${projectId}&month=2018-10&name=${name}&csv=differences`
  const lines = (await see(path)).text.trim().split('\r\n').slice(1)
  assert.deepEqual(
    lines.map((line) => line.split(',')[1]),
    Array.from({ length: 1002 }, (_, n) => `${1002 - n}.00`),
  )
})

test('Payments names the page with the imported payments of customers without a profile', async () => {
  const days = `project=${projectId}&from=2025-10-01&to=2025-10-31`
  const { text } = await see(`/payments?${days}`)
  assert.match(text, /Payments of customers without a profile are in Finance/)
  assert.match((await see(MONTH)).text, /href="[^"]*q=ada[^"]*">ada</)
  assert.doesNotMatch((await see(`/charges?${days}`)).text, />ada</)
})

test('fees are shown with how many movements they lack', async () => {
  const { text } = await see(MONTH)
  assert.match(text, /<dt>Fees<\/dt><dd><strong>–<\/strong> <span class="quiet">none is known</)
  await db.query(
    `insert into provider_fees (organization_id, psp, psp_merchant_id, transaction_id, move, entry_id, fee, currency_code, entered_at, stored_at)
     select $1, 'elsewhere', 'main', 'ch_1', 'sale', 'txn_1', 0.42, 'USD', db_clock(), db_clock()`,
    [organizationId],
  )
  await db.query(
    `update report_transactions set psp_transaction_id = 'ch_1'
     where trx_id = (select trx_id from report_transactions where organization_id = $1 and psp_transaction_type = 'sale'
       and amount_usd is not null order by trx_created_at desc limit 1)`,
    [organizationId],
  )
  assert.match((await see(MONTH)).text, /−\$0\.42<\/strong> <span class="quiet">not known of 29 movements</)
})

test('an account leads to its movements, and from there to all', async () => {
  const { text } = await see(MONTH)
  const link = /href="([^"]*psp=elsewhere[^"]*)#rows"/.exec(text)![1]!.replaceAll('&amp;', '&')
  assert.match((await see(link)).text, /Only movements of Elsewhere main\./)
  assert.match((await see(link.replace('=main', '=other'))).text, /No movements\./)
})

test('the CSV has every row of the operation, with a byte order mark and a name of project, page and period; one of other rows has another name', async () => {
  for (const [path, name] of [
    [`${MONTH}&csv=rows`, '_finance_rows_2025-10-01_2025-10-31'],
    [`${MONTH}&csv=rows&test=1`, '_finance_rows_test_2025-10-01_2025-10-31'],
    [`${MONTH}&csv=rows&psp=elsewhere&psp_merchant_id=main`, '_finance_rows_elsewhere_main_2025-10-01_2025-10-31'],
    [`/payouts?project=${projectId}&csv=entries&payout=po_1`, '_payouts_entries_po-1_2'],
  ] as const)
    assert.ok((await see(path)).headers.get('content-disposition')!.includes(name), path)
  const response = await fetch(`${dashboard.origin}${MONTH}&csv=rows`, { headers: { cookie } })
  const bytes = new Uint8Array(await response.arrayBuffer())
  assert.deepEqual([...bytes.slice(0, 3)], [0xef, 0xbb, 0xbf])
  const [head, ...lines] = new TextDecoder().decode(bytes).trimEnd().split('\r\n')
  const { rows } = await get('/rows?month=2025-10&limit=1000')
  assert.equal(lines.length, rows.length)
  const at = head!.split(',').indexOf('Amount')
  assert.deepEqual(
    lines.map((line) => Number(line.split(',')[at])),
    rows.map(({ amount }: Json) => amount),
  )
  const booked = head!.split(',').indexOf('Booked')
  assert.deepEqual(
    lines.map((line) => line.split(',')[booked]),
    rows.map(({ booked_at }: Json) => booked_at),
  )
})

test('a page reads the objects that the API returns as text, by the ids of operations only', async () => {
  const actor = { kind: 'operator key', id: 'key', source: 'here' } as const
  const call = openCall(server.app, actor, { id: 'key', name: 'Ada', access: FULL_ACCESS, actor })
  const params = { organization_id: organizationId }
  const query = { month: '2025-10' }
  assert.deepEqual(await call('getFinanceReport', { params, query }), await get('?month=2025-10'))
  assert.deepEqual(await call('listFinanceRows', { params, query }), await get('/rows?month=2025-10'))
  assert.deepEqual(await call('getTieOut', { params, query }), await get('/tie-out?month=2025-10'))
  assert.deepEqual(await call('listProjects'), (await server.admin('/projects')).body)
  const one = { project_id: projectId }
  assert.deepEqual(await call('getProject', { params: one }), (await server.admin(`/projects/${projectId}`)).body)
  // @ts-expect-error: the id is misspelt, and the compiler says so.
  await assert.rejects(call('getProjekt', { params: one }), /there is no operation getProjekt/)
})

test('an operator without the right sees no button; the button closes the month, and the page says so', async () => {
  const reader = await signIn((await operator('read')).key)
  assert.doesNotMatch((await visit(MONTH, { cookie: reader })).text, /Close Oct 2025/)
  const { text } = await see(MONTH)
  assert.match(text, /Close Oct 2025…[\s\S]*never change again/)
  const sent = await visit(`/finance/close?project=${projectId}`, { cookie, form: { month: '2025-10' } })
  assert.equal(sent.status, 303)
  assert.match(
    (await see(sent.headers.get('location')!)).text,
    /The month was closed\.[\s\S]*this month no longer changes/,
  )
  const again = await visit(`/finance/close?project=${projectId}`, { cookie, form: { month: '2025-10' } })
  assert.match(again.text, /2025-10 is closed already/)
})

test('after that only the next month has the button, and others say why they have none', async () => {
  const of = async (month: string) => (await see(MONTH.replace('2025-10', month))).text
  assert.match(await of('2025-11'), /Close Nov 2025…/)
  for (const [month, sentence] of [
    ['2025-09', /Later months are closed already: this one stays as it is\./],
    ['2025-12', /Months are closed one after the other: <a href="[^"]*month=2025-11[^"]*">Nov 2025<\/a> is the next\./],
  ] as const) {
    const text = await of(month)
    assert.match(text, sentence)
    assert.doesNotMatch(text, /Close \w+ 2025…/)
  }
})

test('a correction is in the CSV with the month that it is booked in; times in UTC are told from days in another zone', async () => {
  await db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, psp_date,
       amount, currency_code, status, psp, psp_merchant_id, psp_transaction_type)
     select $1, 'ada', true, db_clock(), gen_random_uuid(), gen_random_uuid(), at, at, 3, 'USD', 'succeeded', 'elsewhere', 'main', 'sale'
     from (select timestamptz '2025-10-01T06:00:00Z' as at) t`,
    [organizationId],
  )
  const november = MONTH.replace('2025-10', '2025-11')
  const { text } = await see(`${november}&csv=rows`)
  const [head, first] = text.split('\r\n').map((line) => line.split(','))
  const of = (name: string) => first![head!.findIndex((label) => label.endsWith(name))]
  assert.deepEqual(
    [of('When'), of('Kind'), of('Booked')],
    ['2025-10-01T06:00:00.000000Z', 'correction of sale', '2025-11-01T00:00:00.000000Z'],
  )
  const inUtc = /Times are in UTC, days and months in/
  assert.doesNotMatch((await see(november)).text, inUtc)
  await db.query(`update finance_months set time_zone = 'Europe/Madrid' where organization_id = $1`, [organizationId])
  assert.match((await see(november)).text, /Times are in UTC, days and months in Europe\/Madrid\./)
})

test('a month that does not exist is refused in a sentence', async () => {
  const { status, text } = await visit(`/finance?project=${projectId}&month=2025-13`, { cookie })
  assert.equal(status, 400)
  assert.match(text, /month must be a month such as 2026-01/)
})

test('a payout that was ticked off and fails later is shown as one whose money went back', async () => {
  await db.query(
    `insert into provider_payouts (organization_id, psp, psp_merchant_id, payout_id, amount, currency_code, status, is_automatic,
       created_at, arrives_on)
     values ($1, 'stripe', 'main', 'po_back', 12.5, 'USD', 'paid', true, '2025-10-01', '2025-10-02'),
       ($1, 'stripe', 'main', 'po_taken', -7.5, 'USD', 'paid', true, '2025-10-01', '2025-10-02')`,
    [organizationId],
  )
  const page = `/payouts?project=${projectId}`
  const { text } = await see(page)
  assert.match(text, /Notes that \$12\.50 arrived at the bank\./)
  assert.match(text, /Notes that \$7\.50 was taken from the bank account\./)
  assert.doesNotMatch(text, /<th [^>]*><\/th>/, 'a column has a name for screen readers')
  const form = { psp: 'stripe', psp_merchant_id: 'main', payout_id: 'po_back', amount: '12.50', day: '2025-10-02' }
  assert.equal((await visit(`/payouts/match?project=${projectId}`, { cookie, form })).status, 303)
  assert.match((await see(page)).text, /<span class="badge good">found<\/span> 2 Oct 2025/)
  await db.query(`update provider_payouts set status = 'failed' where organization_id = $1`, [organizationId])
  assert.match((await see(page)).text, /<span class="badge poor">went back<\/span> 2 Oct 2025/)
})

test('an entry of a payout without a fee has the fee 0 in the CSV, not -0', async () => {
  await db.query(
    `insert into balance_entries (organization_id, psp, psp_merchant_id, entry_id, payout_id, type, amount, fee, net, currency_code, entered_at)
     values ($1, 'elsewhere', 'main', 'txn_free', 'po_2', 'refund', -10, 0, -10, 'USD', db_clock())`,
    [organizationId],
  )
  const { text } = await see(`/payouts?project=${projectId}&csv=entries&payout=po_2`)
  assert.match(text, /^txn_free,-10\.00,USD,Refund,-10\.00,0\.00,/m)
})

test('the month that is shown first is the last one that is over in the time zone of the page, not of the project', async () => {
  await db.query(`update projects set time_zone = 'Pacific/Kiritimati' where id = $1`, [projectId])
  // On the last day of a month, on which the project has the next month already.
  const [moment] = await db.query(
    `select date_trunc('month', now() + interval '2 months') - interval '9 hours' - now() as ahead,
       to_char(now(), 'Mon YYYY') as month, to_char(now() + interval '1 month', 'Mon YYYY') as present`,
  )
  await setDatabaseClock(server.env.DATABASE_URL!, moment!.ahead!)
  try {
    const later = await signIn((await operator('write')).key)
    const { text } = await visit(`/finance?project=${projectId}`, { cookie: later })
    const options = [...text.matchAll(/<option value="\d{4}-\d{2}"([^>]*)>([^<]*)/g)]
    assert.equal(options[0]![2], moment!.present)
    assert.equal(options.find(([, selected]) => selected !== '')![2], moment!.month)
  } finally {
    await setDatabaseClock(server.env.DATABASE_URL!, undefined)
  }
})
