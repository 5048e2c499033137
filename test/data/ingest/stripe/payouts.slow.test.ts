// Payouts of a Stripe account: each is what it consists of, to the cent, as Stripe's own client adds it up; and the bank's line of it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { followProject } from '../../../../src/data/figures/follow.ts'
import { jsonOf } from '../../../support/cli.ts'
import { tundishAgain } from '../../../support/resident.ts'
import { column, columns } from '../../../support/rows.ts'
import type { Json } from '../../../support/server.ts'
import { savedCard } from '../../../support/simulators.ts'
import { until } from '../../../support/time.ts'
import { MERCHANT, openStripeImports } from './stripe-imports.ts'

const all = await openStripeImports({ demoCustomers: 12 })
after(() => all.close())
const project = await all.imports.project()
const { stripe, simulator } = all
const env = { DATABASE_URL: all.imports.url, MASTER_KEY: randomBytes(32).toString('base64') }

const payOut = (path = '/payouts', body: object = {}) => simulator.control<Stripe.Payout>(path, body)
const cents = (amount: number) => Math.round(amount * 100)

const finance = (...words: string[]) =>
  jsonOf(tundishAgain(['finance', ...words, '--org', project.organizationId, '--json'], env))

/** What a payout consists of, by Stripe's client. */
async function consistsOf(payout: string) {
  const entries: Stripe.BalanceTransaction[] = []
  for await (const one of stripe.balanceTransactions.list({ payout, limit: 100 })) entries.push(one)
  const own = entries.filter(({ type }) => type !== 'payout')
  const sum = (of: (one: Stripe.BalanceTransaction) => number) => own.reduce((total, one) => total + of(one), 0)
  const of = (...types: string[]) => sum(({ type, amount }) => (types.includes(type) ? amount : 0))
  return {
    entries: own.length,
    net: sum(({ net }) => net),
    charged: of('charge'),
    refunded: of('refund', 'refund_failure'),
    fees: sum(({ fee }) => -fee),
    account_fees: of('stripe_fee'),
    adjusted: of('adjustment', 'payout_failure'),
  }
}

async function assertPayouts(): Promise<Json[]> {
  const { data } = await finance('payouts', '--limit', '100')
  const there = await stripe.payouts.list({ limit: 100 })
  assert.deepEqual(
    data.map(({ payout_id, status, amount }: Json) => [payout_id, status, cents(amount)].join(' ')).sort(),
    there.data.map(({ id, status, amount }) => [id, status, amount].join(' ')).sort(),
  )
  for (const one of data) {
    const { net, ...parts } = await consistsOf(one.payout_id)
    assert.equal(cents(one.amount), net)
    assert.equal(one.difference, 0, one.payout_id)
    const { entries, charged, refunded, fees, account_fees, adjusted } = one
    const shown = { charged, refunded, fees, account_fees, adjusted }
    const here = Object.fromEntries(Object.entries(shown).map(([name, amount]) => [name, cents(amount)]))
    assert.deepEqual({ entries, ...here }, parts, one.payout_id)
    assert.equal(
      Object.values(here).reduce((total, amount) => total + amount, 0),
      cents(one.amount),
    )
  }
  return data
}

/** The balance is what Stripe's client has of no payout. */
async function assertBalance(): Promise<void> {
  let there = 0
  for await (const { net } of stripe.balanceTransactions.list({ limit: 100 })) there += net
  const { data } = await finance('balance')
  assert.deepEqual(
    data.map(({ psp_merchant_id, currency_code, net }: Json) => [psp_merchant_id, currency_code, cents(net)]),
    there === 0 ? [] : [[MERCHANT, 'USD', there]],
  )
}

test('an import reads payouts with their entries: fees of the account, adjustments, and a payout that failed and is paid again', async () => {
  await payOut()
  await simulator.control('/adjustments', { amount: -750, type: 'stripe_fee' })
  await simulator.control('/adjustments', { amount: 1234, type: 'adjustment' })
  const { customer, payment_method } = await savedCard(stripe)
  const pay = (amount: number) => simulator.control('/payments', { customer, payment_method, amount, ago_s: 60 })
  await pay(9999)
  const second = await payOut()
  await simulator.control(`/payouts/${second.id}/fail`)
  await pay(5000)
  const third = await payOut()
  await pay(700)
  await all.run(project)
  const payouts = new Map((await assertPayouts()).map((one) => [one.payout_id, one]))
  const [failed, again] = [payouts.get(second.id)!, payouts.get(third.id)!]
  assert.deepEqual([failed.status, failed.failure_code, again.status], ['failed', 'account_closed', 'paid'])
  const ofStatus = async (status: string) =>
    (await finance('payouts', '--status', status)).data.map(({ payout_id }: Json) => payout_id)
  assert.deepEqual(await ofStatus('failed'), [failed.payout_id])
  // Not an empty list, as if none were so.
  await assert.rejects(ofStatus('cancelled'), /status must be one of pending, in_transit, paid, failed, canceled, got/)
  assert.deepEqual([failed.account_fees, failed.adjusted], [-7.5, 12.34])
  assert.equal(cents(again.adjusted), second.amount)
  await assertBalance()
  // Nothing is missing here, and the fees of payments are the same as in the report.
  assert.deepEqual((await finance('entries', '--unknown', 'true')).data, [])
})

test('every month of the account ties out with the dashboard, and its finance report is the sum of its charges', async () => {
  await followProject(all.imports.db, project.id)
  const there = new Map<string, number>()
  for await (const { created, amount_captured, status, currency } of stripe.charges.list({ limit: 100 })) {
    if (status !== 'succeeded' || currency !== 'usd') continue
    const month = new Date(created * 1000).toISOString().slice(0, 7)
    there.set(month, (there.get(month) ?? 0) + amount_captured)
  }
  assert.ok(there.size > 3)
  for (const [month, sum] of there) {
    const { currencies, differences } = await finance('tie-out', month)
    const usd = currencies.find((one: Json) => one.currency_code === 'USD')
    assert.equal(cents(usd.finance), sum, month)
    for (const { currency_code, dashboard, finance: booked } of currencies) {
      const named = differences.filter((one: Json) => one.currency_code === currency_code)
      const more = named.reduce((total: number, { amount }: Json) => total + Math.round(amount * 1000), 0)
      assert.equal(Math.round(dashboard * 1000), Math.round(booked * 1000) + more, `${month} ${currency_code}`)
    }
  }
})

test('a payment at Stripe that is not here is named', async () => {
  const [entry] = (await finance('entries', '--limit', '100')).data.filter(({ type }: Json) => type === 'charge')
  assert.equal(entry.here, true)
  await all.imports.db.query('delete from report_transactions where psp_transaction_id = $1', [entry.source])
  const { data } = await finance('entries', '--unknown', 'true')
  assert.deepEqual(columns(data, 'entry_id', 'here'), [[entry.entry_id, false]])
})

test('an import that follows the account gets new payouts, and one that fails', async () => {
  const controller = new AbortController()
  const following = all.run(project, { follow: true }, { signal: controller.signal })
  try {
    await assertFollowed()
  } finally {
    controller.abort()
    // It may be stopped in the middle of a call.
    await following.catch(() => undefined)
  }
})

async function assertFollowed(): Promise<void> {
  const made = await payOut()
  const state = async () => (await finance('payouts')).data.find((one: Json) => one.payout_id === made.id)?.status
  await until('the payout', async () => (await state()) === 'paid')
  await assertPayouts()
  await simulator.control(`/payouts/${made.id}/fail`)
  await until('its failure', async () => (await state()) === 'failed')
  await assertBalance()
}

test('a payout is ticked off against a line of the bank with its amount, audited, and not with another one', async () => {
  const payout = (await finance('payouts')).data.find(({ status }: Json) => status === 'paid')
  const words = ['match', 'stripe', MERCHANT, payout.payout_id, '--day', '2026-10-05', '--reference', 'LINE 7']
  const run = (...more: string[]) => tundishAgain(['finance', ...more, '--org', project.organizationId], env)
  const wrong = await run(...words, '--amount', '1.00')
  assert.deepEqual(
    [wrong.code, wrong.stderr],
    [1, `The payout has ${payout.amount.toFixed(2)} USD. Nothing was noted.\n`],
  )
  const taken = await run(...words, `--amount=-${payout.amount.toFixed(2)}`)
  assert.equal(taken.stderr, wrong.stderr, 'money that was taken is not money that arrived')
  for (const amount of ['-', '1,00', '1e2']) {
    const { code, stderr } = await run(...words, '--amount', amount)
    assert.deepEqual([code, /^amount must be /.test(stderr)], [2, true], `${amount}: ${stderr}`)
  }
  const matched = await finance(...words, '--amount', payout.amount.toFixed(2))
  assert.deepEqual(
    [matched.bank_day, matched.bank_amount, matched.bank_reference],
    ['2026-10-05', payout.amount, 'LINE 7'],
  )
  assert.deepEqual(column((await finance('payouts', '--matched', 'true')).data, 'payout_id'), [payout.payout_id])
  const failed = (await finance('payouts')).data.find(({ status }: Json) => status === 'failed')
  const back = ['match', 'stripe', MERCHANT, failed.payout_id, '--day', '2026-10-05', '--amount', String(failed.amount)]
  assert.match((await run(...back)).stderr, /^The payout failed: its money is in the balance again\./)
  // A later import keeps it.
  await all.run(project)
  assert.equal((await finance('payouts', '--matched', 'true')).data.length, 1)
  const [entry] = await all.imports.rows(`select target from audit_log where action = 'payout.matched'`, [])
  assert.match(entry!.target!, new RegExp(`^payout ${payout.payout_id} of merchant account stripe`))
  await finance('unmatch', 'stripe', MERCHANT, payout.payout_id)
  const [removed] = await all.imports.rows(`select before from audit_log where action = 'payout.unmatched'`, [])
  assert.deepEqual(JSON.parse(removed!.before!), {
    day: '2026-10-05',
    amount: String(payout.amount),
    reference: 'LINE 7',
  })
  // A payout that takes money from the bank.
  await all.imports.db.query('update provider_payouts set amount = -12.5 where payout_id = $1', [payout.payout_id])
  assert.match((await run(...words, '--amount', '12.50')).stderr, /^The payout has -12\.5 USD\./)
  assert.equal((await finance(...words, '--amount=-12.50')).bank_amount, -12.5)
  await finance('unmatch', 'stripe', MERCHANT, payout.payout_id)
  assert.deepEqual((await finance('payouts', '--matched', 'true')).data, [])
  assert.equal((await run('match', 'stripe', MERCHANT, 'po_none', '--day', '2026-10-05', '--amount', '1')).code, 1)
})

test('an import that has read a payout before it failed does not take back what another process has stored', async () => {
  const { payout_id } = (await finance('payouts')).data.find(({ status }: Json) => status === 'paid')
  const store = (status: string) =>
    all.imports.db.query('update provider_payouts set status = $2 where payout_id = $1', [payout_id, status])
  const imported = async () => {
    await all.run(project)
    return (await finance('payouts')).data.find((one: Json) => one.payout_id === payout_id).status
  }
  await store('failed')
  assert.equal(await imported(), 'failed')
  await store('in_transit')
  assert.equal(await imported(), 'paid')
})

test('each kind of entry is in its part, and entries of another account with the same id are not', async () => {
  const { query } = all.imports.db
  const account = async (
    merchant: string,
    entries: [type: string, amount: number, fee?: number, category?: string][],
  ) => {
    const net = entries.reduce((sum, [, amount, fee = 0]) => sum + amount - fee, 0)
    await query(
      `insert into provider_payouts (organization_id, psp, psp_merchant_id, payout_id, amount, currency_code, status, is_automatic, created_at, arrives_on)
       values ($1, 'stripe', $2, 'po_same', $3, 'USD', 'paid', true, '2026-10-01', '2026-10-02')`,
      [project.organizationId, merchant, net],
    )
    for (const [n, [type, amount, fee = 0, category = null]] of entries.entries())
      await query(
        `insert into balance_entries (organization_id, psp, psp_merchant_id, entry_id, payout_id, type, category, amount, fee, net, currency_code, source, entered_at)
         values ($1, 'stripe', $2, $3, 'po_same', $4, $7, $5, $6, $5::numeric - $6::numeric, 'USD', 'x_' || $3, '2026-09-30')`,
        [project.organizationId, merchant, `txn_${n}`, type, amount, fee, category],
      )
  }
  await account('one', [
    ['charge', 100, 3],
    ['payment', 50, 1],
    ['refund', -10],
    ['payment_refund', -5],
    ['refund_failure', 4],
    ['payment_failure_refund', -2],
    ['stripe_fee', -0.5],
    ['stripe_fx_fee', -0.25],
    ['tax_fee', -0.75],
    ['adjustment', -20, 15],
    ['adjustment', -1, 0, 'fee'],
    ['adjustment', 2, 0, 'refund_failure'],
    ['payout_failure', 7],
    ['application_fee', 30],
    ['application_fee_refund', -4],
  ])
  await account('two', [['charge', 1000, 9]])
  const found = (await finance('payouts', '--limit', '100')).data.filter((one: Json) => one.payout_id === 'po_same')
  assert.deepEqual(
    found
      .map((one: Json) =>
        [
          one.psp_merchant_id,
          one.entries,
          one.amount,
          one.charged,
          one.refunded,
          one.fees,
          one.account_fees,
          one.adjusted,
          one.difference,
        ].join(' '),
      )
      .sort(),
    ['one 15 130.5 150 -11 -19 -2.5 13 0', 'two 1 991 1000 0 -9 0 0 0'],
  )
})
