// The finance report: signs, sums by month, currency and provider, and that they agree with the transaction report.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { settled, startBilling } from '../../support/billing.ts'
import { type Line, load, uuid } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column, columns } from '../../support/rows.ts'
import { type Json, ok } from '../../support/server.ts'

const billing = await startBilling()
after(() => billing.stop())
const shop = await billing.organization('shop')
let rows = 0
await loadHistory()

/** A payment line of an import; the type and the status say what it is. */
function payment(at: string, amount: number, more: object = {}): Line {
  rows += 1
  const ids = { external_id: `customer-${rows % 3}`, order_id: uuid(rows), trx_id: uuid(1000 + rows) }
  const money = { amount, currency_code: 'USD', status: 'succeeded', psp: 'simulator', psp_transaction_type: 'sale' }
  return { record: 'payment', data: { ...ids, ...money, trx_created_at: at, ...more } }
}

/** History of two months in three currencies at two providers, and a charge of today with a partial refund. */
async function loadHistory(): Promise<void> {
  const refund = { status: 'refunded', psp_transaction_type: 'refund' }
  await load(billing.server.app, shop.projectId, [
    payment('2025-09-30T23:59:59.999999Z', 0.1),
    payment('2025-10-01T00:00:00Z', 0.2),
    payment('2025-10-31T23:59:59.999999Z', 0.1),
    payment('2025-10-05T10:00:00Z', 100),
    payment('2025-10-06T10:00:00Z', 30.25, refund),
    payment('2025-10-07T10:00:00Z', 12.5, { ...refund, order_id: uuid(77), psp_transaction_id: 're_1' }),
    payment('2025-10-09T10:00:00Z', 12.5, {
      ...refund,
      status: 'failed',
      order_id: uuid(77),
      psp_transaction_id: 're_1',
    }),
    payment('2025-10-10T10:00:00Z', 50, { ...refund, psp_transaction_type: 'chargeback' }),
    payment('2025-10-12T10:00:00Z', 50, { psp_transaction_type: 'chargeback_reversal' }),
    payment('2025-10-13T10:00:00Z', 20, { ...refund, psp_transaction_type: 'chargeback' }),
    payment('2025-10-14T10:00:00Z', 9, { status: 'failed' }),
    payment('2025-10-14T11:00:00Z', 9, { ...refund, status: 'failed' }),
    payment('2025-10-14T12:00:00Z', 9, { psp_transaction_type: 'authorization' }),
    payment('2025-10-15T10:00:00Z', 5000, { currency_code: 'JPY', psp: 'elsewhere', external_id: '=HYPERLINK("x")' }),
    payment('2025-10-15T11:00:00Z', 1.005, { currency_code: 'KWD' }),
    payment('2025-11-01T00:00:00Z', 7),
  ])
  const customer = await shop.customer()
  const { body } = await settled(() => shop.charge(customer, { amount: '19.99', idempotency_key: 'one' }))
  await settled(() => shop.refund(customer, body.order_id, { amount: '5.01', idempotency_key: 'back' }))
}

const get = (path: string) => billing.server.admin(`/organizations/${path}`)

const OCTOBER = 'shop/finance?month=2025-10'

describe('the finance report', () => {
  test('sums a month by currency and merchant account, refunds and chargebacks negative', async () => {
    const { body } = await get(OCTOBER)
    assert.deepEqual([body.from, body.to, body.test, body.closed], ['2025-10-01', '2025-10-31', false, []])
    const nothing = { refunds: 0, refunded: 0, refunds_failed: 0, chargebacks: 0, charged_back: 0 }
    const none = {
      ...nothing,
      chargeback_reversals: 0,
      psp_merchant_id: null,
      provider_account: null,
      corrections: 0,
      corrected: 0,
      fees: [],
      fees_unknown: 1,
      net_after_fees: null,
      without_money: 0,
    }
    const [yen, dinar, dollar] = [
      { currency_code: 'JPY', psp: 'elsewhere', payments: 1, gross: 5000, net: 5000 },
      { currency_code: 'KWD', psp: 'simulator', payments: 1, gross: 1.005, net: 1.005 },
      { currency_code: 'USD', psp: 'simulator', payments: 3, gross: 100.3, net: 50.05 },
    ].map((given) => ({ month: '2025-10', ...none, ...given }))
    const moved = {
      fees_unknown: 9,
      refunds: 2,
      refunded: -30.25,
      refunds_failed: 1,
      chargebacks: 2,
      charged_back: -20,
    }
    const unknown = { gross: 0, refunded: 0, charged_back: 0, corrected: 0, net: 0 }
    // Without another reporting currency both are the same.
    const valued = (sums: Record<string, number>, count: number, without: number) => ({
      ...Object.fromEntries(
        Object.entries(sums).flatMap(([name, sum]) => [
          [`${name}_usd`, sum],
          [`${name}_reported`, sum],
        ]),
      ),
      ...{ without_usd: count, net_without_usd: without, without_rate: count, net_without_rate: without },
      reporting_currency: 'USD',
    })
    assert.deepEqual(body.totals, [
      { ...yen, ...valued(unknown, 1, 5000) },
      { ...dinar, ...valued(unknown, 1, 1.005) },
      {
        ...dollar,
        ...moved,
        chargeback_reversals: 1,
        without_money: 3,
        ...valued({ gross: 100.3, refunded: -30.25, charged_back: -20, corrected: 0, net: 50.05 }, 0, 0),
      },
    ])
    const back = { refunded: 0, charged_back: 0, corrected: 0 }
    const without = (count: number, sum: number) => ({
      ...{ without_usd: count, net_without_usd: sum, without_rate: count, net_without_rate: sum },
    })
    assert.deepEqual(body.currencies, [
      { currency_code: 'JPY', payments: 1, gross: 5000, ...back, net: 5000, ...without(1, 5000) },
      { currency_code: 'KWD', payments: 1, gross: 1.005, ...back, net: 1.005, ...without(1, 1.005) },
      {
        ...{ currency_code: 'USD', payments: 3, gross: 100.3, refunded: -30.25, charged_back: -20, corrected: 0 },
        ...{ net: 50.05, ...without(0, 0) },
      },
    ])
    assert.deepEqual(body.usd, { gross: 100.3, refunded: -30.25, charged_back: -20, corrected: 0, net: 50.05 })
    assert.deepEqual([body.reporting_currency, body.reporting], ['USD', body.usd])
  })

  test('agrees with the transaction report row by row, and every row is counted once', async () => {
    const report = await shop.report({ limit: 500 })
    const from = new Date(Date.now() - 900 * 86_400_000).toISOString().slice(0, 10)
    const period = `from=${from}&to=${new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)}`
    const [real, played] = [await get(`shop/finance?${period}`), await get(`shop/finance?${period}&test=true`)]
    const body = { totals: [...real.body.totals, ...played.body.totals] }
    const inside = report.filter(({ trx_created_at }: Json) => trx_created_at >= from)
    const counts = ['payments', 'refunds', 'refunds_failed', 'chargebacks', 'chargeback_reversals', 'without_money']
    const counted = body.totals.flatMap((total: Json) => counts.map((name) => total[name]))
    assert.equal(
      counted.reduce((sum: number, n: number) => sum + n, 0),
      inside.length,
    )
    const signed = [...(await allRows(period)), ...(await allRows(`${period}&test=true`))]
    const byId = new Map<string, Json>(inside.map((row: Json) => [row.trx_id, row]))
    for (const row of signed) {
      const own = byId.get(row.trx_id)
      assert.deepEqual(
        [Math.abs(row.amount), row.currency_code, row.trx_created_at],
        [own.amount, own.currency_code, own.trx_created_at],
      )
      assert.equal(row.amount < 0, ['refund', 'chargeback'].includes(row.kind), row.kind)
    }
    for (const total of body.totals) {
      const mine = signed.filter(
        ({ trx_created_at, currency_code, psp, psp_merchant_id }) =>
          trx_created_at.startsWith(total.month) &&
          currency_code === total.currency_code &&
          psp === total.psp &&
          psp_merchant_id === total.psp_merchant_id,
      )
      const cents = mine.reduce((sum, { amount }) => sum + BigInt(Math.round(amount * 1000)), 0n)
      assert.equal(cents, BigInt(Math.round(total.net * 1000)), JSON.stringify(total))
    }
    for (const { psp, psp_merchant_id } of real.body.totals) {
      const account = `psp=${psp}${psp_merchant_id === null ? '' : `&psp_merchant_id=${psp_merchant_id}`}`
      const mine = (await allRows(period)).filter((one) => one.psp === psp && one.psp_merchant_id === psp_merchant_id)
      assert.deepEqual(await allRows(`${period}&${account}`), mine, account)
    }
    const incomplete = await get(`shop/finance/rows?${period}&psp_merchant_id=main`)
    assert.deepEqual([incomplete.status, /needs psp/.test(incomplete.body.message)], [400, true])
    assert.equal(signed.at(-1).amount, -5.01)
    assert.deepEqual(columns(played.body.totals, 'payments', 'net'), [[1, 14.98]])
  })

  async function allRows(period: string): Promise<Json[]> {
    const all: Json[] = []
    let after: string | null = ''
    do {
      const body = await ok(get(`shop/finance/rows?${period}&limit=4${after ? `&after=${after}` : ''}`))
      assert.ok(body.rows.length <= 4)
      all.push(...body.rows)
      after = body.next_after
    } while (after)
    return all
  }

  for (const [query, sentence] of [
    ['', /^Give month, or from and to\.$/],
    ['month=2025-13', /^month must be a month such as 2026-01, got "2025-13"\.$/],
    ['month=2025-1', /^month must be/],
    ['from=2025-02-30&to=2025-03-01', /^from must be a day such as 2026-01-31, got "2025-02-30"\.$/],
    ['month=1899-12', /^month must be from 1900-01 to 2999-12, got 1899-12\.$/],
    ['month=3000-01', /^month must be from 1900-01 to 2999-12, got 3000-01\.$/],
    ['from=0001-01-01&to=0001-02-01', /^from must be from 1900-01-01 to 2999-12-31, got 0001-01-01\.$/],
    ['from=2999-01-01&to=3000-01-01', /^to must be from 1900-01-01 to 2999-12-31, got 3000-01-01\.$/],
    ['from=2025-03-02&to=2025-03-01', /^from must not be after to, got 2025-03-02 and 2025-03-01\.$/],
    ['from=2025-03-01T00:00:00Z&to=2025-03-02', /^from must be a day such as 2026-01-31/],
    ['from=2025-03-01&to=2028-03-01', /^from and to must be at most 36 months apart\.$/],
    ['from=2020-01-01&to=2025-03-01', /^from and to must be at most 36 months apart\.$/],
    ['month=2025-10&to=2025-12-01', /^Give month, or from and to\.$/],
  ] as const) {
    test(`400 for ?${query}`, async () => {
      const { status, body } = await get(`shop/finance?${query}`)
      assert.equal(status, 400)
      assert.match(body.message, sentence)
    })
  }

  test('400 for an after that is not the next_after of a page', async () => {
    const { body } = await get('shop/finance/rows?month=2025-10&limit=1')
    for (const after of [`${body.next_after}_junk`, `${body.next_after}_0`, 'x', '_0']) {
      const refused = await get(`shop/finance/rows?month=2025-10&after=${after}`)
      assert.deepEqual([refused.status, /^after /.test(refused.body.message)], [400, true], after)
    }
  })

  test('404 for an organization that does not exist', async () => {
    assert.equal((await get('nobody/finance?month=2025-10')).status, 404)
  })
})

test('a subscription whose interval no calendar has leaves the end of its period unknown', async () => {
  const org = await billing.organization('ages')
  const record = (record: string, data: object) => ({ record, data: { created_at: '2025-10-01T00:00:00Z', ...data } })
  const plan = { status: 'active', renews: true, price: 100, currency: 'USD', profile_id: 'ada', product_id: 'plan' }
  await load(billing.server.app, org.projectId, [
    record('product', { id: 'plan', name: 'Plan', status: 'active' }),
    record('profile', { id: 'ada' }),
    ...[1, 2_147_483_647].flatMap((count) => [
      record('subscription', {
        ...plan,
        id: `every-${count}`,
        billing_interval: 'year',
        billing_interval_count: count,
      }),
      payment('2025-10-02T00:00:00Z', count % 7, { external_id: 'ada', meta_subs_id: `every-${count}` }),
    ]),
    { record: 'customer', data: { external_id: 'ada', profile_id: 'ada' } },
  ])
  const body = await ok(get('ages/finance/rows?month=2025-10'))
  assert.deepEqual(body.rows.map(({ subscription_id, service_to }: Json) => [subscription_id, service_to]).sort(), [
    ['every-1', '2026-10-02T00:00:00.000000Z'],
    ['every-2147483647', null],
  ])
})

describe('tundish report', () => {
  const run = (...args: string[]) => tundishAgain(['report', '--org', 'shop', ...args], billing.server.env)

  test('names its options in the sentences about them', async () => {
    assert.deepEqual(await run(), { code: 2, stdout: '', stderr: 'Give --month, or --from and --to.\n' })
    assert.match((await run('--month', '2025-13')).stderr, /^--month must be a month such as 2026-01/)
  })

  test('prints a table, with all decimals of each currency', async () => {
    const { stdout } = await run('--month', '2025-10')
    assert.match(
      stdout,
      /^month +currency_code +psp +psp_merchant_id +payments +gross +refunds +refunded +chargebacks +charged_back +corrected +net +fees_unknown +net_after_fees +net_reported +net_without_rate$/m,
    )
    assert.match(stdout, /^2025-10 +JPY +elsewhere +- +1 +5000 +0 +0 +0 +0 +0 +5000 +1 +- +0\.00 +5000$/m)
    assert.match(
      stdout,
      /^2025-10 +USD +simulator +- +3 +100\.30 +2 +-30\.25 +2 +-20\.00 +0\.00 +50\.05 +9 +- +50\.05 +0\.00$/m,
    )
    assert.match(
      stdout,
      /^All in USD: gross 100\.30, refunded -30\.25, charged_back -20\.00, corrected 0\.00, net 50\.05\.\nWithout a rate, and so not in it: 5000 JPY, 1\.005 KWD\.$/m,
    )
  })

  test('prints signed rows as a table, each with its provider and account', async () => {
    const { stdout } = await run('--month', '2025-10', '--rows')
    assert.match(stdout, /^[^ ]+ +sale +5000 +JPY +- +- +- +elsewhere +- +=HYPERLINK/m)
    assert.match(stdout, /^[^ ]+ +refund +-30\.25 +USD +- +- +-30\.25 +simulator +- +customer-/m)
  })

  test('prints signed rows as CSV that a spreadsheet reads and does not run', async () => {
    const { stdout } = await run('--month', '2025-10', '--rows', '--format', 'csv')
    const [head, ...lines] = stdout.trimEnd().split('\n')
    assert.match(
      head!,
      /^paid_at,booked_at,correction,kind,amount,currency_code,amount_usd,reporting_currency,amount_reported,fee,fee_currency,psp,/,
    )
    assert.equal(lines.length, 11)
    assert.match(stdout, /,false,refund,-30\.25,USD,/)
    assert.match(stdout, /,sale,5000,JPY,.*,shop-app,"'=HYPERLINK\(""x""\)",/)
  })

  test('prints rows of several pages, each once and in order, in each format', async () => {
    const org = await billing.organization('busy')
    const lines = Array.from({ length: 2001 }, (_, n) =>
      payment(new Date(Date.UTC(2025, 9, 1, 0, n)).toISOString(), n + 1, { external_id: 'ada' }),
    )
    await load(billing.server.app, org.projectId, lines)
    const amounts = lines.map((_, n) => n + 1)
    const printed = async (...more: string[]) =>
      (await tundishAgain(['report', '--org', 'busy', '--month', '2025-10', '--rows', ...more], billing.server.env))
        .stdout
    const csv = (await printed('--format', 'csv')).trimEnd().split('\n').slice(1)
    assert.deepEqual(
      csv.map((line) => Number(line.split(',')[4])),
      amounts,
    )
    const compact = await printed('--json')
    const { rows, ...head } = JSON.parse(compact)
    assert.deepEqual(column(rows, 'amount'), amounts)
    assert.deepEqual([head.from, head.time_zone, head.closed], ['2025-10-01', 'UTC', []])
    assert.equal(
      compact,
      `${JSON.stringify(head).slice(0, -1)},"rows":${compact.slice(compact.indexOf('[{"paid_at"'))}`,
    )
    const { body } = await get('busy/finance/rows?month=2025-10&limit=1000')
    assert.deepEqual(rows.slice(0, 1000), body.rows)
    const indented = await printed('--format', 'json')
    assert.deepEqual(JSON.parse(indented), JSON.parse(compact))
    const layout = JSON.stringify({ ...head, rows: [{ paid_at: '' }] }, null, 2).split('""')
    assert.deepEqual([indented.startsWith(layout[0]!), indented.endsWith(`${layout[1]}\n`)], [true, true])
    const none = ['report', '--org', 'busy', '--month', '2024-10', '--rows']
    for (const more of [['--json'], ['--format', 'json']])
      assert.deepEqual(JSON.parse((await tundishAgain([...none, ...more], billing.server.env)).stdout).rows, [])
  })

  test('prints one JSON document with the same sums as the operation', async () => {
    const { body } = await get(OCTOBER)
    for (const args of [['--json'], ['--format', 'json']]) {
      const { stdout } = await run('--month', '2025-10', ...args)
      const printed = JSON.parse(stdout)
      assert.deepEqual([printed.totals, printed.time_zone], [body.totals, 'UTC'])
    }
  })

  test('--json has the same decimals', async () => {
    const { stdout } = await run('--month', '2025-10', '--json')
    assert.match(
      stdout,
      /"currency_code":"USD","psp":"simulator","psp_merchant_id":null,"provider_account":null,"payments":3,"gross":100\.30,/,
    )
  })

  test('2 for a wrong month, 1 for an organization that does not exist', async () => {
    assert.equal((await run('--month', '2025-00')).code, 2)
    const { code, stderr } = await tundishAgain(['report', '--org', 'nobody', '--month', '2025-10'], billing.server.env)
    assert.deepEqual([code, stderr], [1, 'There is no organization "nobody".\n'])
  })
})

test('a refund that was imported as succeeded and failed afterwards is taken back', async () => {
  const other = await billing.organization('succeeded-refunds')
  const refund = { psp_transaction_type: 'refund', order_id: uuid(78), psp_transaction_id: 're_2', external_id: 'zoe' }
  await load(billing.server.app, other.projectId, [
    payment('2025-10-07T10:00:00Z', 20, { order_id: uuid(78), external_id: 'zoe' }),
    payment('2025-10-08T10:00:00Z', 12.5, refund),
    payment('2025-10-09T10:00:00Z', 12.5, { ...refund, status: 'failed' }),
  ])
  const { body } = await get('succeeded-refunds/finance?month=2025-10')
  const [{ refunds, refunds_failed, refunded, net, without_money }] = body.totals
  assert.deepEqual([refunds, refunds_failed, refunded, net, without_money], [1, 1, 0, 20, 0])
})
