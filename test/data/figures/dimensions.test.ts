// Dimensions of sessions: what they are read from, what is left out of them, and the figures that are split by them.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'

import { DIMENSIONS } from '../../../src/core/records/visit.ts'
import { describeSome } from '../../../src/data/figures/describe.ts'
import { JsonNumber } from '../../../src/lib/json/read.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { line, type Project } from '../../support/imports.ts'
import { openErasedImports } from '../ingest/erased-imports.ts'

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1'
const CLICK = 'EAIaIQobChMIq4Xv2b3ZhQMVk5RoCR0abcD_BwE'

let project: Project
const imports = await openErasedImports()
after(() => imports.stop())

async function dimensionsOf(id = 'session') {
  const columns = DIMENSIONS.map((name) => `visit_${name} as ${name}`).join(', ')
  const row = await imports.row(`select ${columns} from sessions where project_id = $1 and id = $2`, [project.id, id])
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
}

async function dimensionsFrom(data: Record<string, unknown>) {
  project = await imports.project()
  const { rejects } = await imports.run(project, [line.profile(), line.session(data)])
  assert.deepEqual(rejects, [])
  return dimensionsOf()
}

describe('the dimensions of a session', () => {
  test('come from the parameters of its URL and from the user agent', async () => {
    const query_params = {
      utm_source: 'google',
      utm_medium: 'cpc',
      utm_campaign: '120210000000000',
      utm_content: ['first', 'second'],
      utm_term: ' sleep  better ',
      referrer: 'https://www.example.org/a?b=c',
      variant: 'b',
      gclid: CLICK,
    }
    assert.deepEqual(await dimensionsFrom({ query_params, user_agent: IPHONE }), {
      source: 'google',
      medium: 'cpc',
      campaign: '120210000000000',
      content: 'first',
      term: 'sleep better',
      referrer: 'example.org',
      variant: 'b',
      device: 'mobile',
      browser: 'Safari',
      os: 'iOS',
    })
  })

  test('have every digit of a parameter that is a number, also one that a float would round', async () => {
    const query_params = {
      utm_campaign: new JsonNumber('120210000000000123'),
      utm_content: [new JsonNumber('1.50')],
      utm_term: 7,
    }
    const expected = { campaign: '120210000000000123', content: '1.50', term: '7' }
    assert.deepEqual(await dimensionsFrom({ query_params }), expected)
  })

  test('come from the URL if there are no parameters', async () => {
    const origin = 'https://quiz.example.com/start?utm_source=meta&utm_campaign=spring'
    assert.deepEqual(await dimensionsFrom({ origin }), { source: 'meta', campaign: 'spring' })
  })

  test('are the first values of parameters that the URL repeats', async () => {
    const origin = 'https://quiz.example.com/start?utm_source=meta&utm_campaign=spring&utm_source=google'
    assert.deepEqual(await dimensionsFrom({ origin }), { source: 'meta', campaign: 'spring' })
  })

  test('are those of the line if it has them', async () => {
    const data = { source: 'podcast', device: 'tablet', query_params: { utm_source: 'google', utm_medium: 'cpc' } }
    assert.deepEqual(await dimensionsFrom(data), { source: 'podcast', medium: 'cpc', device: 'tablet' })
  })

  test('are cut to 100 characters', async () => {
    const { campaign } = await dimensionsFrom({ campaign: '😀'.repeat(150) })
    assert.equal(campaign, '😀'.repeat(100))
  })

  for (const [what, text] of [
    ['an e-mail address', 'ada@example.com'],
    ['an encoded e-mail address', 'ada%40example.com'],
    ['a phone number', '+49 151 12345678'],
    ['a phone number without a plus', '(030) 123-45678'],
    ['the id of a click', CLICK],
    ['a UUID', '0190f9a0-1111-7222-8333-444455556666'],
    ['a key', 'sk_live_4eC39HqLyjWDarjtT1zdp7dc'],
    ['nothing', '   '],
  ] as const)
    test(`leave out ${what}`, async () => {
      assert.deepEqual(await dimensionsFrom({ source: text, query_params: { utm_campaign: text, utm_term: text } }), {})
    })

  for (const text of ['summer_sale_2026_us_lookalike_3', 'black-friday', '2026-11-25', 'Größe 42', '23851234567890123'])
    test(`keep the campaign "${text}"`, async () => {
      assert.deepEqual(await dimensionsFrom({ campaign: text }), { campaign: text })
    })

  test('are no fields of the line for what is not text', async () => {
    project = await imports.project()
    const { rejects } = await imports.run(project, [line.profile(), line.session({ source: 7 })])
    assert.equal(rejects[0]!.reason, 'session.source must be a string')
  })

  test('stay at an erasure, which wipes the click id, and when a line about the erased session comes again', async () => {
    const query_params = { utm_source: 'google', gclid: CLICK }
    await dimensionsFrom({ query_params, user_agent: IPHONE, tracking_cookies: { _fbc: CLICK } })
    const whole = { source: 'google', device: 'mobile', browser: 'Safari', os: 'iOS' }
    await imports.erase(project, 'profile')
    assert.deepEqual(await dimensionsOf(), whole)
    const stored = await imports.row('select row_to_json(s)::text as all from sessions s where project_id = $1', [
      project.id,
    ])
    assert.ok(!stored.all!.includes(CLICK))
    await imports.run(project, [line.session({})])
    assert.deepEqual(await dimensionsOf(), whole)
  })

  test('keep their values if a line changes other fields alone', async () => {
    await dimensionsFrom({ query_params: { utm_source: 'google' }, variant: 'a' })
    const { rejects } = await imports.run(project, [line.session({ user_agent: IPHONE })], { merge: true })
    assert.deepEqual(rejects, [])
    const { source, variant, device } = await dimensionsOf()
    assert.deepEqual([source, variant, device], ['google', 'a', 'mobile'])
  })

  test('of sessions that were stored before are read in the background', async () => {
    await dimensionsFrom({ query_params: { utm_source: 'google' }, user_agent: IPHONE })
    const none = DIMENSIONS.map((name) => `visit_${name} = null`).join(', ')
    await imports.db.query(`update sessions set ${none} where project_id = $1`, [project.id])
    await imports.db.query('insert into sessions_to_describe (project_id) values ($1)', [project.id])
    await assertExact(imports.db, project.id)
    assert.deepEqual(await figuresOf(imports.db, project.id, 'sessions', { dimension: 'source' }), [
      { key: '', sessions: 1 },
    ])
    const stamp = await imports.column(project, 'sessions', 'updated_at', 'session')
    while (await describeSome(imports.db));
    assert.deepEqual(await dimensionsOf(), { source: 'google', device: 'mobile', browser: 'Safari', os: 'iOS' })
    assert.equal(await imports.column(project, 'sessions', 'updated_at', 'session'), stamp)
    await assertExact(imports.db, project.id)
    assert.deepEqual(await figuresOf(imports.db, project.id, 'sessions', { dimension: 'source' }), [
      { key: 'google', sessions: 1 },
    ])
    assert.equal(await imports.count(project, 'sessions_to_describe'), 0)
  })
})

describe('figures by dimension', () => {
  test('give all money of a person to its first session, or to the last before the payment', async () => {
    project = await imports.project()
    const session = (id: string, day: string, utm_source: string, country: string) =>
      line.session({ id, created_at: `2026-03-${day}T10:00:00Z`, query_params: { utm_source }, country })
    const paid = (id: string, day: string, price: number) =>
      line.transaction({ id, created_at: `2026-03-${day}T12:00:00Z`, price, currency: 'USD', price_usd: price })
    await imports.run(project, [
      line.product(),
      line.profile(),
      line.profile({ id: 'alone' }),
      session('second', '10', 'google', 'US'),
      paid('early', '05', 1000),
      paid('middle', '11', 200),
      paid('late', '20', 30),
      { record: 'transaction', data: { ...dataOf(paid('without', '20', 4)), profile_id: 'alone' } },
      line.customer({ external_id: 'cus', profile_id: 'profile' }),
      line.merchant_account({}),
    ])
    await assertExact(imports.db, project.id)
    // An earlier session comes later.
    await imports.run(project, [session('first', '01', 'meta', 'DE'), session('third', '19', 'bing', 'US')])
    await assertExact(imports.db, project.id)
    const by = (dimension: string, filter?: { dimension: string; value: string }) =>
      figuresOf(imports.db, project.id, 'revenue customers', { dimension, ...(filter && { filters: [filter] }) })
    assert.deepEqual(await by('source'), [
      { key: '', revenue: 0.04, customers: 1 },
      { key: 'meta', revenue: 12.3, customers: 1 },
    ])
    assert.deepEqual(await by('last_source'), [
      { key: '', revenue: 0.04, customers: 1 },
      { key: 'bing', revenue: 0.3, customers: 0 },
      { key: 'google', revenue: 2, customers: 0 },
      { key: 'meta', revenue: 10, customers: 1 },
    ])
    const sessions = (dimension: string, filter: string, value: string) =>
      figuresOf(imports.db, project.id, 'sessions people visitors', {
        dimension,
        filters: [{ dimension: filter, value }],
      })
    assert.deepEqual(await sessions('source', 'country', 'US'), [
      { key: 'bing', sessions: 1, people: 0, visitors: 0 },
      { key: 'google', sessions: 1, people: 0, visitors: 0 },
    ])
    assert.deepEqual(await sessions('country', 'source', 'meta'), [{ key: 'DE', sessions: 1, people: 1, visitors: 1 }])
  })

  test('keep the 1,000 most frequent values of a day, and sum the others', async () => {
    project = await imports.project()
    const visits = Array.from({ length: 1100 }, (_, n) =>
      line.session({ id: `s${n}`, campaign: `c${String(n).padStart(4, '0')}`, source: n < 600 ? 'a' : 'b' }),
    )
    const often = Array.from({ length: 3 }, (_, n) => line.session({ id: `often${n}`, campaign: 'z often' }))
    await imports.run(project, [line.profile(), ...visits, ...often])
    await assertExact(imports.db, project.id)
    const found = await figuresOf(imports.db, project.id, 'sessions', { dimension: 'campaign' })
    assert.equal(found.length, 1001)
    const of = (key: string) => found.find((one) => one.key === key)?.sessions
    assert.deepEqual([of('other'), of('z often'), of('c0998'), of('c0999')], [101, 3, 1, undefined])
    const ofSource = await figuresOf(imports.db, project.id, 'sessions', {
      dimension: 'campaign',
      filters: [{ dimension: 'source', value: 'a' }],
    })
    assert.equal(
      ofSource.reduce((sum, { sessions }) => sum + sessions!, 0),
      600,
    )
  })
})

const dataOf = (one: ReturnType<typeof line.transaction>) => (one as { data: object }).data
