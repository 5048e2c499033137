// The tie-out of a month: the dashboard's revenue is that of the finance report and the named differences, to the cent.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { openRandom } from '../../../src/lib/seeded-random.ts'
import { startBilling } from '../../support/billing.ts'
import { assertExact } from '../../support/figures.ts'
import { type Line, load, uuid } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { type Json, ok } from '../../support/server.ts'
import { assertTied } from './tie-out.ts'

const billing = await startBilling()
after(() => billing.stop())
const { server, db } = billing

let made = 0
const line = (record: string, data: object): Line => ({ record, data })
const person = (id: string, more: object = {}): Line[] => [
  line('profile', { id, created_at: '2025-01-01T00:00:00Z', email: `${id}@example.com`, ...more }),
  line('customer', { external_id: `user_${id}`, profile_id: id }),
]
const transaction = (profile_id: string, created_at: string, price: number, more: object = {}): Line => {
  made += 1
  return line('transaction', {
    id: `trn_${made}`,
    profile_id,
    created_at,
    price,
    currency: 'USD',
    price_usd: null,
    ...more,
  })
}
const payment = (id: string, trx_created_at: string, amount: number, more: object = {}): Line => {
  made += 1
  const ids = { external_id: `user_${id}`, order_id: uuid(made), trx_id: uuid(90_000 + made) }
  const how = { status: 'succeeded', psp: 'elsewhere', psp_merchant_id: 'main', psp_transaction_type: 'sale' }
  return line('payment', {
    ...ids,
    ...how,
    trx_created_at,
    psp_date: trx_created_at,
    amount,
    currency_code: 'USD',
    ...more,
  })
}

async function loadExact(projectId: string, lines: Line[]): Promise<void> {
  await db.query(
    `insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, created_at, updated_at)
     select organization_id, 'sandbox', 'main', true, db_clock(), db_clock() from projects where id = $1`,
    [projectId],
  )
  await load(server.app, projectId, lines)
  await assertExact(db, projectId)
}

const get = (path: string) => ok(server.admin(`/organizations/${path}`))

describe('one of each difference', async () => {
  const shop = await billing.organization('tied')
  await loadExact(shop.projectId, [
    ...['ada', 'bob', 'cid'].flatMap((id) => person(id)),
    ...person('eve', { preview: true }),
    // Tied: of the same moment, and a payment of a customer without a profile.
    transaction('ada', '2025-10-03T10:00:00Z', 1000),
    payment('ada', '2025-10-03T10:00:02Z', 10),
    payment('none', '2025-10-04T10:00:00Z', 3.5),
    transaction('ada', '2025-10-05T10:00:00Z', 700),
    payment('bob', '2025-10-06T10:00:00Z', 8.25),
    transaction('cid', '2025-10-07T10:00:00Z', 500),
    payment('cid', '2025-10-07T11:00:00Z', 4.99),
    // Of September here and of October there, and of October here and of November there.
    transaction('bob', '2025-09-30T23:59:59Z', 2000),
    payment('bob', '2025-10-01T00:00:01Z', 20),
    transaction('bob', '2025-10-31T23:59:59Z', 300),
    payment('bob', '2025-11-01T00:00:01Z', 3),
    transaction('cid', '2025-10-09T10:00:00Z', 1200),
    payment('cid', '2025-10-09T10:00:00Z', 12, { psp: 'sandbox' }),
    transaction('eve', '2025-10-10T10:00:00Z', 1300),
    payment('eve', '2025-10-10T10:00:00Z', 13),
    transaction('cid', '2025-10-11T10:00:00Z', 1400, { currency: 'EUR', price_usd: 1500 }),
    payment('cid', '2025-10-11T10:00:00Z', 14, { currency_code: 'EUR' }),
    transaction('ada', '2025-10-12T10:00:00Z', 1600, { currency: 'EUR', price_usd: 1700 }),
    payment('ada', '2025-10-12T10:00:00Z', 16, { currency_code: 'EUR', amount_usd: 17.5 }),
  ])

  test('each has its name and its money', async () => {
    const body = await get('tied/finance/tie-out?month=2025-10')
    assert.deepEqual(
      body.differences.map(({ name, currency_code, rows, amount, amount_usd }: Json) =>
        [name, currency_code, rows, amount, amount_usd].join(' '),
      ),
      [
        'transaction_without_payment USD 1 7 7',
        'payment_without_transaction USD 1 -8.25 -8.25',
        'other_amount USD 1 0.01 0.01',
        'other_month USD 2 -17 -17',
        'test_payment USD 1 12 12',
        'test_transaction USD 1 -13 -13',
        'without_rate EUR 1 0 15',
        'other_rate EUR 1 0 -0.5',
      ],
    )
    assert.deepEqual(body.currencies, [
      {
        ...{ currency_code: 'EUR', dashboard: 30, finance: 30, difference: 0 },
        ...{ dashboard_without_usd: 0, finance_without_usd: 14, dashboard_without_rate: 0, finance_without_rate: 14 },
      },
      {
        ...{ currency_code: 'USD', dashboard: 40.5, finance: 59.74, difference: -19.24 },
        ...{ dashboard_without_usd: 0, finance_without_usd: 0, dashboard_without_rate: 0, finance_without_rate: 0 },
      },
    ])
    assert.deepEqual(body.usd, { dashboard: 72.5, finance: 77.24, difference: -4.74 })
    assert.deepEqual(body.reporting, body.usd)
    await assertTied(server, 'tied', ['2025-09', '2025-10', '2025-11'])
  })

  test('the rows of a difference name the payment and the transaction', async () => {
    const { data } = await get('tied/finance/tie-out/rows?month=2025-10&name=other_amount')
    assert.equal(data.length, 1)
    const [{ transaction_id, trx_id, dashboard, finance, difference, profile_id, external_id }] = data
    assert.ok(transaction_id && trx_id)
    assert.deepEqual([dashboard, finance, difference, profile_id, external_id], [5, 4.99, 0.01, 'cid', 'user_cid'])
  })

  test('the rows come in pages, which together are all of them', async () => {
    const path = 'tied/finance/tie-out/rows?month=2025-10'
    const whole = await get(path)
    assert.equal(whole.next_after, null)
    const pages: Json[] = []
    for (let after: number | null = 0; after !== null; ) {
      const page: Json = await get(`${path}&limit=2&after=${after}`)
      pages.push(...page.data)
      after = page.next_after
    }
    assert.ok(pages.length > 4)
    assert.deepEqual(pages, whole.data)
  })

  test('the command prints the same', async () => {
    const run = async (...words: string[]) =>
      JSON.parse((await tundishAgain(['finance', ...words, '--org', 'tied', '--json'], server.env)).stdout)
    assert.deepEqual(await run('tie-out', '2025-10'), await get('tied/finance/tie-out?month=2025-10'))
    assert.deepEqual(await run('differences', '2025-10'), await get('tied/finance/tie-out/rows?month=2025-10'))
  })

  test('one project alone, 404 for that of another organization, 400 for a wrong month', async () => {
    const other = await billing.organization('other')
    const one = await get(`tied/finance/tie-out?month=2025-10&project_id=${shop.projectId}`)
    assert.deepEqual(one, await get('tied/finance/tie-out?month=2025-10'))
    const path = '/organizations/tied/finance/tie-out'
    assert.equal((await server.admin(`${path}?month=2025-10&project_id=${other.projectId}`)).status, 404)
    assert.equal((await server.admin(`${path}?month=2025-13`)).status, 400)
    assert.equal((await server.admin(path)).status, 400)
  })
})

test('a charge from before its customer had a profile, which is a preview, is a test transaction', async () => {
  const shop = await billing.organization('previewed')
  await loadExact(shop.projectId, [
    ...person('fay', { preview: true }),
    payment('fay', '2025-10-10T10:00:00Z', 13),
    payment('fay', '2025-10-11T10:00:00Z', 4, { status: 'refunded', psp_transaction_type: 'refund' }),
  ])
  await db.query('update report_transactions set imported = false where organization_id = $1', [shop.id])
  await db.query(`insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)`, [
    shop.projectId,
  ])
  await assertExact(db, shop.projectId)
  const { differences } = await get('previewed/finance/tie-out?month=2025-10')
  assert.deepEqual(
    differences.map(({ name, rows, amount }: Json) => [name, rows, amount]),
    [['test_transaction', 1, -13]],
  )
  await assertTied(server, 'previewed', ['2025-10'])
})

test('random histories tie out in every month', async () => {
  const { next: random, pick } = openRandom(Number(process.env.SEED ?? 7))
  const shop = await billing.organization('random')
  const people = Array.from({ length: 6 }, (_, n) => `p${n}`)
  const lines = people.flatMap((id, n) => person(id, n === 0 ? { preview: true } : {}))
  const at = () => new Date(Date.UTC(2025, 5, 28) + Math.floor(random() * 66 * 86_400) * 1000).toISOString()
  for (let n = 0; n < 400; n += 1) {
    const [id, cents, time, currency] = [pick(people), pick([500, 999, 1000]), at(), pick(['USD', 'EUR', 'JPY'])]
    const usd = pick([null, cents, cents + 1])
    const major = currency === 'JPY' ? cents : cents / 100
    const there = pick([time, time, new Date(Date.parse(time) + 90_000_000 * (random() - 0.5)).toISOString()])
    const sandbox = random() < 0.1
    if (random() < 0.85) lines.push(transaction(id, time, cents, { currency, price_usd: usd, sandbox }))
    if (random() < 0.85)
      lines.push(
        payment(pick([id, id, id, 'nobody']), there, pick([major, major, major + 1]), {
          ...{ currency_code: currency, psp: pick(['elsewhere', 'elsewhere', 'sandbox']) },
          amount_usd: pick([null, usd === null ? null : usd / 100, 12.34]),
        }),
      )
  }
  await loadExact(shop.projectId, lines)
  const names = await assertTied(server, 'random', ['2025-06', '2025-07', '2025-08', '2025-09'])
  for (const name of ['other_amount', 'test_payment', 'test_transaction', 'without_rate', 'other_rate'])
    assert.ok(names.has(name), name)

  // In another reporting currency, which some days have no rates of.
  await db.query(
    `insert into exchange_rates (organization_id, currency_code, day, per_euro)
     select 'random', code, day, per_euro * (1 + extract(day from day) / 100)
     from (values ('EUR', 1), ('USD', 1.1), ('JPY', 163.27)) c (code, per_euro), generate_series('2025-06-20'::date, '2025-08-05', '3 days') day`,
  )
  const set = { method: 'PUT', body: { currency: 'EUR' } }
  assert.equal((await server.admin(`/projects/${shop.projectId}/reporting`, set)).status, 200)
  await assertExact(db, shop.projectId)
  const again = await assertTied(server, 'random', ['2025-06', '2025-07', '2025-08', '2025-09'])
  assert.ok(again.has('other_rate'))
  const { reporting_currency, reporting, currencies } = await get('random/finance/tie-out?month=2025-08')
  assert.equal(reporting_currency, 'EUR')
  assert.notEqual(reporting.difference, 0)
  assert.ok(currencies.some((one: Json) => one.dashboard_without_rate > 0 && one.finance_without_rate > 0))
})
