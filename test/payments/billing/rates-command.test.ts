// tundish rates load: exchange rates for one organization or all of them, all or none.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { startBilling } from '../../support/billing.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { tundishAgain } from '../../support/resident.ts'

const billing = await startBilling({}, { worker: false })
const shop = await billing.organization()
const folder = temporaryFolder()
after(() => billing.stop())

const run = (...args: string[]) => tundishAgain(args, billing.server.env)

describe('rates load', () => {
  test('keeps the rates for all organizations, or for one, and says what it loaded', async () => {
    const file = join(folder, 'rates.csv')
    const today = new Date().toISOString().slice(0, 10)
    await writeFile(file, `date,currency,per_euro\n${today},USD,1.25\n${today},GBP,0.5\n${today},GBP,0.8\n`)
    const { code, stdout } = await run('rates', 'load', file, '--json')
    assert.deepEqual([code, JSON.parse(stdout)], [0, { rates: 3, days: 1, first_day: today, last_day: today }])
    const other = await billing.organization()
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user, { amount: 8, currency_code: 'GBP' })).body
    assert.equal((await shop.report({ order_id }))[0].amount_usd, 12.5, 'of a rate that stands twice the last one')
    assert.match((await run('rates', 'load', file, '--org', other.id)).stdout, /^3 rates of 1 day loaded/)
    const rows = await billing.db.query('select organization_id, count(*) from exchange_rates group by 1 order by 1')
    assert.deepEqual(
      rows,
      [shop.id, other.id].sort().map((organization_id) => ({ organization_id, count: '3' })),
    )
  })

  test('1 for a day that is to come, and nothing is loaded', async () => {
    const file = join(folder, 'future.csv')
    const today = new Date().toISOString().slice(0, 10)
    await writeFile(file, `date,currency,per_euro\n${today},SEK,11\n2062-01-02,SEK,11\n`)
    const { code, stderr } = await run('rates', 'load', file)
    assert.deepEqual([code, stderr], [1, `${file} has rates of 2062-01-02, which is to come.\n`])
    assert.deepEqual(await billing.db.query("select from exchange_rates where currency_code = 'SEK'"), [])
    await writeFile(file, `date,currency,per_euro\n${today},SEK,11\n`)
    assert.match((await run('rates', 'load', file)).stdout, /^1 rate of 1 day loaded/)
  })

  test('an organization that is created later has the rates that were loaded for all, and those of no other', async () => {
    const today = new Date().toISOString().slice(0, 10)
    const load = async (perEuro: string, ...more: string[]) => {
      const file = join(folder, 'francs.csv')
      await writeFile(file, `date,currency,per_euro\n${today},USD,1.25\n${today},CHF,${perEuro}\n`)
      assert.equal((await run('rates', 'load', file, ...more)).code, 0)
    }
    await load('0.5')
    await load('0.25', '--org', shop.id)
    const later = await billing.organization()
    for (const [organization, dollars] of [
      [shop, 40],
      [later, 20],
    ] as const) {
      const { order_id } = (
        await organization.charge(await organization.customer(), { amount: 8, currency_code: 'CHF' })
      ).body
      assert.equal((await organization.report({ order_id }))[0].amount_usd, dollars, organization.id)
    }
  })

  test('of many days for many organizations are loaded in statements of a few thousand rows, all or none', async () => {
    const count = async () => (await billing.db.query('select count(*) as n from exchange_rates'))[0]!.n
    await billing.db.query(
      `insert into organizations (id, name) select 'many-' || n, 'Many' from generate_series(1, 30) n`,
    )
    const days = Array.from({ length: 1_500 }, (_, n) => new Date(n * 86_400_000).toISOString().slice(0, 10))
    const file = join(folder, 'many.csv')
    await writeFile(file, ['date,currency,per_euro', ...days.map((day) => `${day},USD,1.25`)].join('\n'))
    // The database refuses what a statement must not do; the last organization fails when all others are done.
    await billing.db.query(`
      create function few() returns trigger language plpgsql as $$ begin
        if (select count(*) from written) > 5000 then raise 'too many rows'; end if;
        if exists (select from written where organization_id = 'z-broken') then raise 'broken'; end if;
        return null; end $$`)
    await billing.db.query(`create trigger few after insert on exchange_rates referencing new table as written
      for each statement execute function few()`)
    const before = await count()
    await billing.db.query(`insert into organizations (id, name) values ('z-broken', 'The last')`)
    assert.equal((await run('rates', 'load', file)).code, 1)
    assert.equal(await count(), before, 'all or none')
    await billing.db.query(`delete from organizations where id = 'z-broken'`)
    const { code, stderr } = await run('rates', 'load', file)
    assert.deepEqual([code, stderr], [0, ''])
    const [row] = await billing.db.query(
      `select count(*) as n, count(distinct organization_id) as of from exchange_rates where organization_id like 'many-%'`,
    )
    assert.deepEqual(row, { n: `${30 * 2 * 1_500}`, of: '30' })
    await billing.db.query('drop trigger few on exchange_rates')
    await billing.db.query(`delete from exchange_rates where day < current_date - 1`)
  })

  test('1 and a sentence for a file that has no rates; nothing is loaded', async () => {
    const file = join(folder, 'bad.csv')
    await writeFile(file, 'date,currency,per_euro\n2020-01-01,USD,1\n2020-01-02,USD,x\n')
    const run = (...args: string[]) => tundishAgain(args, billing.server.env)
    const bad = await run('rates', 'load', file)
    assert.deepEqual([bad.code, bad.stdout], [1, ''])
    assert.match(bad.stderr, /bad\.csv:3: "x" is not a rate\.\n$/)
    // The database could not keep these.
    for (const [line, place] of [
      ['0000-01-01,USD,1', /bad\.csv:2: "0000-01-01" is not a date\.\n$/],
      [`2020-01-01,USD,${'9'.repeat(140_000)}`, /bad\.csv:2: "9+…" is not a rate\.\n$/],
      [`2020-01-01,USD,0.${'0'.repeat(20_000)}1`, /bad\.csv:2: "0\.0+…" is not a rate\.\n$/],
    ] as const) {
      await writeFile(file, `date,currency,per_euro\n${line}\n`)
      assert.match((await run('rates', 'load', file)).stderr, place)
    }
    assert.equal((await run('rates', 'load', join(folder, 'none.csv'))).code, 1)
    assert.equal((await run('rates', 'load', file, '--org', 'nobody')).code, 1)
    assert.deepEqual(await billing.db.query(`select 1 from exchange_rates where day < '2021-01-01'`), [])
  })
})
