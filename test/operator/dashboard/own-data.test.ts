// What the dashboard shows of the first data of a project: sandbox data, other currencies, skipped steps, findings of one project.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { followAll } from '../../../src/data/figures/follow.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { BASICS, insert } from '../../support/data.ts'
import { load } from '../../support/imports.ts'
import { tilesOf } from './page-numbers.ts'

const NOW = new Date().toISOString()
const line = (record: string, data: object) => ({ record, data: { created_at: NOW, ...data } })
const person = { profile_id: 'pro_1' }
const RECORDS = [
  line('funnel', { id: 'quiz', title: 'Quiz', status: 'published', version: 1 }),
  line('profile', { id: 'pro_1', email: 'eve@example.com', funnel_id: 'quiz' }),
  line('session', { id: 'ses_1', funnel_id: 'quiz', ...person }),
  line('transaction', { id: 'trn_1', session_id: 'ses_1', price: 1999, currency: 'USD', sandbox: true, ...person }),
  line('transaction', { id: 'trn_2', session_id: 'ses_1', funnel_id: 'quiz', price: 500, currency: 'EUR', ...person }),
]

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('read')
const [one, two] = [await dashboard.server.project(), await dashboard.server.project()]
const shop = one.id
const other = two.id
await load(dashboard.server.app, shop, RECORDS)
await followAll(dashboard.server.db)

const see = async (path: string) => (await dashboard.visit(path, { cookie })).text

test('Today counts the sandbox data that it leaves out, and its link includes it', async () => {
  const without = await see(`/?project=${shop}`)
  assert.equal(tilesOf(without).Sales, '1')
  const [, href] = /Sandbox and preview data is left out: 1 sale\. <a href="([^"]+)">Include it</.exec(without)!
  const whole = await see(href!.replaceAll('&amp;', '&'))
  assert.equal(tilesOf(whole).Sales, '2')
  assert.equal(tilesOf(whole)['Net revenue'], '$19.99')
  assert.match(whole, /Sandbox and preview data is included\. <a href="[^"]+">Exclude it</)
})

test('every page with sums in US dollars says which payments have no value in US dollars', async () => {
  for (const path of ['/', '/funnels', '/funnels/quiz', '/revenue', '/refunds'])
    assert.match(
      await see(`${path}?project=${shop}`),
      /1 payment, refund or chargeback has no value in US dollars/,
      path,
    )
})

test('a step that more sessions reach than the one before has no share of it above 100%', async () => {
  const text = await see(`/funnels?project=${shop}`)
  assert.match(text, /100\.0% of all, more than the previous step/)
  const shares = [...text.matchAll(/([\d.]+)%/g)].map(([, share]) => Number(share))
  assert.ok(shares.length > 3)
  assert.deepEqual(
    shares.filter((share) => share > 100),
    [],
  )
})

test('Doctor shows a finding of a project on the pages of that project only, and counts the others', async () => {
  await dashboard.server.db.query(
    `insert into figure_failures (project_id, family, day, code, failed_at, next_attempt_at)
     values ($1, 'sales', '2026-01-31', '22003', db_clock(), db_clock() + interval '1 day')`,
    [other],
  )
  // The page Today has begun an examination before.
  await see(`/doctor?project=${other}&now=1`)
  const finding = `The figures of project ${other} on 2026-01-31 cannot be computed`
  assert.ok((await see(`/doctor?project=${other}`)).includes(finding))
  const here = await see(`/doctor?project=${shop}`)
  assert.ok(!here.includes(finding))
  assert.match(here, /1 finding of other organizations and projects: choose them, or run/)
})

test('one is counted as one: a currency that a tile leaves out, a payment of the forecast, a day', async () => {
  const { db } = dashboard.server
  const many = await dashboard.server.project()
  const due = new Date(Date.now() + 3 * 86_400_000).toISOString()
  await insert(db, many, {
    ...BASICS,
    subscriptions: [
      { id: 'sub', currency: 'JPY', created_at: NOW, period_ends_at: due },
      ...[1, 2, 3].map((n) => ({ id: `over_${n}`, status: 'expired', created_at: NOW, period_ends_at: NOW })),
    ],
    transactions: ['CHF', 'GBP', 'JPY', 'KWD'].map((currency) => ({ id: currency, currency, created_at: NOW })),
  })
  await db.query('update projects set reporting_currency = $2 where id = $1', [many.id, 'EUR'])
  await db.query(`insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)`, [many.id])
  await followAll(db)
  assert.match(await see(`/revenue?project=${many.id}`), /without CHF.19\.99, £19\.99, ¥1,999 and 1 more currency</)
  assert.match(await see(`/churn?project=${many.id}`), /1 payment is left out: it has no value in EUR\./)
  assert.match(await see(`/settings?project=${many.id}`), /give amounts their value in US dollars and in EUR\./)
  assert.match(
    await see(`/revenue?project=${many.id}&from=2024-02-29&to=2024-02-29`),
    /<summary>29 Feb 2024<\/summary>/,
  )
})

test('Customer worth says what its table leaves out, also where no month is over and where it has no tiles', async () => {
  const { db } = dashboard.server
  const francs = await dashboard.server.project()
  await insert(db, francs, {
    ...BASICS,
    transactions: [1, 2].map((n) => ({ id: `t${n}`, currency: 'CHF', created_at: NOW })),
  })
  await db.query(`insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)`, [francs.id])
  await followAll(db)
  for (const choice of ['split=cohort', 'cohort=week', 'split=product', 'split=source'])
    assert.match(
      await see(`/worth?project=${francs.id}&period=12m&${choice}`),
      /<strong>Revenue is without CHF.39\.98: no value in US dollars\.<\/strong>/,
      choice,
    )
})
