// Every record of the data API to the last field: full, and with everything unknown that may be.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { insert } from '../../support/data.ts'
import { startTestServer } from '../../support/server.ts'
import { walk } from '../../support/walk.ts'

// PostgreSQL drops zeros at the end of a fraction: all lengths of it come out with six digits.
const [T0, T1, T2, T3, T4] = ['000000', '100000', '120000', '123456', '000001'].map(
  (fraction) => `2026-01-31T23:59:59.${fraction}Z`,
)

const funnel = {
  id: 'fun"quiz"/%',
  title: 'Schlaf\t"Quiz" \\ 睡眠 💤',
  alias: 'quiz',
  type: 'cancellation',
  status: 'draft',
  environment: 'staging',
  version: 7,
  variation_count: 2,
  tags: ['music', 'ä"'],
  created_at: T0,
  updated_at: T1,
  last_published_at: T2,
  deleted_at: null,
}
const deletedFunnel = {
  ...{ id: 'gone', title: 'Gone', alias: null, type: 'default', status: 'archived', environment: 'production' },
  ...{ version: 1, variation_count: 1, tags: [], created_at: T4, updated_at: T4 },
  ...{ last_published_at: null, deleted_at: T3 },
}
const experiment = { id: 'exp', title: 'Two prices', alias: 'prices', enabled: true }
const profile = {
  ...{ id: 'pro', created_at: T2, updated_at: T3, email: 'Ada@Example.com', phone: '+49 30 1', country: 'DE' },
  ...{ locale: 'de', funnel_id: funnel.id, preview: true, integrations: { crm: { id: '5' } }, anonymized_at: null },
}
const unknownProfile = {
  ...{ id: 'pro-0', created_at: T4, updated_at: T4, email: null, phone: null, country: null, locale: null },
  ...{ funnel_id: null, preview: false, integrations: {}, anonymized_at: T3 },
}
const session = {
  ...{ id: 'ses', created_at: T1, updated_at: T2, profile_id: 'pro', funnel_id: funnel.id, funnel_version: 7 },
  ...{ experiment_id: 'exp', locale: 'de', origin: 'https://shop.example/?a=1', user_agent: 'Mozilla/5.0' },
  query_params: { utm_source: 'x', list: [1, 2.5, null] },
  attributes: {
    ...{ ip: '192.0.2.1', country: 'DE', region_code: 'BE', city: 'Berlin', postal_code: '10115' },
    ...{ timezone: 'Europe/Berlin', locale_code: 'de-DE' },
  },
  tracking_cookies: { _fbp: 'fb.1' },
}
const unknownSession = {
  ...{ id: 'ses-0', created_at: T4, updated_at: T4, profile_id: 'pro', funnel_id: null, funnel_version: null },
  ...{ experiment_id: null, locale: null, origin: null, user_agent: null, query_params: {} },
  attributes: {
    ...{ ip: null, country: null, region_code: null, city: null, postal_code: null, timezone: null, locale_code: null },
  },
  tracking_cookies: {},
}
const price = {
  ...{ id: 'price', external_id: null, type: 'recurring', amount: 1999, currency: 'USD', status: 'active' },
  ...{ created_at: T0, interval: 'month', interval_count: 1, trial_type: 'paid' },
  trial: { type: 'paid', duration_interval: 'day', duration_count: 7, price: 100, currency: 'USD' },
}
const product = {
  ...{ id: 'prod', name: 'Monthly plan', status: 'active', platform: 'web', external_id: 'x-1', description: 'All.' },
  ...{ statement_descriptor: 'TUNDISH', entitlement: 'premium', metadata: { tier: 2 }, created_at: T1, updated_at: T4 },
  prices: [price],
}
const unknownProduct = {
  ...{ id: 'prod-0', name: '', status: 'archived', platform: null, external_id: null, description: null },
  ...{ statement_descriptor: null, entitlement: null, metadata: {}, created_at: T0, updated_at: T0, prices: [] },
}
const subscription = {
  ...{ id: 'sub', psp_id: 'psp-1', status: 'trialing', renews: true, sandbox: true, created_at: T3, updated_at: T4 },
  ...{ billing_interval: 'year', billing_interval_count: 2, price: 9007199254740991, currency: 'JPY', price_usd: 0 },
  ...{ funnel_version: 7, payment_provider: 'stripe', period_starts_at: T1, period_ends_at: T2 },
  profile: { id: 'pro', created_at: T2, email: 'Ada@Example.com', preview: true },
  product: { id: 'prod', name: 'Monthly plan', status: 'active' },
}
const details = {
  funnel: { id: funnel.id, title: funnel.title, alias: 'quiz', type: 'cancellation' },
  funnel_locale: 'de',
  experiment,
  session: { id: 'ses', created_at: T1, locale: 'de', user_agent: 'Mozilla/5.0' },
  ...{ trial_offer: { days: 7 }, trial_transaction_id: 'trn', paused_at: T0, cancelled_at: T1 },
  ...{
    cancellation_reason: 'too loud',
    renewed_at: T2,
    upgrades_to: 'prod-0',
    custom_entitlement: 'gold',
    price_note: 'Plus usage.',
  },
}
const unknownSubscription = {
  ...{ id: 'sub-0', psp_id: null, status: 'created', renews: false, sandbox: false, created_at: T0, updated_at: T0 },
  ...{ billing_interval: 'day', billing_interval_count: 1, price: 0, currency: 'USD', price_usd: null },
  ...{ funnel_version: null, payment_provider: null, period_starts_at: null, period_ends_at: null },
  profile: { id: 'pro-0', created_at: T4, email: null, preview: false },
  product: { id: 'prod-0', name: '', status: 'archived' },
}
const unknownDetails = {
  ...{ funnel: null, funnel_locale: null, experiment: null, session: null, trial_offer: null },
  ...{ trial_transaction_id: null, paused_at: null, cancelled_at: null, cancellation_reason: null },
  ...{ renewed_at: null, upgrades_to: null, custom_entitlement: null, price_note: null },
}
const transaction = {
  ...{ id: 'trn', created_at: T3, session_id: 'ses', profile_id: 'pro', funnel_id: funnel.id, funnel: details.funnel },
  ...{ funnel_version: 7, currency: 'USD', price: -1999, price_usd: -1999, sandbox: true, funnel_locale: 'de' },
  experiment_id: 'exp',
}
const unknownTransaction = {
  ...{ id: 'trn-0', created_at: T0, session_id: null, profile_id: 'pro', funnel_id: null, funnel: null },
  ...{ funnel_version: null, currency: 'JPY', price: 500, price_usd: null, sandbox: false, funnel_locale: null },
  experiment_id: null,
}
const reply = { session_id: 'ses', element_type: 'Input', screen_id: 's-2', screen_index: 2, element_id: 'e' }
const replies = [
  { ...reply, screen_id: 's-10', screen_index: 10, value: 'ten' },
  { ...reply, element_id: 'f', value: ['a', 'b"'], element_custom_id: 'mood', screen_custom_id: 'moods' },
  { ...reply, value: null },
]

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
const column = ({ attributes, ...row }: typeof session | typeof unknownSession) => ({ ...row, ...attributes })
const sold = ({
  profile: { id: profile_id },
  product: { id: product_id },
  ...row
}: typeof subscription | typeof unknownSubscription) => ({ ...row, profile_id, product_id })
const { funnel: _funnel, experiment: _experiment, session: _session, ...ofDetails } = details
await insert(server.db, project, {
  funnels: [funnel, deletedFunnel],
  experiments: [{ ...experiment, created_at: T0, updated_at: T0 }],
  profiles: [{ ...profile, password_hash: 'hunter2' }, unknownProfile],
  sessions: [column(session), column(unknownSession)],
  replies,
  products: [product, unknownProduct],
  subscriptions: [
    { ...sold(subscription), ...ofDetails, funnel_id: funnel.id, experiment_id: 'exp', session_id: 'ses' },
    sold(unknownSubscription),
  ],
  transactions: [transaction, unknownTransaction].map(({ funnel: _, ...row }) => ({
    ...row,
    subscription_id: 'sub',
  })),
})

describe('records', () => {
  /** Field for field, in this order, and not one more. */
  const same = async (path: string, expected: unknown) => {
    const { status, text, headers } = await project.get(path)
    assert.equal(text, JSON.stringify(expected))
    assert.deepEqual([status, headers['content-type']], [200, 'application/json; charset=utf-8'])
  }
  const page = (...data: unknown[]) => ({ data, pagination: { has_more: false, total: data.length } })

  test('a funnel', async () => {
    await same('/funnels?filter[deleted]=true', page(deletedFunnel, funnel))
    await same('/funnels', page(funnel))
    await same(`/funnels/${encodeURIComponent(funnel.id)}`, funnel)
  })

  test('a deleted funnel is still found by its id', () => same('/funnels/gone', deletedFunnel))

  test('a profile, never with its password hash', async () => {
    await same('/profiles', page(profile, unknownProfile))
    await same('/profiles/pro', profile)
    await same('/profiles/pro-0', unknownProfile)
  })

  test('a profile whose id is the path of the erasure, which is still erased by POST', async () => {
    const other = await server.project()
    await insert(server.db, other, { profiles: [{ id: 'anonymize' }] })
    const [read, unknown] = [await other.get('/profiles/anonymize'), await project.get('/profiles/anonymize')]
    assert.deepEqual([read.status, read.body.id, unknown.status], [200, 'anonymize', 404])
    const body = { profile_ids: ['anonymize'] }
    assert.equal((await server.api('/profiles/anonymize', { key: other.key, method: 'POST', body })).status, 200)
    assert.notEqual((await other.get('/profiles/anonymize')).body.anonymized_at, null)
  })

  test('a session, in detail with its replies in screen order', async () => {
    await same('/sessions', page(session, unknownSession))
    const inOrder = [replies[2], replies[1], replies[0]].map((one) => ({
      element_id: one?.element_id,
      screen_id: one?.screen_id,
      value: one?.value,
    }))
    await same('/sessions/ses', { ...session, replies: inOrder })
    await same('/sessions/ses-0', { ...unknownSession, replies: [] })
  })

  test('the replies of a session, in screen order', async () => {
    const element = { id: 'e', type: 'Input', custom_id: null }
    const screen = { id: 's-2', index: 2, custom_id: null }
    await same('/sessions/ses/replies', [
      { element, screen, state: { value: null } },
      {
        element: { ...element, id: 'f', custom_id: 'mood' },
        screen: { ...screen, custom_id: 'moods' },
        state: { value: ['a', 'b"'] },
      },
      { element, screen: { ...screen, id: 's-10', index: 10 }, state: { value: 'ten' } },
    ])
    await same('/sessions/ses-0/replies', [])
  })

  test('a product with its prices', async () => {
    await same('/products', page(product, unknownProduct))
    await same('/products/prod', product)
    await same('/products/prod-0', unknownProduct)
  })

  test('a subscription, in detail with where it was sold', async () => {
    await same('/subscriptions', page(subscription, unknownSubscription))
    await same('/subscriptions/sub', { ...subscription, ...details })
    await same('/subscriptions/sub-0', { ...unknownSubscription, ...unknownDetails })
  })

  test('any text is returned unchanged', async () => {
    const unicode = fc.string({
      unit: fc.oneof(
        fc.constantFrom(...'"\\/\b\f\n\r\t\u007f\u2028\ud7ff'),
        fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      ),
    })
    const texts = fc.sample(unicode, 300).filter((text) => !text.includes('\0'))
    const writers = await server.project()
    const products = texts.map((name, n) => ({
      id: `p-${String(n).padStart(3, '0')}`,
      name,
      metadata: { [name]: name },
    }))
    await insert(server.db, writers, { products })
    const items = await walk(writers, '/products', { limit: '100' })
    assert.deepEqual(
      items.reverse().map(({ name, metadata }) => ({ name, metadata })),
      products.map(({ name, metadata }) => ({ name, metadata })),
    )
  })

  test('a transaction', () => same('/transactions', page(transaction, unknownTransaction)))
})
