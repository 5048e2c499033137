// Checks that months tie out: by the operations of figures, of the finance report and of the tie-out, and by its rows.
import assert from 'node:assert/strict'
import { type Json, ok, type TestServer } from '../../support/server.ts'

type Server = Pick<TestServer, 'admin'>

// Ten-thousandths, so that sums of amounts are exact.
const units = (amount: number) => Math.round(amount * 10_000)
const sum = (amounts: number[]) => amounts.reduce((total, amount) => total + units(amount), 0)

const get = (server: Server, path: string) => ok(server.admin(`/organizations/${path}`))

/** Returns the names of the differences that were found. */
export async function assertTied(server: Server, organization: string, months: string[]): Promise<Set<string>> {
  const names = new Set<string>()
  for (const month of months) {
    const tied = await get(server, `${organization}/finance/tie-out?month=${month}`)
    const report = await get(server, `${organization}/finance?month=${month}`)
    const last = `${month}-${new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 0)).getUTCDate()}`
    const days = `from=${month}-01&to=${last}&metric=revenue`
    const own = await get(server, `${organization}/figures?${days}&by=currency&money=own`)
    const usd = await get(server, `${organization}/figures?${days}`)
    const { data: rows } = await get(server, `${organization}/finance/tie-out/rows?month=${month}&limit=1000`)
    for (const { currency_code: currency, dashboard, finance, difference } of tied.currencies) {
      const about = `${organization} ${month} ${currency}`
      const shown = own.data.find((one: Json) => one.currency === currency)?.values.revenue ?? 0
      const booked = report.currencies.find((one: Json) => one.currency_code === currency)?.gross ?? 0
      assert.deepEqual([units(dashboard), units(finance)], [units(shown), units(booked)], about)
      const named = tied.differences.filter((one: Json) => one.currency_code === currency)
      assert.equal(units(difference), sum(named.map(({ amount }: Json) => amount)), about)
      assert.equal(units(dashboard), units(finance) + units(difference), about)
    }
    if (usd.currency === 'USD') assert.equal(units(tied.usd.dashboard), units(usd.data[0]?.values.revenue ?? 0), month)
    assert.equal(units(tied.usd.finance), units(report.usd.gross), month)
    assert.equal(units(tied.usd.difference), sum(tied.differences.map(({ amount_usd }: Json) => amount_usd)), month)
    assert.equal(units(tied.reporting.dashboard), units(usd.data[0]?.values.revenue ?? 0), month)
    assert.equal(units(tied.reporting.finance), units(report.reporting.gross), month)
    assert.equal(
      units(tied.reporting.difference),
      sum(tied.differences.map(({ amount_reported }: Json) => amount_reported)),
      month,
    )
    for (const { name, currency_code, rows: count, amount, amount_usd, amount_reported } of tied.differences) {
      names.add(name)
      const mine = rows.filter((one: Json) => one.name === name && one.currency_code === currency_code)
      if (rows.length === 1000) continue
      assert.equal(mine.length, count)
      assert.equal(sum(mine.map(({ difference }: Json) => difference)), units(amount), `${month} ${name}`)
      assert.equal(sum(mine.map(({ difference_usd }: Json) => difference_usd)), units(amount_usd), `${month} ${name}`)
      const reported = mine.map(({ difference_reported }: Json) => difference_reported)
      assert.equal(sum(reported), units(amount_reported), `${month} ${name}`)
    }
  }
  return names
}
