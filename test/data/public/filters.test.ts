// Every filter alone and with others, against a model of the lists in memory.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { type Columns, insert } from '../../support/data.ts'
import { column } from '../../support/rows.ts'
import { startTestServer } from '../../support/server.ts'
import { walk } from '../../support/walk.ts'

const ROWS = 90
const STATUSES = ['created', 'trialing', 'active', 'paused', 'cancelled', 'expired', 'unpaid']
// Each line holds one address in several cases.
const EMAILS = [
  ['Ada@Example.com', 'ada@example.com', 'ADA@EXAMPLE.COM'],
  ['straße@example.de', 'STRAẞE@example.de'],
  ['strasse@example.de', 'STRASSE@EXAMPLE.DE'],
  ['Σίσυφος@example.gr', 'ΣΊΣΥΦΟΣ@EXAMPLE.GR'],
  ['i@example.com', 'I@EXAMPLE.com'],
  ['ı@example.com'],
]
const TITLES = ['Größe finden', 'GRÖẞE', 'GRÖSSE', 'Sleep quiz', '100% SURE', 'a_b', 'back\\slash', "it's", '睡眠']
const PARTS = ['größe', 'GRÖSSE', 'SLEEP', 'quiz', '%', '_', '\\', "'", '睡', 'zzz', ' ']

const pick = <T>(values: readonly T[], n: number) => values[n % values.length] as T
const instant = (n: number) => `2026-01-01T00:00:00.${String(n).padStart(6, '0')}Z`
const lower = (text: string) => text.toLowerCase()
const lineOf = (email: unknown) => EMAILS.findIndex((line) => line.includes(String(email)))

const profiles: Columns[] = Array.from({ length: 24 }, (_, n) => ({
  id: `profile-${n}`,
  email: n % 5 === 4 ? null : pick(EMAILS.flat(), n * 7),
  funnel_id: n % 3 === 2 ? null : `funnel-${n % 3}`,
  created_at: instant(n % 5),
  updated_at: instant(n % 7),
}))
const funnels: Columns[] = Array.from({ length: 24 }, (_, n) => ({
  id: `funnel-${n}`,
  title: pick(TITLES, n * 3),
  alias: n % 4 === 3 ? null : `alias-${n % 4}`,
  type: pick(['default', 'cancellation', 'Default', 'own kind'], n),
  deleted_at: n % 5 === 0 ? instant(1) : null,
  created_at: instant(n % 5),
}))
const products: Columns[] = [0, 1, 2].map((n) => ({ id: `product-${n}`, created_at: instant(n) }))
const sessions: Columns[] = Array.from({ length: 40 }, (_, n) => ({
  id: `session-${n}`,
  profile_id: `profile-${n % 6}`,
  funnel_id: n % 4 === 3 ? null : `funnel-${n % 4}`,
  created_at: instant(n % 5),
  updated_at: instant(n % 7),
}))
const subscriptions: Columns[] = Array.from({ length: ROWS }, (_, n) => ({
  id: `sub-${n}`,
  status: pick(STATUSES, n * 5),
  profile_id: `profile-${(n * 5) % 24}`,
  product_id: `product-${n % 3}`,
  funnel_id: n % 5 === 4 ? null : `funnel-${n % 5}`,
  payment_provider: pick(['stripe', 'Stripe', 'paypal', null], n),
  created_at: instant(n % 11),
  updated_at: instant((n * 3) % 13),
}))
const transactions: Columns[] = Array.from({ length: 40 }, (_, n) => ({
  id: `trn-${n}`,
  profile_id: 'profile-0',
  subscription_id: n % 3 === 2 ? null : `sub-${n % 3}`,
  created_at: instant(n % 5),
  updated_at: instant(n % 7),
}))

interface Filter {
  values: string[]
  matches: (row: Columns, value: string) => boolean
}
const equals = (column: string, values: string[]): Filter => ({
  values,
  matches: (row, value) => row[column] === value,
})
const emailOf = (row: Columns) => ('email' in row ? row : profiles.find(({ id }) => id === row.profile_id))?.email
const email: Filter = {
  values: [...EMAILS.flat(), 'nobody@example.com'],
  matches: (row, value) => emailOf(row) !== null && lineOf(emailOf(row)) === lineOf(value),
}
const instants = [0, 3, 5, 9, 20].map(instant)
const synced: Record<string, Filter> = {
  'updated_at.from': { values: instants, matches: (row, value) => String(row.updated_at) >= value },
  'updated_at.to': { values: instants, matches: (row, value) => String(row.updated_at) < value },
}
const ids = (kind: string) => [0, 1, 2, 3, 99].map((n) => `${kind}-${n}`)

const LISTS: Record<string, { rows: Columns[]; filters: Record<string, Filter>; standing?: string }> = {
  funnels: {
    rows: funnels,
    filters: {
      title: { values: PARTS, matches: (row, value) => lower(String(row.title)).includes(lower(value)) },
      alias: equals('alias', ['alias-0', 'alias-1', 'ALIAS-1', 'alias']),
      type: equals('type', ['default', 'cancellation', 'own kind', 'none']),
      deleted: { values: ['true', 'false'], matches: (row, value) => value === 'true' || row.deleted_at === null },
    },
    standing: 'deleted',
  },
  profiles: { rows: profiles, filters: { email, funnel_id: equals('funnel_id', ids('funnel')), ...synced } },
  sessions: {
    rows: sessions,
    filters: {
      profile_id: equals('profile_id', ids('profile')),
      funnel_id: equals('funnel_id', ids('funnel')),
      ...synced,
    },
  },
  subscriptions: {
    rows: subscriptions,
    filters: {
      profile_id: equals('profile_id', ids('profile')),
      psp: equals('payment_provider', ['stripe', 'paypal', 'STRIPE']),
      funnel_id: equals('funnel_id', ids('funnel')),
      product_id: equals('product_id', ids('product')),
      status: equals('status', STATUSES),
      email,
      created_after: { values: instants, matches: (row, value) => String(row.created_at) > value },
      ...synced,
    },
  },
  transactions: { rows: transactions, filters: { subscription_id: equals('subscription_id', ids('sub')), ...synced } },
}

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
const other = await server.project()
const rows = { funnels, profiles, products, sessions, subscriptions, transactions }
// The same records in another project must never be found.
for (const one of [project, other]) await insert(server.db, one, rows)

describe('filters', () => {
  test('a + in filter[email] that is not encoded is a +, in both lists', async () => {
    const shop = await server.project()
    await insert(server.db, shop, {
      profiles: [{ id: 'plus', email: 'Ada+shop@example.com' }],
      products: [{ id: 'product' }],
      subscriptions: [{ id: 'of-plus', profile_id: 'plus' }],
    })
    for (const [list, id] of Object.entries({ profiles: 'plus', subscriptions: 'of-plus' })) {
      for (const email of ['ada+shop@example.com', 'ada%2Bshop@example.com']) {
        const { body } = await server.api(`/${list}?filter[email]=${email}`, { key: shop.key })
        assert.deepEqual(
          body.data.map((one: Columns) => one.id),
          [id],
          `${list} ${email}`,
        )
      }
    }
  })

  for (const [list, { rows, filters, standing }] of Object.entries(LISTS)) {
    const model = (given: Record<string, string>): string[] => {
      const all = standing && !(standing in given) ? { ...given, [standing]: 'false' } : given
      const kept = rows.filter((row) =>
        Object.entries(all).every(([name, value]) => (filters[name] as Filter).matches(row, value)),
      )
      const bySync = Object.keys(given).some((name) => name.startsWith('updated_at.'))
      const place = (row: Columns) => `${bySync ? row.updated_at : row.created_at} ${row.id}`
      const ordered = kept.sort((a, b) => (place(a) < place(b) ? -1 : 1))
      return (bySync ? ordered : ordered.reverse()).map(({ id }) => String(id))
    }
    const check = async (given: Record<string, string>, limit: number) => {
      const query = Object.fromEntries(Object.entries(given).map(([name, value]) => [`filter[${name}]`, value]))
      const items = await walk(project, `/${list}`, { ...query, limit: String(limit) })
      const expected = model(given)
      assert.deepEqual(column(items, 'id'), expected)
      const { total } = (await project.get(`/${list}`, { ...query, limit: '1' })).body.pagination
      assert.equal(total, expected.length)
      return expected.length
    }

    for (const [name, { values }] of Object.entries(filters)) {
      test(`/${list} by ${name} alone finds what the model finds, for each of its values`, async () => {
        const found = []
        for (const value of values) found.push(await check({ [name]: value }, 50))
        assert.ok(found.some((n) => n > 0) && found.some((n) => n < rows.length), 'The filter does something.')
      })
    }

    test(`/${list} by any filters at any limit finds what the model finds`, async () => {
      const choices = Object.entries(filters).map(([name, { values }]) => [name, fc.constantFrom(...values)] as const)
      const given = fc.record(Object.fromEntries(choices), { requiredKeys: [] }) as fc.Arbitrary<Record<string, string>>
      await fc.assert(
        fc.asyncProperty(given, fc.integer({ min: 1, max: 40 }), async (filtered, limit) => {
          await check(filtered, limit)
        }),
        { numRuns: 60 },
      )
    })
  }
})
