// The amounts of charges in US dollars, by the rates of the European Central Bank.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DAY_MS } from '../../../src/lib/days.ts'
import { storeRates } from '../../../src/payments/billing/rates/store-rates.ts'
import { type Organization, startShop } from '../../support/billing.ts'
import { setNoon } from '../../support/time.ts'

const { billing, shop } = await startShop()
const today = Date.parse(await setNoon(billing.server.env.DATABASE_URL!))

describe('amounts in US dollars', () => {
  const usd = async (organization: Organization, currency_code: string, amount: string) => {
    const { order_id } = (await organization.charge(await organization.customer(), { currency_code, amount })).body
    return (await organization.report({ order_id }))[0].amount_usd
  }
  const day = (ago: number) => new Date(today - ago * DAY_MS).toISOString().slice(0, 10)

  test('by the latest rate on or before the day, at most 7 days old, rounded half-even; else null', async () => {
    const other = await billing.organization()
    assert.equal(await usd(other, 'EUR', '10'), null)
    assert.equal(await usd(other, 'USD', '10'), 10)
    const rate = (ago: number, currencyCode: string, perEuro: string) => ({ day: day(ago), currencyCode, perEuro })
    await storeRates(billing.db, [rate(8, 'USD', '3'), rate(8, 'GBP', '1')], other.id)
    assert.equal(await usd(other, 'EUR', '10'), null, 'eight days are too old')
    await storeRates(billing.db, [rate(7, 'USD', '1.125'), rate(7, 'GBP', '0.9'), rate(-1, 'USD', '9')], other.id)
    assert.equal(await usd(other, 'EUR', '10'), 11.25)
    // 0.02 and 0.06 euros are 2.25 and 6.75 cents; 0.04 and 0.12 are 4.5 and 13.5: half goes to the even cent.
    for (const [euros, dollars] of [
      ['0.02', 0.02],
      ['0.06', 0.07],
      ['0.04', 0.04],
      ['0.12', 0.14],
    ] as const) {
      assert.equal(await usd(other, 'EUR', euros), dollars)
    }
    assert.equal(await usd(other, 'GBP', '9'), 11.25)
    await storeRates(billing.db, [rate(2, 'USD', '1.5'), rate(1, 'GBP', '1')], other.id)
    assert.equal(await usd(other, 'EUR', '10'), 15, 'the latest day counts')
    assert.equal(await usd(other, 'GBP', '9'), 11.25, 'and it must know both currencies')
    assert.equal(await usd(other, 'JPY', '9'), null)
    assert.equal(await usd(shop, 'EUR', '9'), null, 'rates are an organization’s own')
  })
})
