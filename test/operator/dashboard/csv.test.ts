// Tables as CSV: each page has a link for each of its tables, and a list is downloaded as a whole.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { csvName } from '../../../src/operator/dashboard/csv-name.ts'
import { html } from '../../../src/operator/dashboard/html.ts'
import { rowTable } from '../../../src/operator/dashboard/pages/finance-tables.ts'
import { csvOf, type Table } from '../../../src/operator/dashboard/sheet.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { BASICS, insert } from '../../support/data.ts'

const MANY = 250
const T = '2026-01-02T03:04:05.000006Z'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('write')
const { server, project } = dashboard
const id = (n: number) => `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`
const all = Array.from({ length: MANY }, (_, n) => n)
await insert(server.db, project, {
  ...BASICS,
  profiles: [{ id: 'profile', email: 'ada@example.com' }],
  subscriptions: [{ id: 'sub', price: 1050, currency: 'JPY', billing_interval_count: 3, created_at: T }],
  transactions: [{ id: 'trn', price: 1050, currency: 'EUR' }],
  customers: [{ external_id: 'ada', profile_id: 'profile' }],
  orders: all.map((n) => ({
    order_id: id(n),
    external_id: 'ada',
    idempotency_key: `key ${n}`,
    amount: '12.345',
    currency_code: 'KWD',
    created_at: T,
  })),
  refunds: all.slice(0, 30).map((n) => ({
    refund_id: id(n),
    order_id: id(n),
    external_id: 'ada',
    idempotency_key: `refund ${n}`,
  })),
})

async function see(path: string): Promise<string> {
  const { status, text } = await dashboard.visit(path, { cookie })
  assert.equal(status, 200, text)
  return text
}

const csvTextOf = async (content: Table) => (await Array.fromAsync(csvOf(content))).join('')
const linesOf = (csv: string) => csv.trimEnd().split('\r\n')

test('every table of every page has a link to its CSV, which has its columns', async () => {
  let tables = 0
  for (const path of [
    '/charges',
    '/subscriptions',
    '/refunds',
    '/people/profile',
    '/keys',
    '/projects',
    '/audit',
    '/doctor',
  ]) {
    const text = await see(path)
    for (const [, name, head] of text.matchAll(/<table id="([^"]+)">.*?<thead>(.*?)<\/thead>/gs)) {
      const link = new RegExp(`href="([^"]*csv=${name}[^"]*)"`).exec(text)
      assert.ok(link, `${path} has no link to ${name}`)
      const [columns] = linesOf(await see(link[1]!.replaceAll('&amp;', '&')))
      const shown = [...head!.matchAll(/<th[^>]*>([^<]+)</g)].map(([, label]) => label!)
      for (const label of shown.filter((one) => one !== 'Actions'))
        assert.ok(columns!.split(',').includes(label), `${name}: ${columns}`)
      assert.doesNotMatch(columns!, /Actions/)
      tables += 1
    }
  }
  assert.ok(tables > 12)
})

test('the CSV of a list has the rows of all its pages, and only those that match the filters', async () => {
  const charges = linesOf(await see('/charges?csv=charges'))
  assert.equal(charges.length, MANY + 1)
  assert.equal(new Set(charges).size, MANY + 1)
  assert.equal(linesOf(await see('/charges?csv=charges&status=failed')).length, 1)
})

test('amounts are numbers next to their currency, times are in full, and what does not exist is empty', async () => {
  const [head, row] = linesOf(await see('/charges?csv=charges'))
  assert.equal(head, 'Order,Amount,Currency,Status,Customer,Created,Provider,Refunded')
  assert.match(row!, /^01900000-[^,]+,12\.345,KWD,succeeded,ada,2026-01-02T03:04:05\.000006Z,simulator,0$/)
  assert.deepEqual(linesOf(await see('/subscriptions?csv=subscriptions')), [
    'Subscription,Status,Person,Product,Price,Currency,Interval,Created,Paid until,Provider',
    'sub,active,ada@example.com,Monthly plan,1050,JPY,3 months,2026-01-02T03:04:05.000006Z,,',
  ])
  assert.match(linesOf(await see('/people/profile?csv=transactions'))[1]!, /^trn,10\.50,EUR,/)
})

test('two lists of a page have their own pages', async () => {
  const first = await see('/refunds')
  const [, next] = /href="([^"]*cursor_refunds=[^"]*)">Next page/.exec(first)!
  const second = await see(next!.replaceAll('&amp;', '&'))
  const rows = (text: string) => text.split('id="refunds"')[1]!.split('</table>')[0]!.split('<tr>').length - 2
  assert.deepEqual([rows(first), rows(second)], [20, 10])
})

test('the audit log has its changes without the text of the button that shows them', async () => {
  await dashboard.visit(`/keys/project/${dashboard.project.id}`, { cookie, form: { name: 'new' } })
  const [, newest] = linesOf(await see('/audit?csv=audit'))
  assert.match(newest!, /^[^,]+,key\.created,key [^,]+,"after \{""name"":""new""/)
})

test('a file is named by project, page, table and day, begins with a byte order mark, and has names next to ids', async () => {
  await dashboard.server.db.query(
    `insert into figures_sales (project_id, split, day, test, key, subkey, currency, sales, gross, refunds, refunded, chargebacks,
       charged_back, payers, gross_usd, refunded_usd, charged_back_usd, without_usd)
     values ($1, 'product', '2026-01-02', false, 'product', '', 'USD', 3, 3333, 0, 0, 0, 0, 1, 3333, 0, 0, 0),
       ($1, '', '2026-01-02', false, '', '', 'USD', 3, 3333, 0, 0, 0, 0, 1, 3333, 0, 0, 0)`,
    [dashboard.project.id],
  )
  const path = '/revenue?from=2026-01-02&to=2026-01-03&split=product&csv=product'
  const response = await fetch(dashboard.origin + path, { headers: { cookie } })
  assert.equal(
    response.headers.get('content-disposition'),
    `attachment; filename="${dashboard.project.id}_revenue_product_2026-01-02_2026-01-03_USD.csv"`,
  )
  const bytes = new Uint8Array(await response.arrayBuffer())
  assert.deepEqual([...bytes.slice(0, 3)], [0xef, 0xbb, 0xbf])
  const [head, row] = linesOf(new TextDecoder().decode(bytes))
  assert.equal(head, 'Product,Product ID,Gross,Refunds,Chargebacks,Net,Sales')
  assert.equal(row, 'Monthly plan,product,33.33,0.00,0.00,33.33,3')
})

test('of many values of a dimension the page has the first hundred and their total, and the file all', async () => {
  await dashboard.server.db.query(
    `insert into figures_sales (project_id, split, day, test, key, subkey, currency, sales, gross, refunds, refunded, chargebacks,
       charged_back, payers, gross_usd, refunded_usd, charged_back_usd, without_usd)
     select $1, 'source', '2026-01-02', false, 'source ' || n, '', 'USD', 1, 100, 0, 0, 0, 0, 1, 100, 0, 0, 0 from generate_series(1, 120) n`,
    [dashboard.project.id],
  )
  const path = '/revenue?from=2026-01-02&to=2026-01-03&split=source'
  const text = await see(path)
  const table = text.split('<table id="source">')[1]!.split('</table>')[0]!
  assert.equal(table.split('<tbody>')[1]!.split('</tbody>')[0]!.split('<tr>').length - 1, 100)
  assert.match(table, /<tfoot>.*\$120\.00/)
  assert.match(text, /The first 100 of 120 rows/)
  assert.equal(linesOf(await see(`${path}&csv=source`)).length, 121)
})

test('other requests are served while the cells and the lines of a long file are made', async () => {
  let turns = 0
  let counting = true
  const count = () => {
    turns += 1
    if (counting) setImmediate(count)
  }
  setImmediate(count)
  const movements = Array.from({ length: 2000 }, (_, n) => ({
    ...{
      paid_at: T,
      booked_at: T,
      correction: false,
      kind: 'sale',
      amount: n,
      currency_code: 'USD',
      amount_reported: n,
    },
    ...{ fee: null, fee_currency: null, psp: 'stripe', psp_merchant_id: 'main', order_id: id(n), trx_id: id(n) },
  }))
  const content = await rowTable({ href: (path: string) => path } as never, movements as never, 'USD')
  assert.ok(turns >= 9, `${turns} turns for the cells`)
  turns = 0
  const text = await csvTextOf(content)
  counting = false
  assert.ok(turns >= 9, `${turns} turns for the lines`)
  assert.equal(linesOf(text).length, 2001)
})

test('a list that is longer than its file says so in its last line and its name', async () => {
  const view = { project: { id: 'shop', name: 'Café & Co' }, span: { today: '2026-01-02' }, path: '/charges' }
  const content = { caption: '', columns: [{ label: 'Order' }], rows: [['a']], cutAfter: 1 }
  assert.match(await csvTextOf(content), /^\ufeffOrder\r\na\r\n"?The list goes on: this file has its first 1 rows/)
  assert.equal(
    csvName(view as never, { title: '', body: html`` }, 'charges', content),
    'Cafe-Co_charges_2026-01-02_first-1-rows',
  )
})

test('a project whose name has letters that a file name cannot have is named by its id', async () => {
  const nameOf = async (name: string) => {
    const { project } = dashboard
    await dashboard.server.db.query('update projects set name = $2 where id = $1', [project.id, name])
    const response = await fetch(`${dashboard.origin}/subscriptions?csv=subscriptions&project=${project.id}`, {
      headers: { cookie },
    })
    return /filename="(.*?)_subscriptions/.exec(response.headers.get('content-disposition')!)![1]
  }
  assert.equal(await nameOf('магазин 2'), dashboard.project.id)
  assert.equal(await nameOf('睡眠'), dashboard.project.id)
  assert.equal(await nameOf('🛒'), dashboard.project.id)
  assert.equal(await nameOf('Café & Co'), 'Cafe-Co')
})
