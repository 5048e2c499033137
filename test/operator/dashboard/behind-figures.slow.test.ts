// What is behind figures: a filter in the URL that all links keep, and the lists of sessions, payments and declined payments.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { followAll, rebuildFigures } from '../../../src/data/figures/follow.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { addRow, BASICS, insert } from '../../support/data.ts'
import { setDatabaseClock } from '../../support/time.ts'
import { rowsOf, tilesOf } from './page-numbers.ts'

const DAYS = 'from=2026-01-01&to=2026-01-31'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('write')
const { server, project } = dashboard
const people = ['BR', 'DE'] as const
await insert(server.db, project, {
  ...BASICS,
  profiles: people.map((country) => ({
    id: `in-${country}`,
    country,
    email: `${country.toLowerCase()}@example.com`,
  })),
  sessions: people.map((country) => ({
    id: `ses-${country}`,
    profile_id: `in-${country}`,
    country,
    funnel_id: 'funnel',
    visit_source: country === 'BR' ? 'google' : 'meta',
    visit_variant: country === 'BR' ? 'a' : 'b',
  })),
  replies: ['age', 'goal'].map((name, n) => ({
    session_id: 'ses-BR',
    screen_id: `scr_${n}`,
    screen_index: n,
    element_id: `el_${n}`,
    element_custom_id: name,
  })),
  subscriptions: people.map((country) => ({ id: `sub-${country}`, profile_id: `in-${country}` })),
  transactions: people.map((country, n) => ({
    id: `trn-${country}`,
    profile_id: `in-${country}`,
    price: 1000 * (n + 1),
    subscription_id: `sub-${country}`,
    created_at: `2026-01-0${n + 2}T12:00:00Z`,
  })),
  customers: [{ external_id: 'ada', profile_id: 'in-BR' }],
})
await server.db.query(
  `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, amount,
     currency_code, status, psp, psp_transaction_type, psp_reason_code, psp_reason_decline_type)
   select $1, 'ada', true, db_clock(), gen_random_uuid(), gen_random_uuid(), '2026-01-05T00:00:00Z'::timestamptz + n * interval '1 hour',
     n, 'USD', case when n < 3 then 'failed' else 'refunded' end, 'simulator', case n when 3 then 'chargeback' else 'sale' end,
     case n when 1 then 'lost_card' else 'no_funds' end, 'soft' from generate_series(1, 3) n`,
  [project.organizationId],
)
await computeAgain()

async function computeAgain(): Promise<void> {
  await dashboard.visit(`/settings/figures?project=${dashboard.project.id}`, { cookie, form: {} })
  await followAll(dashboard.server.db)
}

/** The first column of the table that a link of the page leads to. */
async function behind(page: string, part: string, table: string): Promise<(string | undefined)[]> {
  const link = linksOf(await see(page)).find((one) => one.includes(part))
  assert.ok(link, `${page} has no link with ${part}`)
  return rowsOf(await see(link.split('#')[0]!), table).map(([id]) => id)
}

async function see(path: string): Promise<string> {
  const { status, text } = await dashboard.visit(path, { cookie })
  assert.equal(status, 200, `${path} ${text}`)
  return text
}
const linksOf = (text: string) =>
  [...text.matchAll(/href="([^"]+)"/g)].map(([, link]) => link!.replaceAll('&amp;', '&'))

test('a country of revenue leads to the figures of only it, whose links lead to its people, sessions and payments', async () => {
  const all = await see(`/revenue?${DAYS}&split=country`)
  assert.equal(tilesOf(all).Revenue, '$30.00')
  const link = linksOf(all).find((one) => one.startsWith('/revenue') && one.includes('country=BR'))!
  const brazil = await see(link)
  assert.equal(tilesOf(brazil).Revenue, '$10.00')
  assert.match(brazil, /<strong>Only<\/strong> <span class="badge flat">country Brazil/)
  for (const [path, table] of [
    ['/people', 'people'],
    ['/sessions', 'sessions'],
    ['/payments', 'payments'],
    ['/subscriptions', 'subscriptions'],
  ] as const) {
    const to = linksOf(brazil).find((one) => one.startsWith(`${path}?`) && one.includes('country=BR'))!
    const text = await see(to)
    assert.equal(rowsOf(text, table).length, 1, path)
    assert.match(text, /br@example\.com/, path)
    assert.doesNotMatch(text, /de@example\.com/, path)
  }
  const whole = linksOf(brazil).find((one) => one.startsWith('/revenue') && !one.includes('country'))!
  assert.equal(tilesOf(await see(whole)).Revenue, '$30.00')
})

test('several filters at once; each can be removed, and parts that have no such split say so', async () => {
  const both = await see(`/revenue?${DAYS}&country=BR&source=google`)
  assert.deepEqual([tilesOf(both).Revenue, tilesOf(both)['Net revenue']], ['$10.00', '$7.00'])
  assert.equal(tilesOf(await see(`/revenue?${DAYS}&country=BR&source=meta`)).Revenue, '$0.00')
  const without = linksOf(both).find((one) => one.includes('country=BR') && !one.includes('source='))!
  assert.equal(tilesOf(await see(without)).Revenue, '$10.00')
  const returned = tilesOf(await see(`/acquisition?${DAYS}&country=br&source=google`))
  assert.deepEqual([returned.Spend, returned['New people'], returned['New customers']], ['–', '1', '1'])
  const ofProduct = await see(`/acquisition?${DAYS}&product=product`)
  assert.match(ofProduct, /Not filtered by product\./)
  assert.match(ofProduct, /New people<\/dt><dd><strong>2/)
  assert.equal(rowsOf(await see(`/worth?${DAYS}&country=BR&source=google`), 'worth').length, 1)
  assert.match(await see(`/worth?${DAYS}&country=BR&source=meta`), /Nobody began in this period/)
  for (const page of ['revenue', 'funnels', 'movements'])
    assert.match(await see(`/${page}?${DAYS}&country=BR&source=meta`), /<p>Nothing matches the filters of this page\./)
  const byStatus = /By status now: 2 active/
  assert.match(await see(`/subscriptions?${DAYS}`), byStatus)
  assert.doesNotMatch(await see(`/subscriptions?${DAYS}&country=BR`), byStatus)
  const cohorts = linksOf(await see(`/worth?${DAYS}`)).filter((one) => one.includes('first_payment='))
  assert.equal(rowsOf(await see(cohorts[0]!), 'subscriptions').length, 2)
  const began = linksOf(await see(`/worth?${DAYS}&since=session`)).filter((one) => one.startsWith('/sessions?'))
  assert.equal(rowsOf(await see(began.at(-1)!), 'sessions').length, 2)
  assert.equal(tilesOf(await see(`/declines?${DAYS}&country=BR&source=google`))['Declined first'], '2')
  assert.equal(tilesOf(await see(`/declines?${DAYS}&country=DE`))['Declined first'], '0')
  assert.equal(tilesOf(await see(`/churn?${DAYS}&country=DE&source=meta&product=product`)).Trials, '0')
  for (const path of [
    '/hours',
    '/experiments',
    '/movements',
    '/refunds',
    '/charges',
    '/funnels',
    '/subscriptions',
    '/',
  ])
    await see(`${path}?${DAYS}&country=BR&source=google&product=product`)
  const sessions = await see(`/funnels?${DAYS}&product=product`)
  assert.match(sessions, /not known with these filters/)
  assert.match(await see(`/refunds?${DAYS}&country=BR`), /Not filtered by country\./)
})

test('a list behind a filtered figure has its filter, or says that it does not', async () => {
  for (const path of ['people', 'sessions', 'payments', 'subscriptions'])
    assert.equal(rowsOf(await see(`/${path}?${DAYS}&variant=a`), path).length, 1, path)
  assert.match(await see(`/sessions?${DAYS}&product=product`), /Not filtered by product\./)
  const ofAll = await see(`/acquisition?${DAYS}&product=none`)
  assert.equal(tilesOf(ofAll)['New customers'], '2')
  const rows = linksOf(ofAll).find((one) => one.startsWith('/payments?') && one.includes('first='))!
  assert.equal(rowsOf(await see(rows.split('#')[0]!), 'payments').length, 2)
})

test('payments by source, product and day; a page without the split says so', async () => {
  assert.deepEqual(
    rowsOf(await see(`/payments?${DAYS}&source=meta`), 'payments').map(([person, amount]) => [person, amount]),
    [['in-DE', '20.00']],
  )
  // A country or a currency as people type it.
  const of = async (typed: string) => rowsOf(await see(`/payments?${DAYS}&${typed}`), 'payments').length
  const found = await of('country=BR&currency=USD')
  assert.ok(found > 0)
  for (const typed of ['country=br&currency=usd', 'country=brazil&currency=+Usd+'])
    assert.equal(await of(typed), found, typed)
  assert.equal(rowsOf(await see(`/payments?${DAYS}&product=product`), 'payments').length, 2)
  assert.equal(rowsOf(await see('/payments?from=2026-01-02&to=2026-01-02'), 'payments').length, 1)
  assert.match(await see(`/payments?${DAYS}&product=none`), /No payments of this period match/)
  assert.match(await see(`/webhooks?country=BR`), /What this page shows is not filtered by country/)
})

test('a day of a table leads to the page of only that day', async () => {
  const day = linksOf(await see(`/revenue?${DAYS}`)).find((one) => one.includes('from=2026-01-03&to=2026-01-03'))
  assert.equal(tilesOf(await see(day!)).Revenue, '$20.00')
})

test('a reason leads to its declined payments, and a chargeback is not called refunded', async () => {
  const charges = await see(`/charges?${DAYS}`)
  assert.equal(rowsOf(charges, 'declined').length, 2)
  const link = linksOf(charges).find((one) => one.includes('reason=lost_card'))!
  assert.deepEqual(
    rowsOf(await see(link.split('#')[0]!), 'declined').map(([customer, amount]) => [customer, amount]),
    [['ada', '1.00']],
  )
  const [movement] = rowsOf(await see(`/refunds?${DAYS}`), 'movements')
  assert.ok(movement!.includes('charged back'), String(movement))
})

test('a filter takes what a page shows: the name of a reason, an address with blanks around it', async () => {
  for (const [path, table, count] of [
    ['/charges?reason=lost_card', 'declined', 1],
    ['/charges?reason=Lost+card', 'declined', 1],
    ['/charges?reason=lost+card+', 'declined', 1],
    ['/refunds?reason=No+funds', 'movements', 1],
    ['/subscriptions?email=+br@example.com+', 'subscriptions', 1],
  ] as const)
    assert.equal(rowsOf(await see(`${path}&${DAYS}`), table).length, count, path)
  assert.match(await see(`/refunds?reason=Lost+card&${DAYS}`), /No refunds or disputes of this period match\./)
})

test('payments by currency, in any case of its code', async () => {
  const listed = async (currency: string) =>
    (await server.admin(`/projects/${project.id}/payments?currency=${currency}`)).body.data.length
  assert.deepEqual([await listed('usd'), await listed('USD'), await listed('EUR')], [people.length, people.length, 0])
})

test('a tile leads to the rows that it counts, with the filters of the page', async () => {
  const pages = new Map<string, Promise<string>>()
  const once = (page: string) => pages.get(page) ?? pages.set(page, see(page)).get(page)!
  const hrefOf = async (page: string, label: string) => {
    const found = new RegExp(`<a class="whole" href="([^"]*)" aria-label="${label}: list">`).exec(await once(page))
    assert.ok(found, `${label} of ${page} is no link`)
    return found[1]!.replaceAll('&amp;', '&')
  }
  const tiles: [page: string, label: string, list: string, rows: number][] = [
    ['/revenue', 'Revenue', 'payments', 2],
    ['/revenue', 'Chargebacks', 'movements', 1],
    ['/refunds', 'Disputes', 'movements', 1],
    ['/charges', 'Declined', 'declined', 2],
    ['/declines', 'Declined first', 'declined', 2],
    ['/declines', 'Not recovered', 'declined', 2],
    ['/funnels', 'Sessions', 'sessions', 2],
    ['/funnels/funnel', 'Sessions', 'sessions', 2],
    ['/funnels', 'Revenue', 'payments', 2],
    ['/funnels', 'Conversion', 'payments', 2],
    ['/acquisition', 'New people', 'sessions', 2],
    ['/acquisition', 'New customers', 'payments', 2],
    ['/worth', 'After 1 month', 'payments', 2],
    ['/worth', 'After 3 months', 'payments', 2],
    ['/subscriptions', 'MRR', 'subscriptions', 2],
    ['/subscriptions', 'Paying', 'subscriptions', 2],
    ['/movements', 'Change', 'subscriptions', 2],
  ]
  for (const [page, label, list, rows] of tiles) {
    const href = await hrefOf(`${page}?${DAYS}`, label)
    assert.ok(href.endsWith(`#${list}`), href)
    assert.equal(rowsOf(await once(href.split('#')[0]!), list).length, rows, href)
  }
  const spent = await hrefOf(`/acquisition?${DAYS}&split=funnel`, 'Spend')
  assert.match(spent, /[?&]split=campaign\b.*#acquisition$/)
  assert.match(await see(spent.split('#')[0]!), /<h2[^>]*>By campaign/)
  const first = await hrefOf('/hours', 'New customers')
  assert.match(first, /^\/payments\?.*first=true.*#payments$/)
  assert.match(await see(first.split('#')[0]!), /Only the first payment of each person\./)
  for (const [page, label, nothing] of [
    ['/declines', 'Paid later', /No declined payments of this period match/],
    ['/churn', 'Trials', /No subscriptions match these filters/],
  ] as const)
    assert.match(await see((await hrefOf(`${page}?${DAYS}`, label)).split('#')[0]!), nothing)
  const filtered = await hrefOf(`/funnels?${DAYS}&country=BR`, 'Sessions')
  assert.equal(rowsOf(await see(filtered.split('#')[0]!), 'sessions').length, 1)
  assert.match(await hrefOf('/hours', 'Sales'), /^\/payments\?.*from=(\d{4}-\d\d-\d\d)&to=\1/)
})

test('a country of one funnel leads to its sessions in this funnel', async () => {
  const page = `/funnels/funnel?${DAYS}`
  assert.equal((await behind(page, '&funnel=funnel&country=BR', 'sessions')).length, 1)
})

test('screens have the names of their questions, and the last one loses no one; a person has them and what went back', async () => {
  const screens = rowsOf(await see(`/funnels/funnel?${DAYS}`), 'screens')
  assert.deepEqual(
    screens.map(([screen, , stopped, , answered]) => [screen, answered, stopped]),
    [
      ['scr_0', '1', '0'],
      ['scr_1', '1', 'completed'],
    ],
  )
  const funnel = await see(`/funnels/funnel?${DAYS}`)
  assert.match(funnel, /Age <span class="quiet">scr_0</)
  const person = await see(`/people/in-BR?project=${dashboard.project.id}`)
  assert.match(person, /<dt title="el_0">Age<\/dt>/)
  assert.match(person, /<dt>Paid<\/dt><dd>\$7\.00 <span class="quiet">\(\$10\.00 paid, \$3\.00 returned\)/)
})

test('the audit log by action and day', async () => {
  assert.match(await see('/audit?action=figures.rebuild_asked&from=2020-01-01'), /table id="audit"|No entries match/)
  assert.match(await see('/audit?action=nothing'), /No entries match these filters/)
  assert.equal((await dashboard.visit('/audit?from=nonsense', { cookie })).status, 400)
})

test('a subscription has a page with its payments; a cohort leads to its subscriptions', async () => {
  const text = await see(`/subscriptions/sub-BR?project=${dashboard.project.id}`)
  assert.match(text, /<p class="lead">\$19\.99/)
  assert.deepEqual(rowsOf(text, 'payments').length, 1)
  assert.equal((await dashboard.visit('/subscriptions/nobody', { cookie })).status, 404)
  const cohort = linksOf(await see(`/subscriptions?${DAYS}`)).find((one) => one.includes('first_payment=2026-01'))!
  assert.equal(rowsOf(await see(cohort.split('#')[0]!), 'subscriptions').length, 2)
})

test('a cohort leads to as many subscriptions as it counts: also those without a stored payment, none of a sandbox', async () => {
  const { id, organizationId } = await dashboard.server.project()
  const at = { created_at: '2026-02-01T02:00:00Z', profile_id: 'eve' }
  await insert(
    dashboard.server.db,
    { id, organizationId },
    {
      products: BASICS.products!,
      profiles: [{ id: 'eve' }],
      subscriptions: [
        { id: 'by-status', status: 'active', ...at },
        { id: 'not-paid', status: 'created', ...at },
        { id: 'sandbox', status: 'active', sandbox: true, ...at },
        // In São Paulo the month of the payment is that of the others, too.
        { id: 'by-payment', status: 'active', ...at, created_at: '2026-01-01T02:00:00Z' },
      ],
      transactions: [
        { id: 'first', subscription_id: 'by-payment', ...at, price: 100, created_at: '2026-02-01T02:59:59.999999Z' },
      ],
    },
  )
  const body = { time_zone: 'America/Sao_Paulo' }
  assert.equal((await dashboard.server.admin(`/projects/${id}/reporting`, { method: 'PUT', body })).status, 200)
  await rebuildFigures(dashboard.server.db, id)
  const seen = async (more: string) => see(`/subscriptions?from=2026-01-01&to=2026-03-01&project=${id}${more}`)
  assert.deepEqual(
    rowsOf(await seen(''), 'cohorts').map((row) => row.slice(0, 2)),
    [['2026-01', '2']],
  )
  const page = await seen('&first_payment=2026-01')
  assert.deepEqual(
    rowsOf(page, 'subscriptions')
      .map(([one]) => one)
      .sort(),
    ['by-payment', 'by-status'],
  )
  assert.match(page, /Only those that were first paid for in Jan 2026\./)
  const all = await seen('&first_payment=2026-01&test=1')
  assert.deepEqual(rowsOf(all, 'subscriptions').length, 3)
})

test('movements, ends, reasons, days of the forecast and variants lead to the rows they count', async () => {
  const { server, project } = dashboard
  const change = (sql: string) => server.db.query(sql, [project.id])
  await change(`update subscriptions set status = 'cancelled', cancellation_reason = 'too_expensive',
    period_ends_at = '2026-01-20T12:00:00Z' where project_id = $1 and id = 'sub-DE'`)
  await change(
    `update subscriptions set period_ends_at = db_clock() + interval '2 days' where project_id = $1 and id = 'sub-BR'`,
  )
  await change(
    `update sessions set experiment_id = 'experiment', visit_variant = case country when 'BR' then 'a' else 'b' end where project_id = $1`,
  )
  await computeAgain()
  const movements = `/movements?${DAYS}`
  assert.deepEqual(await behind(movements, '2026-01-01+2026-01-31+new', 'subscriptions'), ['sub-DE', 'sub-BR'])
  assert.deepEqual(await behind(movements, '+churn', 'subscriptions'), ['sub-DE'])
  assert.deepEqual(await behind(`/subscriptions?${DAYS}`, '+started', 'subscriptions'), ['sub-DE', 'sub-BR'])
  assert.deepEqual(await behind(`/subscriptions?${DAYS}`, '+ended', 'subscriptions'), ['sub-DE'])
  assert.deepEqual(await behind(`/churn?${DAYS}&split=reason`, 'reason=too_expensive', 'subscriptions'), ['sub-DE'])
  assert.deepEqual(await behind(`/churn?${DAYS}`, 'due=', 'subscriptions'), ['sub-BR'])
  assert.deepEqual(await behind(`/experiments?${DAYS}`, 'experiment=experiment&variant=b', 'sessions'), ['in-DE'])
  assert.deepEqual(await behind(`/declines?${DAYS}`, 'reason=lost_card&paid_attempt=any', 'declined'), ['ada'])
  assert.equal((await behind(`/declines?${DAYS}`, 'paid_attempt=none', 'declined')).length, 2)
  const refused = await dashboard.visit(`/subscriptions?${DAYS}&moved=2026-02-31+2026-03-01+churn`, { cookie })
  assert.equal(refused.status, 400)
})

test('paying are those paid for and not ended on the last day, trials those created as one, first the first of a person', async () => {
  const { server, project } = dashboard
  const ids = async (moved: string) => {
    const text = await see(`/subscriptions?moved=${moved.replaceAll(' ', '+')}`)
    return /No subscriptions match these filters/.test(text) ? [] : rowsOf(text, 'subscriptions').map(([id]) => id)
  }
  // The payments are of the 2nd and the 3rd; the one in Germany ends on the 20th.
  assert.deepEqual(await ids('2026-01-01 2026-01-01 paying'), [])
  assert.deepEqual(await ids('2026-01-01 2026-01-02 paying'), ['sub-BR'])
  assert.deepEqual(await ids('2026-01-01 2026-01-19 paying'), ['sub-DE', 'sub-BR'])
  assert.deepEqual(await ids('2026-01-20 2026-01-20 paying'), ['sub-BR'])
  assert.deepEqual(await ids('2026-01-01 2026-01-31 changed'), ['sub-DE', 'sub-BR'])
  await insert(server.db, project, {
    subscriptions: [{ id: 'sub-trial', profile_id: 'in-BR', status: 'trialing' }],
    sessions: [{ id: 'ses-second', profile_id: 'in-BR', created_at: '2026-01-09T12:00:00Z' }],
    transactions: [{ id: 'trn-second', profile_id: 'in-BR', price: 500, created_at: '2026-01-09T12:00:00Z' }],
  })
  assert.deepEqual(await ids('2026-01-01 2026-01-31 trial'), ['sub-trial'])
  assert.deepEqual(await ids('2026-01-01 2026-01-31 converted'), [])
  for (const list of ['sessions', 'payments'] as const) {
    assert.equal(rowsOf(await see(`/${list}?${DAYS}`), list).length, 3, list)
    assert.equal(rowsOf(await see(`/${list}?${DAYS}&first=true`), list).length, 2, list)
  }
  for (const table of ['subscriptions', 'sessions', 'transactions'])
    await server.db.query(
      `delete from ${table} where project_id = $1 and id in ('sub-trial', 'ses-second', 'trn-second')`,
      [project.id],
    )
})

test('a line of records without a value leads to those records', async () => {
  const { server, project } = dashboard
  for (const change of [
    `profiles set country = null where id = 'in-DE'`,
    `sessions set visit_source = null where id = 'ses-DE'`,
    `subscriptions set cancellation_reason = null, funnel_id = case id when 'sub-BR' then 'funnel' end where true`,
  ])
    await server.db.query(`update ${change} and project_id = $1`, [project.id])
  await server.db.query(`update report_transactions set psp_reason_code = null where psp_reason_code = 'lost_card'`)
  await computeAgain()
  for (const name of ['reason', 'country', 'funnel'])
    assert.deepEqual(
      await behind(`/churn?${DAYS}&split=${name}`, `${name}=%28none%29`, 'subscriptions'),
      ['sub-DE'],
      name,
    )
  for (const path of ['/declines', '/charges'])
    assert.deepEqual(await behind(`${path}?${DAYS}`, 'reason=%28none%29', 'declined'), ['ada'], path)
  const only = await see(linksOf(await see(`/revenue?${DAYS}&split=source`)).find((one) => one.includes('source=%28'))!)
  assert.equal(tilesOf(only).Revenue, '$20.00')
  assert.match(only, /<span class="badge flat">source none/)
  assert.equal(rowsOf(await see(`/people?funnel=(none)`), 'people').length, 2)
})

test('a country that is not a code leads to its records', async () => {
  await server.db.query(`update profiles set country = 'unknown' where id = 'in-DE' and project_id = $1`, [project.id])
  await computeAgain()
  assert.deepEqual(await behind(`/churn?${DAYS}&split=country`, 'country=unknown', 'subscriptions'), ['sub-DE'])
})

test('the number of refunds leads to those that were made, and not to one that failed', async () => {
  const { server, project } = dashboard
  const back = `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
      amount, currency_code, status, psp, psp_transaction_type)
    select $1, 'ada', true, db_clock(), gen_random_uuid(), gen_random_uuid(), '2026-01-07T00:00:00Z'::timestamptz + n * interval '1 hour', n, 'USD',
      case n when 1 then 'failed' else 'refunded' end, 'simulator', 'refund' from generate_series(1, 3) n`
  await server.db.query(back, [project.organizationId])
  await computeAgain()
  const page = await see(`/refunds?${DAYS}`)
  assert.equal(tilesOf(page)['Number of refunds'], '2')
  assert.equal(rowsOf(page, 'movements').length, 4)
  const link = linksOf(page).find((one) => one.includes('move=refund'))!
  const counted = await see(link.split('#')[0]!)
  assert.equal(rowsOf(counted, 'movements').length, 2)
  assert.match(counted, /Only refunds that were made\./)
  await server.db.query(
    `delete from report_transactions where organization_id = $1 and psp_transaction_type = 'refund'`,
    [project.organizationId],
  )
  await computeAgain()
})

test('the total of attempts by provider and by account has their acceptance rate', async () => {
  const { server, project } = dashboard
  await server.db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, amount,
       currency_code, status, psp, psp_transaction_type)
     values ($1, 'ada', true, db_clock(), gen_random_uuid(), gen_random_uuid(), '2026-01-08T00:00:00Z', 9, 'USD', 'succeeded', 'paid', 'sale')`,
    [project.organizationId],
  )
  await computeAgain()
  const page = await see(`/charges?${DAYS}`)
  for (const table of ['providers', 'accounts'])
    assert.match(
      page.split(`<table id="${table}">`)[1]!.split('</table>')[0]!,
      /<tfoot>.*>33\.3%<.*>3<.*>1<.*>2</,
      table,
    )
  await server.db.query(`delete from report_transactions where organization_id = $1 and psp = 'paid'`, [
    project.organizationId,
  ])
  await computeAgain()
})

test('revenue by kind has what went back, so that its total is that of the page', async () => {
  const page = await see(`/revenue?${DAYS}&split=kind`)
  const kinds = rowsOf(page, 'kind')
  assert.deepEqual(
    kinds.map(([kind, gross, refunds, chargebacks, net, sales]) =>
      [kind, gross, refunds, chargebacks, net, sales].join(' '),
    ),
    ['new 30 0 0 30 2', 'chargeback 0 0 3 -3 0'],
  )
  assert.match(page.split('<table id="kind">')[1]!.split('</table>')[0]!, /<tfoot>.*\$27\.00/)
  assert.equal(tilesOf(page)['Net revenue'], '$27.00')
})

test('lists behind figures leave out test data, as the figures do, and show it when it is asked for', async () => {
  const { server, project } = dashboard
  await server.db.query(`update profiles set preview = true where project_id = $1 and id = 'in-DE'`, [project.id])
  for (const table of ['sessions', 'payments'] as const) {
    assert.deepEqual(
      rowsOf(await see(`/${table}?${DAYS}`), table).map(([person]) => person),
      ['in-BR'],
    )
    assert.equal(rowsOf(await see(`/${table}?${DAYS}&test=1`), table).length, 2)
  }
  const refunds = `/refunds?${DAYS}&type=chargeback`
  assert.equal(rowsOf(await see(refunds), 'movements').length, 1)
  const setPreview = (preview: boolean) =>
    server.db.query(`update profiles set preview = $2 where project_id = $1 and id = 'in-BR'`, [project.id, preview])
  await setPreview(true)
  await computeAgain()
  assert.equal(tilesOf(await see(refunds)).Disputes, '0')
  assert.match(await see(refunds), /No refunds or disputes of this period match\./)
  assert.equal(rowsOf(await see(`${refunds}&test=1`), 'movements').length, 1)
  await setPreview(false)
  const account = { organization_id: project.organizationId, psp: 'simulator', psp_merchant_id: 'test' }
  await addRow(server.db, 'merchant_accounts', { ...account, is_sandbox: true })
  await server.db.query(
    `update report_transactions set psp_merchant_id = 'test' where organization_id = $1 and psp_transaction_type = 'chargeback'`,
    [project.organizationId],
  )
  await computeAgain()
  assert.equal(tilesOf(await see(refunds)).Disputes, '0')
  assert.match(await see(refunds), /No refunds or disputes of this period match\./)
  assert.equal(tilesOf(await see(`${refunds}&test=1`)).Disputes, '1')
  assert.equal(rowsOf(await see(`${refunds}&test=1`), 'movements').length, 1)
})

test('a tile of today by hour says what the list behind it has besides', async () => {
  const { server, project } = dashboard
  // Half past, so that no hour ends during the test.
  const minutes = (90 - new Date().getUTCMinutes()) % 60
  const created_at = new Date(Date.now() + minutes * 60_000).toISOString()
  await setDatabaseClock(server.env.DATABASE_URL!, `${minutes} minutes`)
  try {
    await insert(server.db, project, {
      profiles: [{ id: 'of-now' }],
      sessions: [{ id: 'ses-of-now', profile_id: 'of-now', created_at }],
    })
    await computeAgain()
    const page = await see('/hours')
    const [, counted, more] = /<dt>Sessions<\/dt><dd><strong>(\d+)<.*?(?:>(\d+) more since \d\d:00<|<\/div>)/s.exec(
      page,
    )!
    const day = created_at.slice(0, 10)
    assert.equal(rowsOf(await see(`/sessions?from=${day}&to=${day}`), 'sessions').length, 1)
    assert.deepEqual([counted, more], ['0', '1'])
  } finally {
    await setDatabaseClock(server.env.DATABASE_URL!, undefined)
  }
})

test('a filter that is chosen stays in its form, also by a value that the list of choices has no room for', async () => {
  const many = await server.project()
  const ids = Array.from({ length: 201 }, (_, n) => `id-${n}`)
  await insert(server.db, many, { ...BASICS, subscriptions: [{ id: 'sub' }] })
  await insert(server.db, many, {
    funnels: ids.map((id) => ({ id, title: `Title ${id}` })),
    products: ids.map((id) => ({ id, name: `Title ${id}` })),
  })
  for (const [path, name] of [
    ['/revenue', 'product'],
    ['/revenue', 'funnel'],
    ['/sessions', 'funnel'],
    ['/payments', 'product'],
    ['/subscriptions', 'product'],
  ] as const) {
    const [, choices] = new RegExp(`<select name="${name}"[^>]*>(.*?)</select>`, 's').exec(
      await see(`${path}?project=${many.id}`),
    )!
    const absent = ids.find((id) => !choices!.includes(`"${id}"`))!
    assert.match(
      await see(`${path}?project=${many.id}&${name}=${absent}`),
      new RegExp(
        `<select name="${name}"[^>]*><option value="">all</option><option value="${absent}" selected>Title ${absent}<`,
      ),
      path,
    )
  }
})
