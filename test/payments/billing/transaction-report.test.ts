// The payment report: its filters and limits, and the walk that returns every row exactly once whatever commits meanwhile.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable } from '../../../src/lib/pg/errors.ts'
import type { Query } from '../../../src/lib/pg/types.ts'
import { addReportRows, type ReportRow } from '../../../src/payments/billing/ledger/report-rows.ts'
import { noDetails } from '../../../src/payments/providers/provider.ts'
import { addPayment, type Organization, startShop } from '../../support/billing.ts'

const { billing, shop } = await startShop({ DATABASE_CONNECTIONS: '20' })
const user = await shop.customer()

const report = (body: object) =>
  shop.post('/transaction_report', { last_transaction_date: '2000-01-01T00:00:00Z', ...body })

const row = (organization_id: string, external_id: string): ReportRow => ({
  organization_id,
  external_id,
  order_id: randomUUID(),
  amount: '1.00',
  amount_usd: null,
  currency_code: 'USD',
  status: 'succeeded',
  psp_transaction_type: 'sale',
  psp: 'simulator',
  psp_merchant_id: null,
  psp_customer_id: null,
  region: null,
  payment_method_token: null,
  details: noDetails,
})

describe('what it returns', () => {
  test('rows later than the date, oldest first, at most limit', async () => {
    for (let n = 0; n < 3; n++) await shop.charge(user)
    const all = (await report({})).body.transactions
    assert.deepEqual(
      all,
      all.toSorted((a: typeof all, b: typeof all) => (a.trx_created_at < b.trx_created_at ? -1 : 1)),
    )
    assert.equal(new Set(all.map(({ trx_created_at }: { trx_created_at: string }) => trx_created_at)).size, all.length)
    assert.deepEqual((await report({ limit: 2 })).body.transactions, all.slice(0, 2))
    const later = await report({ last_transaction_date: all[1].trx_created_at })
    assert.deepEqual(later.body.transactions, all.slice(2))
    const offset = all[1].trx_created_at.replace('Z', '+00:00')
    assert.deepEqual((await report({ last_transaction_date: offset })).body.transactions, all.slice(2))
  })

  test('100 rows unless the limit says otherwise', async () => {
    const other = await billing.organization()
    const customer = await other.customer({ at: '1999-01-01T00:00:00Z' })
    const rows = Array.from({ length: 101 }, () => row(other.id, customer))
    await billing.db.tx((query) => addReportRows(query, rows))
    assert.deepEqual([(await other.report()).length, (await other.report({ limit: 500 })).length], [100, 101])
  })

  test('of one order, subscription or one-off; null is no filter', async () => {
    const ids = {
      subs_id: randomUUID(),
      oneoff_id: randomUUID(),
      order_id: await addPayment(billing.db, shop.id, user, {}),
    }
    await billing.db.query(
      'update report_transactions set meta_subs_id = $1, meta_oneoff_id = $2 where order_id = $3',
      Object.values(ids),
    )
    for (const [name, id] of Object.entries(ids)) {
      assert.deepEqual(
        (await report({ [name]: id })).body.transactions.map((one: { order_id: string }) => one.order_id),
        [ids.order_id],
      )
      assert.deepEqual((await report({ [name]: id.toUpperCase() })).body.transactions.length, 1)
      assert.deepEqual((await report({ [name]: randomUUID() })).body.transactions, [])
    }
    assert.equal((await report(ids)).body.transactions.length, 1)
    assert.equal((await report({ ...ids, order_id: randomUUID() })).body.transactions.length, 0)
    const nulls = { subs_id: null, oneoff_id: null, order_id: null }
    assert.deepEqual((await report(nulls)).body, (await report({})).body)
  })

  test('of a subscription or one-off as its id was imported, whatever its case', async () => {
    for (const [name, column] of [
      ['subs_id', 'meta_subs_id'],
      ['oneoff_id', 'meta_oneoff_id'],
    ] as const) {
      // Not "AB": the two would differ in case only.
      const upper = `CD${randomUUID().slice(2).toUpperCase()}`
      const mixed = `Ab${upper.slice(2)}`
      for (const id of [upper, mixed]) {
        const order = await addPayment(billing.db, shop.id, user, {})
        await billing.db.query(`update report_transactions set ${column} = $1 where order_id = $2`, [id, order])
        const found = async (asked: string) =>
          (await report({ [name]: asked })).body.transactions.map((one: { order_id: string }) => one.order_id)
        assert.deepEqual(await found(id), [order])
        if (id === upper) assert.deepEqual(await found(id.toLowerCase()), [order])
      }
    }
  })

  test('never another organization’s', async () => {
    const other = await billing.organization()
    assert.deepEqual(await other.report(), [])
  })

  test('400 that names what is wrong', async () => {
    for (const [body, message] of [
      [{ last_transaction_date: undefined }, /last_transaction_date is required/],
      [
        { last_transaction_date: '2026-01-01' },
        /^last_transaction_date must be an RFC 3339 date-time such as 2026-01-01T00:00:00Z, got "2026-01-01"\.$/,
      ],
      [
        { last_transaction_date: '2026-01-01T00:00:59.999999999999999999Z' },
        /^last_transaction_date has more than 6 fraction digits, got "2026-01-01T.*"\.$/,
      ],
      [{ last_transaction_date: '2026-04-31T00:00:00Z' }, /^last_transaction_date has an impossible date, got /],
      [{ last_transaction_date: 5 }, /last_transaction_date/],
      [{ limit: 0 }, /limit must be at least 1/],
      [{ limit: 501 }, /limit must be at most 500/],
      [{ limit: '5' }, /limit must be an integer/],
      [{ limit: 1.5 }, /limit must be an integer/],
      [{ order_id: 'x' }, /order_id/],
      [{ subs_id: `urn:uuid:${randomUUID()}` }, /subs_id/],
      [{ oneoff_id: 5 }, /oneoff_id/],
      [{ status: 'failed' }, /"status"/],
    ] as [object, RegExp][]) {
      const response = await report(body)
      assert.equal(response.status, 400, JSON.stringify(body))
      assert.match(response.body.message, message)
    }
  })

  test('the limit is judged by the digits sent', async () => {
    const limited = (limit: string) =>
      shop.post('/transaction_report', `{"last_transaction_date": "2000-01-01T00:00:00Z", "limit": ${limit}}`)
    for (const limit of ['1e2', '1E2', '1e-0', '2.0000000000000000001', '99.99999999999999999999']) {
      const { status, headers, body } = await limited(limit)
      assert.deepEqual([status, headers['x-error-code']], [400, 'invalid_property'], limit)
      assert.equal(body.message, `limit must be a whole number without an exponent, got ${limit}.`)
    }
    for (const limit of ['2', '2.0']) assert.equal((await limited(limit)).body.transactions.length, 2, limit)
  })
})

describe('the walk', () => {
  /** Walks until `done`, and once more, with pages of 3. */
  async function walk(organization: Organization, done: () => boolean): Promise<string[]> {
    const seen: string[] = []
    let last = '2015-01-01T00:00:00Z'
    for (let finished = false; ; ) {
      const { status, body } = await organization.post('/transaction_report', { last_transaction_date: last, limit: 3 })
      // A database on a busy machine: the client asks again.
      if (status === 503) continue
      const { transactions } = body
      for (const { trx_id, trx_created_at } of transactions) {
        seen.push(trx_id)
        last = trx_created_at
      }
      if (transactions.length > 0) continue
      if (finished) return seen
      finished = done()
      await sleep(1)
    }
  }

  /** Adds one row to three, and holds its transaction open for a while before it commits or rolls back. */
  async function slowly(organization: Organization, customer: string, n: number): Promise<void> {
    const rows = Array.from({ length: 1 + (n % 3) }, () => row(organization.id, customer))
    const work = async (query: Query) => {
      // Now and then the database's clock jumps back: the stamps must not.
      if (n % 5 === 0) await query(`select set_config('tundish.clock_offset', '-1 hour', true)`)
      await sleep(n % 7)
      await addReportRows(query, rows)
      await sleep(n % 4)
      if (n % 9 === 0) throw new Error('rolled back on purpose')
    }
    for (;;) {
      const error = await billing.db.tx(work).catch((thrown) => thrown)
      if (!error || /on purpose/.test(error.message)) return
      // On a busy machine a connection may be given up: what did not come about is done again.
      if (!isUnavailable(error)) throw error
      const stored = await billing.db.query('select 1 from report_transactions where order_id = $1', [
        rows[0]!.order_id,
      ])
      if (stored.length > 0) return
    }
  }

  test('returns every row exactly once while writers hold transactions open and commit out of order', async () => {
    const other = await billing.organization()
    const customer = await other.customer()
    await billing.db.query('delete from report_transactions where organization_id = $1', [other.id])
    let writing = true
    const writers = Array.from({ length: 12 }, async (_, writer) => {
      for (let n = 0; n < 15; n++) await slowly(other, customer, writer * 15 + n)
    })
    const walks = [walk(other, () => !writing), walk(other, () => !writing)]
    await Promise.all(writers)
    writing = false
    const rows = await billing.db.query(
      'select trx_id from report_transactions where organization_id = $1 order by trx_created_at',
      [other.id],
    )
    assert.equal(rows.length, 340)
    for (const seen of await Promise.all(walks))
      assert.deepEqual(
        seen,
        rows.map(({ trx_id }) => trx_id),
      )
  })
})
