// What pages show of an empty project, of trouble, of an erased person, and of a refused choice.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { followAll } from '../../../src/data/figures/follow.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { BASICS, insert, type Rows } from '../../support/data.ts'
import { tundishAgain } from '../../support/resident.ts'
import { machineSleeps } from '../../support/time.ts'
import { rowsOf, tilesOf } from './page-numbers.ts'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('write')

const see = (path: string, headers = {}) => dashboard.visit(path, { cookie, headers })
test('a project without figures shows a checklist with the state of each step, and no tiles', async () => {
  const { id, organizationId } = await dashboard.server.project()
  const { text } = await see(`/?project=${id}`)
  const steps = (page: string) =>
    [...page.matchAll(/<li class="(fine|open)"><strong>([^<]+)/g)].map(([, state, title]) => `${title}: ${state}`)
  const titles = ['Records arrive', 'A card is saved', 'First charge', 'A webhook is answered', 'Exchange rates']
  assert.deepEqual(
    steps(text),
    titles.map((title) => `${title}: open`),
  )
  await dashboard.server.db.query(
    `insert into exchange_rates (organization_id, currency_code, day, per_euro) values ($1, 'USD', '2026-01-02', 1.1)`,
    [organizationId],
  )
  await insert(
    dashboard.server.db,
    { id, organizationId },
    { profiles: [{ id: 'profile' }], transactions: [{ id: 'test', sandbox: true }] },
  )
  const later = (await see(`/?project=${id}`)).text
  assert.deepEqual(steps(later), [
    'Records arrive: fine',
    ...titles.slice(1, 4).map((title) => `${title}: open`),
    'Exchange rates: fine',
  ])
  assert.match(later, /There is test data only\. <a href="\/\?[^"]*test=1/)
  assert.ok(text.includes(`href="/merchant-accounts?project=${id}"`))
  // There is nothing to filter either.
  for (const page of [text, (await see(`/subscriptions?project=${id}`)).text])
    assert.doesNotMatch(page, /class="(tile|chooser)"/)
  assert.doesNotMatch((await see(`/funnels?project=${id}`)).text, /From session to payment/)
  const movements = (await see(`/movements?project=${id}&period=12m`)).text
  assert.match(movements, /No paid subscriptions in this period/)
  assert.doesNotMatch(movements, /class="tile"/)
})

test('every page of a project without records says in its first line what it answers; its CSV links name their table', async () => {
  const { id } = await dashboard.server.project()
  const pages = 'funnels revenue subscriptions payments charges refunds credits sessions alerts keys'
  for (const path of pages.split(' '))
    assert.match((await see(`/${path}?project=${id}`)).text, /<h1>[^<]+<\/h1><p class="quiet">[^<]+/, path)
  assert.match((await see(`/sessions?project=${id}`)).text, /Choose a longer period, or fewer filters\./)
  assert.match((await see(`/keys?project=${id}`)).text, /aria-label="CSV: Operator keys">CSV</)
})

test('an organization without a project is offered the first one on every page', async () => {
  await dashboard.visit('/projects/organizations', { cookie, form: { id: 'bare', name: 'Bare' } })
  for (const path of ['/', '/funnels', '/revenue', '/subscriptions'])
    assert.match((await see(`${path}?project=all:bare`)).text, /No projects yet/, path)
})

test('an operator whose organization is not here, as on the shard that it has left, is told what they reach', async () => {
  const { db } = dashboard.server
  for (const role of ['support', 'owner'] as const) {
    const reach = { organizations: ['bare'], projects: [] }
    const { id, key } = await db.tx((query) => createOperator(query, { name: role, role, reach }))
    await db.query(`update operator_keys set organizations = '{gone}' where id = $1`, [id])
    const { text } = await dashboard.visit('/subscriptions', { cookie: await dashboard.signIn(key) })
    assert.match(text, /Your access is limited to organizations gone, and no project of that is here\./)
    assert.doesNotMatch(text, /No projects yet|tundish org create/)
  }
})

test('today begins with what is right now if a charge is in progress for long, else with the figures', async (t) => {
  const { server } = dashboard
  const shop = await server.project()
  await insert(server.db, shop, { ...BASICS, customers: [{ external_id: 'ada', profile_id: 'profile' }] })
  await dashboard.visit(`/settings/figures?project=${shop.id}`, { cookie, form: { sure: 'yes' } })
  await followAll(server.db)
  const first = async () => {
    const { text } = await see(`/?project=${shop.id}`)
    assert.match(text, /class="tile"/)
    return text.indexOf('<h2>Right now</h2>') < text.indexOf('class="tile"') ? 'right now' : 'figures'
  }
  const claim = (ago: string) =>
    server.db.query(
      `insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, status,
         psp, payment_method_token, source_trx_id, provider_key, created_at, next_look_at)
       values ($1, gen_random_uuid(), 'ada', $2, 'key', 1, 'USD', 'processing', 'simulator', 'token', gen_random_uuid(), 'provider key',
         db_clock() - $3::text::interval, db_clock()) on conflict (organization_id, external_id) where status = 'processing'
       do update set created_at = excluded.created_at`,
      [shop.organizationId, shop.id, ago],
    )
  assert.equal(await first(), 'figures')
  await claim('1 second')
  assert.equal(await first(), 'figures')
  await claim('1 hour')
  assert.equal(await first(), 'right now')
  machineSleeps(t, 3_600_000)
  await claim('1 second')
  assert.equal(await first(), 'figures', 'the clock of this machine does not count')
  const person = await see(`/people/profile?project=${shop.id}`)
  assert.equal(rowsOf(person.text, 'orders')[0]![5], 'simulator')
})

test('a key that ends later can be revoked until then, also if the clock of this machine is ahead or behind', async (t) => {
  const { server } = dashboard
  const { id } = await server.project()
  const keys = async (ends: string) => {
    await server.db.query('update secret_keys set expires_at = db_clock() + $2::interval where project_id = $1', [
      id,
      ends,
    ])
    return rowsOf((await see(`/keys?project=${id}`)).text, 'project-keys')[0]!.at(-1)!
  }
  machineSleeps(t, 3_600_000)
  assert.match(await keys('30 minutes'), /Revoke/)
  machineSleeps(t, -7_200_000)
  assert.equal(await keys('-30 minutes'), 'expired')
})

test('today names refunds in progress without a charge, and charges that are only pending at the provider', async () => {
  const { server } = dashboard
  const shop = await server.project()
  const order_id = '01900000-0000-7000-8000-0000000000a1'
  await insert(server.db, shop, {
    ...BASICS,
    customers: [{ external_id: 'ada', profile_id: 'profile' }],
    orders: [{ order_id, external_id: 'ada' }],
  })
  const inProgress = async () =>
    /Charges in progress<\/a> <span>(.*?)<\/span>/s.exec((await see(`/?project=${shop.id}`)).text)![1]
  assert.equal(await inProgress(), 'None.')
  const refund_id = '01900000-0000-7000-8000-0000000000a2'
  const refund = {
    refund_id,
    order_id,
    external_id: 'ada',
    idempotency_key: 'key',
    status: 'processing',
    settled_at: null,
    next_look_at: '2026-01-02T00:00:00Z',
  }
  await insert(server.db, shop, { refunds: [refund] })
  assert.equal(await inProgress(), 'No charges, but 1 refund.')
  const pending = `status = 'processing', settled_at = null, next_look_at = db_clock(), pending_since = db_clock()`
  await server.db.query(`update orders set ${pending} where order_id = $1`, [order_id])
  assert.equal(await inProgress(), '1, pending at the payment provider, and 1 refund.')
})

/** A project with these records, all of 2 January 2026, whose figures are computed. */
async function openShop(records: Rows) {
  const { server } = dashboard
  const shop = await server.project()
  await insert(server.db, shop, records)
  await dashboard.visit(`/settings/figures?project=${shop.id}`, { cookie, form: {} })
  return (page: string, days = 'from=2026-01-02&to=2026-01-02') => see(`${page}?project=${shop.id}&${days}`)
}

const { profiles, products } = BASICS

test('pages say which amounts are missing because they have no value in US dollars', async () => {
  const page = await openShop({
    profiles,
    products,
    transactions: [{ id: 'usd' }, { id: 'eur', currency: 'EUR' }],
    // Of the second currency, one has a value and one has none.
    subscriptions: [
      { id: 'usd' },
      { id: 'eur', currency: 'EUR' },
      { id: 'valued', currency: 'EUR', price: 1500, price_usd: 1700 },
    ],
  })
  for (const path of ['/', '/revenue']) {
    const { text } = await page(path)
    assert.equal(tilesOf(text)['Net revenue'], '$19.99', path)
    assert.match(text, /1 payment, refund or chargeback has no value in US dollars/, path)
    assert.match(text, /Net revenue(?:(?!<\/div>).)*without €19\.99/s, path)
  }
  const { text } = await page('/subscriptions')
  assert.equal(tilesOf(text).MRR, '$36.99')
  assert.match(text, /<dt>MRR(?:(?!<\/div>).)*without €19\.99/s)
  assert.match(text, /The MRR is without €19\.99 of subscriptions: they have no value in US dollars/)
  const complete = await openShop({ profiles, products, transactions: [{ id: 'usd' }], subscriptions: [{ id: 'usd' }] })
  for (const path of ['/', '/revenue', '/subscriptions'])
    assert.doesNotMatch((await complete(path)).text, /no value in US dollars/, path)
})

test('each tile of money, and each rate of it, says itself what it leaves out', async () => {
  const at = { created_at: '2026-01-02T01:00:00Z' }
  const page = await openShop({
    ...BASICS,
    profiles: [...profiles!, { id: 'leaver' }],
    sessions: [{ id: 'visit', profile_id: 'profile', funnel_id: 'funnel', ...at }],
    customers: [{ external_id: 'lacking', profile_id: 'profile' }],
    transactions: [
      { id: 'usd', funnel_id: 'funnel', ...at },
      { id: 'eur', funnel_id: 'funnel', currency: 'EUR', ...at },
      { id: 'gbp', funnel_id: 'funnel', currency: 'GBP', ...at },
      { id: 'valued', funnel_id: 'funnel', currency: 'GBP', price_usd: 2500, ...at },
      { id: 'now', currency: 'SEK', created_at: new Date().toISOString() },
    ],
    subscriptions: [
      { id: 'new', currency: 'EUR', ...at },
      {
        id: 'gone',
        profile_id: 'leaver',
        currency: 'EUR',
        status: 'cancelled',
        created_at: '2025-12-20T00:00:00Z',
        period_ends_at: '2026-01-02T12:00:00Z',
      },
    ],
  })
  const { server } = dashboard
  await server.db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, amount,
       currency_code, status, psp, psp_transaction_type)
     select organization_id, external_id, true, db_clock(), gen_random_uuid(), gen_random_uuid(), made.at::timestamptz, made.amount, made.currency,
       made.status, 'elsewhere', made.type
     from customers, (values ('2026-01-02T02:00:00Z', 5, 'EUR', 'refunded', 'refund'), ('2026-01-02T03:00:00Z', 7, 'EUR', 'failed', 'sale'),
       ('2026-01-02T04:00:00Z', 8, 'USD', 'failed', 'sale')) made (at, amount, currency, status, type)
     where external_id = 'lacking'`,
  )
  await server.db.query(
    `insert into spend (project_id, day, source, campaign, currency_code, amount, amount_usd)
     select project_id, '2026-01-02', source, '', currency, 30, usd from customers,
       (values ('meta', 'EUR', null), ('google', 'EUR', 33.5)) spent (source, currency, usd) where external_id = 'lacking'`,
  )
  const [shop] = await server.db.query(`select project_id from customers where external_id = 'lacking'`)
  await dashboard.visit(`/settings/figures?project=${shop!.project_id}`, { cookie, form: {} })
  await followAll(server.db)
  const LACK: Record<string, Record<string, RegExp>> = {
    '/': { 'Net revenue': /without €14\.99, £19\.99/, MRR: /without €/, 'Refund rate': /without €5\.00/ },
    '/revenue': {
      Revenue: /without €19\.99, £19\.99/,
      Refunds: /without €5\.00/,
      'Revenue per person': /without €19\.99/,
      'Revenue per payer and month': /without €19\.99/,
    },
    '/funnels': { Revenue: /without €19\.99/, 'Revenue per session': /without €19\.99/ },
    '/funnels/funnel': { Revenue: /without €19\.99/, 'Revenue per session': /without €19\.99/ },
    '/refunds': { Refunds: /without €5\.00/, 'Refund rate': /without €5\.00/, 'Chargeback rate': /without €19\.99/ },
    '/movements': { MRR: /without €/, New: /without €19\.99/, Churn: /without −€19\.99/ },
    '/churn': { 'MRR lost': /without −€19\.99/, 'MRR churn': /without −€19\.99/ },
    '/worth': { 'After 1 month': /without €14\.99, £19\.99/ },
    '/acquisition': {
      Spend: /\$33\.50\s+on advertising without €30\.00/,
      'Cost of a customer': /without €30\.00/,
      'Revenue per new person': /without €19\.99, £19\.99/,
      'Return at day 90': /without €14\.99, £19\.99/,
    },
    '/declines': { Declined: /\$8\.00\s+.*without €7\.00/s, 'Not recovered': /without €7\.00/ },
  }
  for (const [path, tiles] of Object.entries(LACK)) {
    const { text } = await page(path)
    for (const [label, lack] of Object.entries(tiles)) {
      const tile = new RegExp(`<dt>(?:<a [^>]*>)?${label}<.*?</div>`, 's').exec(text)?.[0] ?? ''
      assert.match(tile.replace(/<[^>]*>/g, ''), lack, `${path} ${label}`)
    }
  }
  const { text: later } = await page('/revenue', 'from=2026-01-03&to=2026-01-03')
  assert.match(later, /from \$44\.99<\/span> \(without €19\.99, £19\.99\)/)
  const today = /Today so far.*?<dt>.*?Revenue<.*?<\/div>/s.exec((await page('/')).text)![0]
  assert.match(today, /without SEK.19\.99/)
  assert.match(
    (await page('/hours')).text,
    /The revenue of today is without SEK.19\.99, which has no value in US dollars\./,
  )
  const { stdout } = await tundishAgain(['figures', 'today', '--project', String(shop!.project_id)], server.env)
  assert.match(stdout, /sessions week_before +without_usd today/)
})

test('revenue that ceased has fallen by 100%, and an average over no people is none', async () => {
  const page = await openShop({ profiles, transactions: [{ id: 'usd' }] })
  const { text } = await page('/revenue', 'from=2026-01-03&to=2026-01-03')
  assert.match(
    text,
    /<dt>Revenue<\/dt><dd><strong>\$0\.00<\/strong>\s*<span class="quiet"><span class="change poor">−100%</,
  )
  assert.equal(tilesOf((await page('/revenue')).text)['Revenue per person'], '–')
})

test('a period with nothing but a won dispute has a chart', async () => {
  const { id } = await dashboard.server.project()
  await dashboard.server.db.query(
    `insert into figures_sales (project_id, split, day, test, key, subkey, currency, sales, gross, refunds, refunded, chargebacks,
       charged_back, payers, gross_usd, refunded_usd, charged_back_usd, without_usd)
     values ($1, '', '2026-01-02', false, '', '', 'USD', 0, 0, 0, 0, 0, -1000, 0, 0, 0, -1000, 0)`,
    [id],
  )
  const { text } = await see(`/refunds?project=${id}&from=2026-01-02&to=2026-01-03`)
  assert.equal(tilesOf(text).Chargebacks, '−$10.00')
  assert.deepEqual(rowsOf(text, 'money-back')[0], ['2026-01-02', '0', '-10'])
})

test('an audit log without entries is not called filtered', async () => {
  await dashboard.server.db.query('truncate audit_log')
  assert.match((await see('/audit')).text, /No entries yet/)
  assert.match((await see('/audit?target=nobody')).text, /No entries match these filters/)
})

test('replies of an erased person are shown as erased; country and language by their names', async () => {
  const { server } = dashboard
  const shop = await server.project()
  const profiles = [{ id: 'profile', country: 'BR', locale: 'pt' }]
  await insert(server.db, shop, { ...BASICS, profiles, replies: [{ session_id: 'session' }] })
  const path = `/people/profile?project=${shop.id}`
  const known = (await see(path)).text
  assert.match(known, /<dd>Brazil<\/dd>.*<dd>Portuguese<\/dd>.*no answer/s)
  await dashboard.visit(`/people/profile/erase?project=${shop.id}`, { cookie, form: { confirm: 'profile' } })
  const erased = (await see(path)).text
  assert.match(erased, /<span class="quiet">erased<\/span>/)
  assert.doesNotMatch(erased, /no answer|Erase this person/)
})

test('a refused choice leads back to the page it was made on', async () => {
  const refused = '/revenue?from=2026-02-01&to=2026-01-01'
  const { status, text } = await see(refused, { referer: `${dashboard.origin}/revenue?period=12m` })
  assert.equal(status, 400)
  assert.ok(text.includes('<a class="button" href="/revenue?period=12m">Back</a>'))
  assert.doesNotMatch((await see(refused)).text, />Back</)
})
