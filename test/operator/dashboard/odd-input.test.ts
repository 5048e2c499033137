// Pages for unusual URLs and records: refusals with a message, names as text, exact amounts.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { followAll } from '../../../src/data/figures/follow.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { insert } from '../../support/data.ts'

const HTML = '<img src=x onerror=alert(1)>'
// Turned by formatting characters that do not end, or end the isolation around it; and by its letters.
const TURNED = '\u202eTitle\u2069'
const HEBREW = 'קורס 5'
const ADDRESS = 'קורס5@example.com'
const FORMULA = '=HYPERLINK("http://x")'
const PAGES = 'funnels revenue subscriptions charges refunds webhooks keys settings projects'.split(' ')

let dashboard: Awaited<ReturnType<typeof startDashboard>>
let cookie: string
let project: Awaited<ReturnType<typeof dashboard.server.project>>

before(async () => {
  dashboard = await startDashboard()
  cookie = await dashboard.signInAs('write')
  const { db } = dashboard.server
  project = await dashboard.server.project()
  const today = new Date().toISOString()
  await insert(db, project, {
    funnels: [
      { id: 'constructor', title: HTML },
      { id: 'formula', title: FORMULA },
      { id: 'turned', title: TURNED },
      { id: 'hebrew', title: HEBREW },
      { id: 'blank', title: ' \u00a0' },
    ],
    experiments: [{ id: '__proto__', title: HTML }],
    // Two with the same address, so that the search has a list of results.
    profiles: [
      ...['profile', 'twin'].map((id) => ({ id, email: `${HTML}@example.com`, created_at: today })),
      { id: 'hebrew', email: ADDRESS, created_at: today },
    ],
    sessions: ['constructor', 'formula', 'turned', 'hebrew', 'blank'].map((funnel_id) => ({
      id: funnel_id,
      profile_id: 'profile',
      funnel_id,
      experiment_id: '__proto__',
      created_at: today,
    })),
    replies: [{ session_id: 'constructor', element_id: HTML, value: JSON.stringify(HTML) }],
    products: [
      { id: 'product', name: HTML },
      { id: 'formula', name: FORMULA },
      { id: 'turned', name: TURNED },
    ],
    subscriptions: [
      { id: 'yen', price: 1500, currency: 'JPY', product_id: 'turned', created_at: today },
      { id: 'dinar', price: 12_345, currency: 'KWD', product_id: 'formula', created_at: today },
      { id: 'huge', price: Number.MAX_SAFE_INTEGER, created_at: today },
    ],
    customers: [{ external_id: HTML, profile_id: 'profile', email: `${HTML}@example.com` }],
    orders: [
      { order_id: ORDER, external_id: HTML, failed_message_for_user: HTML, status: 'failed', created_at: today },
    ],
  })
  await db.query('update projects set name = $2 where id = $1', [project.id, HTML])
  await db.query('update organizations set name = $2 where id = $1', [project.organizationId, HTML])
  await see(`/settings/figures?project=${project.id}`, { sure: 'yes' })
  await followAll(db)
})
after(() => dashboard?.stop())

const ORDER = '01900000-0000-7000-8000-000000000009'
const see = (path: string, form?: Record<string, string>) => dashboard.visit(path, { cookie, ...(form && { form }) })

const REFUSED: Record<string, RegExp> = {
  '/revenue?from=9999-12-31': /from must be from 1900-01-01 to 2999-12-31, got 9999-12-31/,
  '/revenue?from=2026-01-01&to=9999-12-31': /to must be from 1900-01-01/,
  '/revenue?from=0000-01-01&to=0000-01-02': /from must be from 1900-01-01/,
  '/revenue?from=0001-01-01&to=0001-01-05&compare=year': /from must be from 1900-01-01/,
  '/revenue?from=2026-02-30': /from must be a day such as/,
  '/revenue?from=2026-02-02&to=2026-02-01': /must not be after the last/,
  '/subscriptions?created_after=9999-12-31': /created_after must be from 1900-01-01/,
  '/subscriptions?created_after=2026-02-31': /created_after must be a day such as/,
  '/subscriptions?first_payment=2026-13': /first_payment must be a month such as 2026-01, got/,
  '/subscriptions?moved=2026-01-01+2026-01-31+lost': /moved must be two days and one of new, .*, such as 2026-10-01/,
  '/subscriptions?moved=churn': /moved must be two days and one of/,
  '/charges?paid_attempt=0': /paid_attempt must be any, paid, none, or the number of an attempt/,
  '/subscriptions?cursor=forged': /cursor must be/,
  '/charges?cursor=eyJhIjoxfQ': /cursor must be/,
  '/finance?cursor=forged': /after must be/,
  '/finance/differences?cursor=forged': /after must be/,
  [`/people?q=${'a'.repeat(10_000)}`]: /q must have at most 320 characters/,
  '/people?q=a%00b': /U\+0000/,
  '/funnels/a%00b': /U\+0000/,
  '/webhooks?state=lost': /status must be one of/,
}
for (const [path, sentence] of Object.entries(REFUSED))
  test(`400 with a sentence for ${path.slice(0, 60)}`, async () => {
    const { status, text } = await see(path)
    assert.equal(status, 400)
    assert.match(/role="alert">([^<]*)/.exec(text)![1]!, sentence)
  })

test('a refused filter is shown again with what was typed into it and into the others', async () => {
  const { status, text } = await see('/subscriptions?status=active&email=%22ada%22&created_after=2026-02-31')
  const form = /<form class="filters" method="get".*?<\/form>/s.exec(text)?.[0] ?? ''
  assert.deepEqual([status, /name="back"/.test(form)], [400, false])
  for (const part of ['value="active" selected', 'name="email" type="text" value="&quot;ada&quot;"'])
    assert.ok(form.includes(part), text)
  assert.match(form, /name="created_after" value="2026-02-31"/)
})

test('a refused period is shown again with what was typed into it', async () => {
  const { status, text } = await see('/revenue?from=2026-02-31&to=2026-03-02&compare=year&country=ES')
  const form = text.match(/<form\b.*?<\/form>/gs)!.find((one) => one.includes('name="from"')) ?? ''
  assert.equal(status, 400)
  for (const part of [
    'name="from" value="2026-02-31"',
    'name="to" value="2026-03-02"',
    'value="year" selected',
    'value="ES"',
  ])
    assert.ok(form.includes(part), text)
})

test('a period whose days are in the wrong order is shown again with both', async () => {
  for (const page of ['/revenue?', '/charges?status=failed&', '/audit?']) {
    const { status, text } = await see(`${page}from=2026-03-02&to=2026-02-28`)
    const form = text.match(/<form\b.*?<\/form>/gs)!.find((one) => one.includes('name="from"')) ?? ''
    assert.deepEqual([page, status], [page, 400])
    assert.match(text, /role="alert">The first day must not be after the last\.</)
    assert.match(form, /name="from" value="2026-03-02".*name="to" value="2026-02-28"/s, page)
  }
})

for (const path of [
  '/?project=other',
  '/?project=all:other',
  '/charges/other/order',
  '/people/other',
  '/funnels/other',
])
  test(`404 for ${path}`, async () => assert.equal((await see(path)).status, 404))

test('the funnel that is named like a field of every object has its page; one that is not there is not found', async () => {
  assert.equal((await see('/funnels/constructor')).status, 200)
  for (const id of ['__proto__', 'valueOf']) assert.equal((await see(`/funnels/${id}`)).status, 404, id)
})

for (const path of ['/hours', '/worth'])
  test(`a split of ${path} that is named like a field of every object counts as none`, async () => {
    for (const name of ['__proto__', 'constructor'])
      assert.equal((await see(`${path}?from=2026-01-01&split=${name}`)).status, 200, name)
  })

for (const span of ['from=2010-01-01&to=2011-01-31', 'from=2031-01-01&to=2031-12-31', 'from=1900-01-01&to=1900-01-02'])
  test(`subscriptions are shown for ${span}`, async () => {
    assert.equal((await see(`/subscriptions?${span}`)).status, 200)
  })

test('HTML in names, addresses, replies and messages is shown as text on every page', async () => {
  const paths = ['', ...PAGES, 'funnels/constructor', 'people/profile', `charges/${project.organizationId}/${ORDER}`]
  let shown = 0
  for (const q of [`${HTML}?`, `${HTML}@example.com`]) paths.push(`people?q=${encodeURIComponent(q)}`)
  for (const path of paths) {
    const { status, text } = await see(`/${path}`)
    assert.equal(status, 200, path)
    assert.doesNotMatch(text, /<img src=x/, path)
    if (text.includes('&lt;img src=x onerror=alert(1)&gt;')) shown += 1
  }
  assert.ok(shown >= PAGES.length)
})

test('text from right to left is isolated from the text around it, and cannot end the isolation', async () => {
  const list = (await see('/funnels')).text
  for (const part of ['<bdi>Title</bdi>', `<bdi>${HEBREW}</bdi>`]) assert.ok(list.includes(part), part)
  for (const [id, title] of [
    ['turned', 'Title'],
    ['hebrew', HEBREW],
  ]) {
    const { text } = await see(`/funnels/${id}`)
    assert.ok(text.includes(`<title>\u2068${title}\u2069 · Tundish</title>`), id)
    assert.ok(text.includes(`<h1><bdi>${title}</bdi></h1>`), id)
    // Attributes keep every character, because forms and links send them back.
    const shown = text.replace(/"[^"<>]*"/g, '').replace(/<(title|option)\b[^<]*/g, '')
    assert.doesNotMatch(shown, /[\u202a-\u202e\u2066-\u2069]/, id)
  }
  // The domain of an address comes last.
  assert.ok((await see('/people/hebrew')).text.includes(`<bdi dir="ltr">${ADDRESS}</bdi>`))
  const search = (await see(`/people?q=${encodeURIComponent(TURNED)}`)).text
  assert.ok(search.includes(`value="${TURNED}"`))
  const csv = (await see('/subscriptions?csv=subscriptions')).text
  assert.ok(csv.includes(',Title,') && !csv.includes('bdi'), csv)
})

test('a funnel whose title is blank is shown by its id', async () => {
  assert.match((await see('/funnels')).text, /<a href="[^"]*">blank<\/a>/)
  assert.match((await see('/funnels/blank')).text, /<h1>blank<\/h1>/)
})

test('a quote precedes names and labels in the CSV that a spreadsheet would take for formulas', async () => {
  const csv = (await see('/subscriptions?csv=subscriptions')).text
  assert.match(csv, /,"'=HYPERLINK\(""http:\/\/x""\)",/)
})

test('amounts have the decimals of their currency, and every digit', async () => {
  const { text } = await see('/subscriptions')
  for (const amount of ['¥1,500', 'KWD\u00a012.345', '$90,071,992,547,409.91']) assert.ok(text.includes(amount), amount)
})
