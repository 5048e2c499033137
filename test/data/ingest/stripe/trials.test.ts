// Trials that are paid for, as funnels sell them: the payment for the trial is no period, and the subscription counts from the next one.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { DAY_S } from '../../../../src/lib/days.ts'
import { assertExact, figuresOf } from '../../../support/figures.ts'
import { savedCard } from '../../../support/simulators.ts'
import { until } from '../../../support/time.ts'
import { openStripeImports } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
const { stripe, simulator } = all
const put = (...objects: object[]) => simulator.control('/objects', { objects })
const ago = (days: number) => Math.floor(Date.now() / 1000) - days * DAY_S

const product = (await stripe.products.create({ name: 'Monthly' })).id
const recurring = { interval: 'month' } as const
const price = (await stripe.prices.create({ product, currency: 'usd', unit_amount: 2000, recurring })).id

/** A subscription with a trial of these days, which its customer pays for by invoices. */
async function subscribe(trial: { from: number; to: number }, more: Partial<Stripe.Subscription> = {}) {
  const { customer, payment_method } = await savedCard(stripe)
  const made = await stripe.subscriptions.create({ customer, items: [{ price }], trial_period_days: 7 })
  const created = ago(trial.from)
  const subscription = {
    ...made,
    created,
    start_date: created,
    trial_start: created,
    trial_end: ago(trial.to),
    ...more,
  }
  await put(subscription)
  const pay = async (amount: number, days: number) => {
    const given = { customer, payment_method, amount, ago_s: Math.max(0, days * DAY_S - 60) }
    const intent = await simulator.control<Stripe.PaymentIntent>('/payments', given)
    const invoice = {
      ...{ id: `in_${intent.id}`, object: 'invoice', created: ago(days), currency: 'usd', customer, status: 'paid' },
      parent: { type: 'subscription_details', subscription_details: { metadata: null, subscription: made.id } },
      payments: { data: [{ payment: { type: 'payment_intent', payment_intent: intent.id } }], has_more: false },
      lines: { data: [] },
    }
    await put(invoice)
    return { charge: intent.latest_charge as string, invoice }
  }
  return { subscription, pay }
}

test('a subscription counts from the first payment after its trial, and not from the payment for the trial', async () => {
  const over = { status: 'canceled', canceled_at: ago(45), ended_at: ago(40) } as const
  const [trying, converted, left, free] = await Promise.all([
    subscribe({ from: 3, to: -4 }),
    subscribe({ from: 50, to: 40 }, { status: 'active' }),
    subscribe({ from: 50, to: 40 }, over),
    subscribe({ from: 50, to: 40 }, { status: 'active' }),
  ])
  const forTrials = [await trying!.pay(100, 3), await converted!.pay(100, 50), await left!.pay(150, 50)]
  // A second one in the same trial, and what follows it.
  await left!.pay(300, 44)
  await converted!.pay(2000, 40)
  await converted!.pay(2000, 10)
  await free!.pay(2000, 40)

  const project = await all.imports.project()
  for (const _ of ['at first', 'and again']) {
    const { tally } = await all.run(project)
    assert.deepEqual(tally.rejects, [])
    const rows = await all.imports.rows(
      'select id, trial_transaction_id as paid from subscriptions where project_id = $1 and trial_transaction_id is not null',
      [project.id],
    )
    assert.deepEqual(
      new Map(rows.map(({ id, paid }) => [id, paid])),
      new Map([trying, converted, left].map((one, n) => [one!.subscription.id, forTrials[n]!.charge])),
    )
    await assertExact(all.imports.db, project.id)
  }
  const figures = (metrics: string, more = {}) =>
    figuresOf(all.imports.db, project.id, metrics, { test: true, ...more })
  // What was paid for in the trial besides it is a payment for the subscription.
  assert.deepEqual(await figures('trials converted began_paying ended'), [
    { trials: 4, converted: 3, began_paying: 3, ended: 1 },
  ])
  assert.deepEqual(await figures('mrr', { to: new Date().toISOString().slice(0, 10) }), [{ mrr: 40 }])
  const kinds = await figures('revenue sales', { dimension: 'kind' })
  assert.deepEqual(kinds, [
    { key: 'new', revenue: 43, sales: 3 },
    { key: 'renewal', revenue: 20, sales: 1 },
    { key: 'trial', revenue: 3.5, sales: 3 },
  ])
})

test('the payment with which a trial ends early is not one for the trial, when an import follows the account', async () => {
  const project = await all.imports.project()
  const controller = new AbortController()
  const { subscription, pay } = await subscribe({ from: 3, to: -4 })
  const following = all.run(project, { follow: true }, { signal: controller.signal })
  const stored = async (column: string, table: string, id: string) =>
    (
      await all.imports.rows(`select ${column} as value from ${table} where project_id = $1 and id = $2`, [
        project.id,
        id,
      ])
    )[0]?.value
  try {
    await until('the subscription', async () => (await stored('id', 'subscriptions', subscription.id)) !== undefined)
    await until('what changed until now', async () => {
      const [run] = await all.imports.rows('select status from stripe_imports where project_id = $1', [project.id])
      return run?.status === 'following'
    })
    await put({ ...subscription, status: 'active', trial_end: ago(1) })
    const { charge, invoice } = await pay(2000, 0)
    const event = { id: 'evt_paid', object: 'event', type: 'invoice.paid', created: ago(0), data: { object: invoice } }
    await put(event)
    await until(
      'the payment',
      async () => (await stored('subscription_id', 'transactions', charge)) === subscription.id,
    )
    assert.equal(await stored('trial_transaction_id', 'subscriptions', subscription.id), null)
  } finally {
    controller.abort()
    await following.catch(() => undefined)
  }
})
