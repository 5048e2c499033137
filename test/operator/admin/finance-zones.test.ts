// The finance report by the time zone and the reporting currency of the projects: months, sums, closing, and the tie-out with the dashboard.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { startBilling } from '../../support/billing.ts'
import { succeeded } from '../../support/cli.ts'
import { assertExact } from '../../support/figures.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type Line, load, uuid } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { columns } from '../../support/rows.ts'
import { type Json, ok } from '../../support/server.ts'
import { assertTied } from './tie-out.ts'

const billing = await startBilling()
const folder = temporaryFolder()
after(() => billing.stop())
const { server, db } = billing
const shop = await billing.organization('down-under')

const payment = (n: number, at: string, amount: number, more: object = {}) => ({
  record: 'payment',
  data: {
    ...{ external_id: 'ada', order_id: uuid(n), trx_id: uuid(1000 + n), trx_created_at: at, psp_date: at, amount },
    ...{ currency_code: 'NZD', status: 'succeeded', psp: 'elsewhere', psp_merchant_id: 'main' },
    ...{ psp_transaction_type: 'sale', psp_transaction_id: `ch_${n}`, ...more },
  },
})
const get = (path: string) => ok(server.admin(`/organizations/down-under/finance${path}`))
const grossOf = async (month: string) => (await get(`?month=${month}`)).currencies.map(({ gross }: Json) => gross)
const reporting = (project: string, body: object) =>
  server.admin(`/projects/${project}/reporting`, { method: 'PUT', body })

test('months are those of the projects’ time zone; the tie-out agrees with figures in it, and in another currency', async () => {
  assert.equal((await reporting(shop.projectId, { time_zone: 'Pacific/Auckland', currency: 'NZD' })).status, 200)
  await load(server.app, shop.projectId, [
    { record: 'customer', data: { external_id: 'ada' } },
    // In Auckland the first is on 31 August, the second and the third are on 1 and 30 September, the last on 1 October.
    payment(1, '2025-08-31T11:59:59Z', 1),
    payment(2, '2025-08-31T12:00:00Z', 20),
    payment(3, '2025-09-30T10:59:59Z', 300),
    payment(4, '2025-09-30T11:00:00Z', 4000),
  ])
  assert.deepEqual(await Promise.all(['2025-08', '2025-09', '2025-10'].map(grossOf)), [[1], [320], [4000]])
  assert.equal((await get('?month=2025-09')).time_zone, 'Pacific/Auckland')
  for (const more of [['2025-09'], ['2025-09', '--rows'], ['2024-09']]) {
    const printed = await tundishAgain(['report', '--org', 'down-under', '--month', ...more], server.env)
    assert.match(printed.stdout, /Days and months in Pacific\/Auckland\.$/m)
  }
  await assertExact(db, shop.projectId)
  const { currencies, differences } = await get('/tie-out?month=2025-09')
  assert.deepEqual(columns(currencies, 'dashboard', 'finance'), [[320, 320]])
  assert.deepEqual(differences, [])
})

test('a closed month keeps its time zone, whatever the projects have; a tie-out of other days is refused', async () => {
  const close = (month: string) =>
    server.admin('/organizations/down-under/finance/months', { method: 'POST', body: { month } })
  assert.equal((await close('2025-09')).status, 200)
  assert.equal((await reporting(shop.projectId, { time_zone: 'UTC' })).status, 200)
  assert.equal((await get('?month=2025-10')).time_zone, 'Pacific/Auckland')
  assert.deepEqual(await Promise.all(['2025-08', '2025-09', '2025-10'].map(grossOf)), [[1], [320], [4000]])
  const { status, body } = await server.admin('/organizations/down-under/finance/tie-out?month=2025-09')
  assert.equal(status, 409)
  assert.match(JSON.stringify(body), /by days of UTC, the finance report by those of Pacific\/Auckland/)
})

test('without closed months, projects of several time zones have a report in UTC', async () => {
  const other = await billing.organization('two-zones')
  assert.equal((await reporting(other.projectId, { time_zone: 'Europe/Madrid' })).status, 200)
  const zone = async () => (await server.admin('/organizations/two-zones/finance?month=2025-09')).body.time_zone
  assert.equal(await zone(), 'Europe/Madrid')
  await succeeded(tundishAgain(['project', 'create', 'second-zone', '--org', 'two-zones'], server.env))
  assert.equal(await zone(), 'UTC')
})

describe('sums in the reporting currency', async () => {
  const own = await billing.organization('euros')
  const rates = async (...lines: string[]) => {
    const file = join(folder, 'rates.csv')
    await writeFile(file, ['date,currency,per_euro', ...lines].join('\n'))
    await succeeded(tundishAgain(['rates', 'load', file, '--org', 'euros'], server.env))
  }
  const loadHere = (...lines: Line[]) => load(server.app, own.projectId, lines)
  const report = (more: string) => ok(server.admin(`/organizations/euros/finance${more}`))
  const without = ({ currencies }: Json) =>
    currencies.flatMap((one: Json) => (one.without_rate > 0 ? [[one.currency_code, one.net_without_rate]] : []))
  const values = async (month: string): Promise<string[]> => {
    const { rows } = await report(`/rows?month=${month}`)
    return rows.map((one: Json) => [one.kind, one.amount, one.currency_code, String(one.amount_reported)].join(' '))
  }
  const close = (month: string) =>
    server.admin('/organizations/euros/finance/months', { method: 'POST', body: { month } })
  assert.equal((await reporting(own.projectId, { currency: 'EUR' })).status, 200)
  await rates('2025-09-01,USD,1.25', '2025-09-05,USD,1.2', '2025-09-05,JPY,160', '2025-09-30,USD,2', '2025-10-01,USD,4')
  await loadHere(
    { record: 'customer', data: { external_id: 'ada' } },
    payment(1, '2025-09-02T10:00:00Z', 10, { currency_code: 'USD' }),
    payment(2, '2025-09-05T00:00:00Z', 7, { currency_code: 'USD', amount_usd: 7 }),
    payment(3, '2025-09-06T10:00:00Z', 20, { currency_code: 'EUR', amount_usd: 99 }),
    payment(4, '2025-09-06T11:00:00Z', 1000, { currency_code: 'JPY' }),
    payment(5, '2025-09-07T10:00:00Z', 3, {
      ...{ currency_code: 'USD', status: 'refunded', psp_transaction_type: 'refund', psp_transaction_id: 're_5' },
    }),
    // No rate of a week.
    payment(6, '2025-09-20T10:00:00Z', 50, { currency_code: 'JPY' }),
    payment(7, '2025-09-20T10:00:00Z', 5, { currency_code: 'GBP', amount_usd: 6 }),
    payment(8, '2025-09-30T23:59:59.999999Z', 10, { currency_code: 'USD' }),
    payment(9, '2025-10-01T00:00:00Z', 10, { currency_code: 'USD' }),
  )

  test('each amount by the rates of its day, and what has none is named with how much', async () => {
    const body = await report('?month=2025-09')
    // 10 / 1.25, 7 / 1.2 = 5.83, 20, 1000 / 160 = 6.25, 10 / 2; back 3 / 1.2.
    assert.equal(body.reporting_currency, 'EUR')
    assert.deepEqual(body.reporting, {
      ...{ gross: 45.08, refunded: -2.5, charged_back: 0, corrected: 0, net: 42.58 },
    })
    assert.deepEqual(without(body), [
      ['GBP', 5],
      ['JPY', 50],
    ])
    assert.deepEqual(body.usd.gross, 27 + 99 + 6)
    assert.equal(
      body.totals.reduce((sum: number, one: Json) => sum + Math.round(one.net_reported * 100), 0),
      4258,
    )
    assert.deepEqual((await values('2025-10')).slice(0, 1), ['sale 10 USD 2.5'])
    await assertExact(db, own.projectId)
    await assertTied(server, 'euros', ['2025-09', '2025-10'])
    const { reporting: tied } = await report('/tie-out?month=2025-09')
    assert.deepEqual(tied, { dashboard: 45.08, finance: 45.08, difference: 0 })
  })

  test('the command says the sums and what they lack', async () => {
    const { stdout } = await tundishAgain(['report', '--org', 'euros', '--month', '2025-09'], server.env)
    assert.match(
      stdout,
      /^All in EUR: gross 45\.08, refunded -2\.50, charged_back 0\.00, corrected 0\.00, net 42\.58\.$/m,
    )
    assert.match(stdout, /^Without a rate, and so not in it: 5\.00 GBP, 50 JPY\.$/m)
  })

  test('a closed month keeps its values and its currency; a rate that becomes known is a correction', async () => {
    const before = [await report('?month=2025-09'), await values('2025-09')]
    // A rate is found also for payments that were not changed since the closing.
    await db.query(
      `update report_transactions set updated_at = updated_at - interval '3 days' where psp_transaction_id in ('ch_6', 'ch_7', 'ch_8')`,
    )
    assert.equal((await close('2025-09')).status, 200)
    const closed = [await report('?month=2025-09'), await values('2025-09')]
    assert.deepEqual([{ ...closed[0], closed: [] }, closed[1]], before)
    // Rates that replace others, and one for what had none; a late payment; another reporting currency.
    await rates('2025-09-01,USD,9', '2025-09-05,USD,9', '2025-09-19,USD,9', '2025-09-19,JPY,100')
    await loadHere(
      payment(10, '2025-09-30T10:00:00Z', 8, { currency_code: 'USD' }),
      // A value in US dollars, which changes nothing in euros.
      payment(3, '2025-09-06T10:00:00Z', 20, { currency_code: 'EUR', amount_usd: 100 }),
    )
    // A fee of a payment that was not changed otherwise.
    await db.query(
      `insert into provider_fees (organization_id, psp, psp_merchant_id, transaction_id, move, entry_id, fee, currency_code, entered_at)
       values ('euros', 'elsewhere', 'main', 'ch_8', 'sale', 'txn_8', 0.3, 'GBP', '2025-09-30T23:59:59Z')`,
    )
    assert.equal((await reporting(own.projectId, { currency: 'NZD' })).status, 200)
    assert.deepEqual([await report('?month=2025-09'), await values('2025-09')], closed)
    const october = await report('?month=2025-10')
    assert.deepEqual(
      [october.reporting_currency, october.reporting],
      ['EUR', { gross: 2.5, refunded: 0, charged_back: 0, corrected: 4.5, net: 7 }],
    )
    assert.deepEqual((await values('2025-10')).sort(), [
      'sale 0 EUR 0',
      'sale 0 JPY 0.5',
      'sale 0 USD 0',
      'sale 10 USD 2.5',
      'sale 8 USD 4',
    ])
    // Booked once.
    assert.equal((await close('2025-10')).status, 200)
    assert.deepEqual((await report('?month=2025-11')).reporting.corrected, 0)
    assert.deepEqual((await report('?month=2025-10')).reporting, october.reporting)
    await assertExact(db, own.projectId)
    const { reporting: tied } = await report('/tie-out?month=2025-10')
    assert.equal(tied.dashboard, tied.finance + tied.difference)
  })

  test('projects that report in several currencies have sums in US dollars', async () => {
    const currency = async () =>
      (await server.admin('/organizations/two-zones/finance?month=2025-09')).body.reporting_currency
    const projects = (await server.admin('/projects')).body.data.filter(
      (one: Json) => one.organization_id === 'two-zones',
    )
    const [first, second] = projects.map(({ id }: Json) => id)
    assert.equal((await reporting(first, { currency: 'EUR' })).status, 200)
    assert.equal(await currency(), 'USD')
    assert.equal((await reporting(second, { currency: 'EUR' })).status, 200)
    assert.equal(await currency(), 'EUR')
  })
})
