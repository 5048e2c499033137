// Refunds, disputes and entries of the balance that are no usual ones: no money is counted that did not move.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import type { Figure } from '../../../../src/data/ingest/stripe/tally.ts'
import { DAY_S } from '../../../../src/lib/days.ts'
import { tundishAgain } from '../../../support/resident.ts'
import { savedCard } from '../../../support/simulators.ts'
import { differences, openStripeImports, storedSums } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
const { stripe } = all
const MASTER_KEY = randomBytes(32).toString('base64')
const put = (...objects: object[]) => all.simulator.control('/objects', { objects })
const monthOf = ({ created }: { created: number }) => new Date(created * 1000).toISOString().slice(0, 7)

async function pay(amount: number): Promise<Stripe.Charge> {
  const { customer, payment_method } = await savedCard(stripe)
  const how = { confirm: true, off_session: true }
  const intent = await stripe.paymentIntents.create({ ...how, amount, currency: 'usd', customer, payment_method })
  return stripe.charges.retrieve(intent.latest_charge as string)
}

test('refunds that released an authorization, disputes in another currency, entries that cannot be converted', async () => {
  const [expired, disputed] = [await pay(10_000), await pay(5_000)]
  const released = await stripe.refunds.create({ charge: expired.id })
  const { amount: amount_refunded } = released
  await put(
    { ...expired, captured: false, amount_captured: 0, amount_refunded, refunded: true, balance_transaction: null },
    { ...released, reason: 'expired_uncaptured_charge', balance_transaction: null },
  )
  const dispute = await all.simulator.control<Stripe.Dispute>('/disputes', { charge: disputed.id })
  await put({ ...dispute, amount: 4_200, currency: 'eur' })
  await put({ ...dispute, id: 'du_coin', amount: 9_900, currency: 'usdc' })
  const [entry] = (await stripe.balanceTransactions.list({ limit: 1 })).data
  await put({ ...entry, id: 'txn_coin', amount: 5, fee: 0, net: 5, currency: 'usdc', source: null, type: 'transfer' })

  const project = await all.imports.project()
  const { status, tally } = await all.run(project)
  assert.equal(status, 'done')
  assert.deepEqual(tally.rejects.toSorted(), [
    'du_coin has an amount that cannot be converted: 9900 USDC',
    'txn_coin returned 5 USDC, which cannot be converted',
  ])
  assert.deepEqual(await storedSums(all, project), [
    `chargebacks ${monthOf(dispute)} EUR: 1 4200`,
    `payments ${monthOf(disputed)} USD: 1 5000`,
  ])
})

test('the rest of an authorization that was captured in part is no refund, and a refund of the same amount is one', async () => {
  const project = await all.imports.project()
  const before = await all.run(project)
  const charge = await pay(10_000)
  const captured = { ...charge, amount_captured: 5_000, amount_refunded: 10_000, refunded: true, payment_intent: null }
  const refund = await stripe.refunds.create({ charge: charge.id, amount: 5_000 })
  const entry = await stripe.balanceTransactions.retrieve(refund.balance_transaction as string)
  const released = { ...refund, id: 're_released', balance_transaction: 'txn_released', payment_intent: null }
  const taken = { ...entry, id: 'txn_released', source: 're_released', fee: -7, net: entry.net + 7 }
  await put(captured, released, { ...taken, reporting_category: 'partial_capture_reversal' })
  // Of another API version, without an entry in the balance.
  await put(
    { ...captured, id: 'ch_other' },
    { ...released, id: 're_other', charge: 'ch_other', balance_transaction: null },
  )

  const { status, tally } = await all.run(project)
  assert.deepEqual([status, tally.rejects], ['done', before.tally.rejects])
  const rows = await all.imports.rows(
    `select psp_transaction_id as id, psp_transaction_type as type, amount from report_transactions
     where organization_id = $1 and psp_transaction_id = any($2) order by 2 desc, 1`,
    [project.organizationId, [charge.id, refund.id, 'ch_other', 're_released', 're_other']],
  )
  assert.deepEqual(
    rows.map(({ id, type, amount }) => `${type} ${id} ${amount}`),
    [...[`sale ${charge.id} 50.00`, 'sale ch_other 50.00'].sort(), `refund ${refund.id} 50.00`],
  )
  // What Stripe returned of the fee is that of the charge.
  const fees = await all.imports.rows(
    'select move, transaction_id as id, fee from provider_fees where organization_id = $1 and entry_id = $2',
    [project.organizationId, 'txn_released'],
  )
  assert.deepEqual(fees, [{ move: 'sale', id: charge.id, fee: '-0.07' }])
  // It is no payment at Stripe that is not here.
  const words = ['finance', 'entries', '--unknown', 'true', '--org', project.organizationId, '--json']
  const { stdout } = await tundishAgain(words, { DATABASE_URL: all.imports.url, MASTER_KEY })
  const unknown = JSON.parse(stdout).data.map(({ entry_id }: { entry_id: string }) => entry_id)
  assert.deepEqual(unknown.includes('txn_released'), false, unknown)
})

test('without the permission to read the balance, refunds that may be the rest of an authorization are left out and named', async () => {
  const project = await all.imports.project()
  await all.simulator.control('/faults', { path: '/v1/balance_transactions.*', kind: 'forbidden', times: 1000 })
  const { status, tally } = await all.run(project)
  await all.simulator.control('/faults/clear')
  assert.equal(status, 'done')
  const named = tally.rejects.filter((line) => line.includes(' may be a refund, or the rest of an authorization '))
  assert.equal(named.length, 2, tally.rejects.join('\n'))
  const sums = await storedSums(all, project)
  assert.deepEqual(
    sums.filter((sum) => sum.startsWith('refunds')),
    [],
  )
})

test('the transaction of a payment that failed after it had succeeded is worth nothing', async () => {
  const project = await all.imports.project()
  const charge = await pay(3_000)
  const how = { currency: 'eur', payment_intent: null, balance_transaction: null }
  const debits = [charge, { ...charge, ...how, id: 'py_failed' }]
  await put(...debits)
  await all.run(project)
  const sums = () =>
    all.imports.rows(
      `select t.price, t.price_usd, r.status from transactions t join report_transactions r
         on r.organization_id = $1 and r.psp_transaction_id = t.id where t.project_id = $2 and t.id = any($3)`,
      [project.organizationId, project.id, debits.map(({ id }) => id)],
    )
  assert.deepEqual(
    new Set((await sums()).map(({ price, status }) => `${price} ${status}`)),
    new Set(['3000 succeeded']),
  )
  const failed = { status: 'failed', failure_code: 'insufficient_funds', failure_balance_transaction: 'txn_failed' }
  await put(...debits.map((one) => ({ ...one, ...failed, amount_captured: 0 })))
  const { tally } = await all.run(project)
  const about = ({ id }: { id: string }) => tally.rejects.filter((line) => line.startsWith(id))
  assert.deepEqual(debits.flatMap(about), [])
  const nothing = { price: '0', price_usd: '0', status: 'failed' }
  assert.deepEqual(await sums(), [nothing, nothing])
})

test('a refund that failed in a later month is in both months: at first the payment back, then its failure', async () => {
  const charge = await pay(700)
  const refund = await stripe.refunds.create({ charge: charge.id })
  const created = refund.created - 70 * DAY_S
  await put({ ...charge, created, refunded: true, amount_refunded: 700 }, { ...refund, created })
  await all.simulator.control(`/refunds/${refund.id}/fail`)
  const failed = await stripe.refunds.retrieve(refund.id)
  const failure = await stripe.balanceTransactions.retrieve(failed.failure_balance_transaction as string)
  const project = await all.imports.project()
  assert.equal((await all.run(project)).status, 'done')
  const past = monthOf({ created })
  const sums = await storedSums(all, project)
  assert.deepEqual(
    sums.filter((one) => one.startsWith('failed refunds') || one.startsWith(`refunds ${past}`)),
    [`failed refunds ${monthOf(failure)} USD: 1 700`, `refunds ${past} USD: 1 700`],
  )
})

test('an import that another version left at a list that this one does not have begins again', async () => {
  const project = await all.imports.project()
  await all.run(project)
  // No event tells of it.
  await put({ ...(await pay(300)), id: 'ch_silent', payment_intent: null, customer: null, balance_transaction: null })
  await all.imports.rows(
    `update stripe_imports set status = 'failed', step = 'of/another', after = null where project_id = $1`,
    [project.id],
  )
  assert.equal((await all.run(project)).status, 'done')
  const rows = await all.imports.rows('select from report_transactions where psp_transaction_id = $1', ['ch_silent'])
  assert.equal(rows.length, 1)
})

test('a dispute whose money was taken, returned and taken again has a row for each, as the balance', async () => {
  const project = await all.imports.project()
  const charge = await pay(5_000)
  const dispute = await all.simulator.control<Stripe.Dispute>('/disputes', { charge: charge.id })
  const closed = await all.simulator.control<Stripe.Dispute>(`/disputes/${dispute.id}/close`, { status: 'won' })
  const [taken, returned] = closed.balance_transactions
  const again = { ...taken!, id: 'txn_again', created: taken!.created + 2 }
  const late = { ...returned!, created: taken!.created + 1 }
  await put(again, { ...closed, status: 'lost', balance_transactions: [taken, late, again] })
  // In the account's currency: the half of it came back, and was taken again.
  const inEuros = { ...dispute, id: 'du_euros', currency: 'eur', amount: 4_000, status: 'lost' }
  const entries = [-5_000, 2_500, -2_500].map((amount, n) => ({
    ...again,
    id: `txn_euros${n}`,
    amount,
    created: n + 1,
  }))
  await put({ ...inEuros, balance_transactions: entries })

  const rowsOf = (id: string) =>
    all.imports.rows(
      `select psp_transaction_type as type, amount from report_transactions
       where organization_id = $1 and psp_transaction_id = $2 order by psp_date`,
      [project.organizationId, id],
    )
  const state = await all.run(project)
  const inDispute = (rows: Record<string, string | null>[]) => rows.map(({ type, amount }) => `${type} ${amount}`)
  assert.deepEqual(inDispute(await rowsOf(dispute.id)), [
    'chargeback 50.00',
    'chargeback_reversal 50.00',
    'chargeback 50.00',
  ])
  assert.deepEqual(inDispute(await rowsOf('du_euros')), [
    'chargeback 40.00',
    'chargeback_reversal 20.00',
    'chargeback 20.00',
  ])
  const isDisputed = ({ kind, currency }: Figure) => kind.includes('chargebacks') && currency !== 'USDC'
  assert.deepEqual(differences(state).filter(isDisputed), [])
})
