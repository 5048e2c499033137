// Closed months of the finance report: nothing changes them, and what changes later is a correction of the first open month.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startBilling } from '../../support/billing.ts'
import { assertExact } from '../../support/figures.ts'
import { type Line, load, uuid } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { type Json, ok } from '../../support/server.ts'
import { assertTied } from './tie-out.ts'

const billing = await startBilling()
after(() => billing.stop())
const { server, db } = billing
const shop = await billing.organization('books')

const payment = (n: number, at: string, amount: number, more: object = {}) => ({
  record: 'payment',
  data: {
    ...{ external_id: 'ada', order_id: uuid(n), trx_id: uuid(1000 + n), trx_created_at: at, psp_date: at, amount },
    ...{
      currency_code: 'USD',
      status: 'succeeded',
      psp: 'elsewhere',
      psp_merchant_id: 'main',
      psp_transaction_type: 'sale',
    },
    ...{ psp_transaction_id: `ch_${n}`, ...more },
  },
})

const loadHere = (...lines: Line[]) => load(server.app, shop.projectId, lines)

const get = (path: string) => ok(server.admin(`/organizations/books/finance${path}`))
/** All that the report has of a month, except what describes people and what was paid for. */
const kept = async (month: string) => {
  const { rows } = await get(`/rows?month=${month}&limit=1000`)
  const own = rows.map(({ external_id: _1, email: _2, country: _3, ...row }: Json) => row)
  return { report: await get(`?month=${month}`), rows: own }
}
const corrections = async (month: string): Promise<string[]> => {
  const { rows } = await get(`/rows?month=${month}&limit=1000`)
  return rows
    .filter(({ correction }: Json) => correction)
    .map(({ kind, amount, currency_code, amount_usd, fee, paid_at, booked_at }: Json) =>
      [kind, amount, currency_code, amount_usd, fee, paid_at.slice(0, 10), booked_at.slice(0, 10)].join(' '),
    )
    .sort()
}
const close = (month: string) =>
  server.admin('/organizations/books/finance/months', { method: 'POST', body: { month } })

await loadHere(
  {
    record: 'profile',
    data: { id: 'pro_ada', created_at: '2025-01-01T00:00:00Z', email: 'ada@example.com', country: 'DE' },
  },
  { record: 'customer', data: { external_id: 'ada', profile_id: 'pro_ada', email: 'ada@example.com' } },
  payment(1, '2025-09-10T10:00:00Z', 10),
  payment(2, '2025-09-11T10:00:00Z', 20, { currency_code: 'EUR' }),
  payment(3, '2025-09-12T10:00:00Z', 5, {
    status: 'refunded',
    psp_transaction_type: 'refund',
    psp_transaction_id: 're_3',
  }),
  payment(4, '2025-10-05T10:00:00Z', 40),
  payment(5, '2025-11-05T10:00:00Z', 50),
)

test('400 and 409 for a month that cannot be closed', async () => {
  const now = new Date().toISOString().slice(0, 7)
  assert.equal((await close('2025-13')).status, 400)
  const runs = await close(now)
  assert.deepEqual([runs.status, runs.body.message.split(':')[0]], [409, `${now} is not over`])
})

test('a closed month never changes, and late changes are corrections in the first open month', async () => {
  const before = await kept('2025-09')
  const { status, body } = await close('2025-09')
  assert.deepEqual([status, body.rows], [200, 3])
  const closed = await kept('2025-09')
  assert.deepEqual(closed.report.closed.length, 1)
  assert.deepEqual({ ...closed.report, closed: [] }, before.report)
  assert.deepEqual(closed.rows, before.rows)
  const refused = await close('2025-09')
  assert.deepEqual([refused.status, refused.body.message], [409, '2025-09 is closed already.'])
  assert.equal((await close('2025-11')).body.message, 'Months are closed one after the other: close 2025-10 first.')
  assert.equal((await close('2025-08')).body.message, '2025-08 is before the first closed month: it stays as it is.')

  // By another process: a payment that is late, one with another amount, a value in dollars, a refund that failed, one more account.
  await loadHere(
    payment(6, '2025-09-20T10:00:00Z', 7.77),
    payment(1, '2025-09-10T10:00:00Z', 11.5),
    payment(2, '2025-09-11T10:00:00Z', 20, { currency_code: 'EUR', amount_usd: 22 }),
    payment(3, '2025-09-30T10:00:00Z', 5, {
      ...{ trx_id: uuid(2003), status: 'failed', psp_transaction_type: 'refund', psp_transaction_id: 're_3' },
    }),
  )
  await db.query(
    `insert into provider_fees (organization_id, psp, psp_merchant_id, transaction_id, move, entry_id, fee, currency_code, entered_at)
     values ('books', 'elsewhere', 'main', 'ch_1', 'sale', 'txn_1', 0.59, 'USD', '2025-09-10T10:00:00Z')`,
  )
  const call = { key: shop.projectKey, method: 'POST', body: { profile_ids: ['pro_ada'] } }
  assert.equal((await server.api('/profiles/anonymize', call)).status, 200)
  assert.deepEqual(await kept('2025-09'), closed)
  assert.deepEqual(await corrections('2025-10'), [
    'refund_failed 5 USD 5  2025-09-30 2025-10-01',
    'sale 0 EUR 22  2025-09-11 2025-10-01',
    'sale 1.5 USD 1.5 -0.59 2025-09-10 2025-10-01',
    'sale 7.77 USD 7.77  2025-09-20 2025-10-01',
  ])
  const october = (await get('?month=2025-10')).currencies.find((one: Json) => one.currency_code === 'USD')
  assert.deepEqual([october.gross, october.corrected, october.net], [40, 14.27, 54.27])
  assert.deepEqual(await corrections('2025-11'), [])
  await assertExact(db, shop.projectId)
  assert.ok((await assertTied(server, 'books', ['2025-09', '2025-10', '2025-11'])).has('after_closing'))
})

test('the command asks first, and closes in another process; corrections are booked once', async () => {
  const run = (...words: string[]) => tundishAgain(['finance', ...words, '--org', 'books'], server.env)
  const before = await kept('2025-10')
  const asked = await run('close', '--month', '2025-10')
  assert.notEqual(asked.code, 0)
  assert.match(asked.stderr, /^This cannot be undone, .* add --yes\.$/m)
  const { code, stdout } = await run('close', '--month', '2025-10', '--yes', '--json')
  assert.deepEqual([code, JSON.parse(stdout).rows], [0, 5])
  assert.deepEqual((await kept('2025-10')).rows, before.rows)
  assert.deepEqual(await corrections('2025-11'), [])
  // Back to what it was: the correction of the correction.
  await loadHere(payment(1, '2025-09-10T10:00:00Z', 10))
  assert.deepEqual((await kept('2025-10')).rows, before.rows)
  assert.deepEqual(await corrections('2025-11'), ['sale -1.5 USD -1.5 0 2025-09-10 2025-11-01'])
  const table = async (...words: string[]) => {
    const { stdout } = await tundishAgain(['report', '--org', 'books', ...words, '--rows'], server.env)
    const [header, ...lines] = stdout.trim().split('\n')
    return [header!.split(/ {2,}/).at(-1), ...lines.map((line) => line.trim().split(/ {2,}/).at(-1))]
  }
  assert.deepEqual((await table('--month', '2025-11')).toSorted(), ['correction', 'false', 'true'])
  assert.equal((await table('--month', '2025-09'))[0], 'order_id', 'without corrections nothing is marked')
  const months = JSON.parse((await run('months', '--json')).stdout).data
  assert.deepEqual(
    months.map(({ month, rows, corrections: n }: Json) => [month, rows, n]),
    [
      ['2025-10', 5, 4],
      ['2025-09', 3, 0],
    ],
  )
  const entries = await db.query(
    `select 1 from audit_log where action = 'finance.close_asked' and target = 'organization books'`,
  )
  assert.ok(entries.length >= 2)
})

test('the fee of a payment that came late is unknown until it is known', async () => {
  await loadHere(payment(8, '2025-10-20T10:00:00Z', 12))
  const fees = async () => {
    const [total] = (await get('?month=2025-11')).totals.filter((one: Json) => one.currency_code === 'USD')
    return [total.corrected, total.fees, total.fees_unknown]
  }
  assert.deepEqual(await fees(), [10.5, [{ fee: 0, fee_currency: 'USD' }], 2])
  await db.query(
    `insert into provider_fees (organization_id, psp, psp_merchant_id, transaction_id, move, entry_id, fee, currency_code, entered_at)
     values ('books', 'elsewhere', 'main', 'ch_8', 'sale', 'txn_8', 0.5, 'USD', '2025-10-20T10:00:00Z'),
       ('books', 'elsewhere', 'main', 'ch_5', 'sale', 'txn_5', 1, 'USD', '2025-11-05T10:00:00Z')`,
  )
  const [total] = (await get('?month=2025-11')).totals
  assert.deepEqual([total.net, total.fees_unknown, total.net_after_fees], [60.5, 0, 59])
})

test('two closings at once: one closes, the other is refused', async () => {
  const both = await Promise.all([close('2025-11'), close('2025-11')])
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409])
})
