// The states of Stripe's subscriptions, and until when they count as paying.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { followProject } from '../../../../src/data/figures/follow.ts'
import { DAY_S } from '../../../../src/lib/days.ts'
import { figuresOf } from '../../../support/figures.ts'
import { savedCard } from '../../../support/simulators.ts'
import { openStripeImports } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
const { id } = await all.stripe.products.create({ name: 'Monthly' })
const params = { product: id, currency: 'usd', unit_amount: 1000, recurring: { interval: 'month' } } as const
const price = (await all.stripe.prices.create(params)).id

const secondsNow = () => Math.floor(Date.now() / 1000)
const secondsOf = (time: string | null) => (time === null ? null : Math.floor(Date.parse(time) / 1000))
const renew = (id: string) => all.simulator.control(`/subscriptions/${id}/renew`)

/** A subscription of a new customer, paid for its first period, which ends at `paid`. */
async function subscribe() {
  const { customer, payment_method: default_payment_method } = await savedCard(all.stripe)
  const made = await all.stripe.subscriptions.create({ customer, items: [{ price }], default_payment_method })
  const item = made.items.data[0]!
  return { id: made.id, customer, begun: item.current_period_start, paid: item.current_period_end }
}

async function declineFromNowOn({ id, customer }: { id: string; customer: string }): Promise<void> {
  const { id: method } = await all.stripe.paymentMethods.attach('pm_card_chargeCustomerFail', { customer })
  await all.stripe.subscriptions.update(id, { default_payment_method: method })
}

test('a subscription that is over, unpaid or paused stops counting at its end, or that of its last paid period', async () => {
  const { stripe, simulator } = all
  const made = await Promise.all(Array.from({ length: 7 }, subscribe))
  const [active, ending, over, unpaid, longUnpaid, paused, paidAndPaused] = made
  await stripe.subscriptions.update(ending!.id, { cancel_at_period_end: true })
  const ended: Stripe.Subscription = await stripe.subscriptions.cancel(over!.id)
  for (const [one, periods] of [
    [unpaid!, 1],
    [longUnpaid!, 3],
  ] as const) {
    await declineFromNowOn(one)
    for (let n = 0; n < periods; n++) await renew(one.id)
  }
  const state = await stripe.subscriptions.retrieve(longUnpaid!.id)
  await simulator.control('/objects', { objects: [{ ...state, status: 'unpaid' }] })
  const never = await savedCard(stripe)
  const declining = await stripe.paymentMethods.attach('pm_card_chargeCustomerFail', { customer: never.customer })
  const failed = await stripe.subscriptions.create({
    ...{ customer: never.customer, items: [{ price }], default_payment_method: declining.id },
  })
  await simulator.control('/objects', {
    objects: [{ ...failed, status: 'incomplete_expired', canceled_at: failed.created + 60 }],
  })
  for (const { id } of [paused!, paidAndPaused!])
    await stripe.subscriptions.update(id, { pause_collection: { behavior: 'void' } })
  await renew(paused!.id)
  const project = await all.imports.project()
  const { tally } = await all.run(project)
  assert.deepEqual(tally.rejects, [])

  const rows = await all.imports.rows(
    'select id, status, renews, period_ends_at, paused_at, cancelled_at, cancellation_reason from subscriptions where project_id = $1',
    [project.id],
  )
  const found = (one: { id: string }) => {
    const row = rows.find(({ id }) => id === one.id)!
    return [row.status, row.renews === 't', secondsOf(row.period_ends_at!), secondsOf(row.paused_at!)]
  }
  assert.deepEqual(found(active!), ['active', true, active!.paid, null])
  assert.deepEqual(found(ending!), ['active', false, ending!.paid, null])
  assert.deepEqual(found(over!), ['expired', false, ended.ended_at, null])
  const { cancelled_at, cancellation_reason } = rows.find(({ id }) => id === over!.id)!
  assert.deepEqual([secondsOf(cancelled_at!), cancellation_reason], [ended.canceled_at, 'cancellation_requested'])
  assert.deepEqual(found(unpaid!), ['unpaid', true, unpaid!.paid, null])
  assert.deepEqual(found(longUnpaid!), ['unpaid', false, longUnpaid!.paid, null])
  assert.deepEqual([found(paused!)[0], found(paused!)[3]], ['paused', paused!.paid])
  assert.deepEqual([found(paidAndPaused!)[0], found(paidAndPaused!)[3]], ['paused', paidAndPaused!.paid])

  await followProject(all.imports.db, project.id)
  const counts = await figuresOf(all.imports.db, project.id, 'began_paying ended without_payment', { test: true })
  assert.deepEqual(counts, [{ began_paying: 7, ended: 5, without_payment: 1 }])
  const days = await all.imports.rows(
    `select day::text as day, sum(mrr)::float8 as mrr from figures_subscriptions
     where project_id = $1 and split = '' and mrr <> 0 group by 1 order by 1`,
    [project.id],
  )
  const expected = new Map<string, number>()
  const add = (seconds: number, mrr: number) => {
    const day = new Date(seconds * 1000).toISOString().slice(0, 10)
    expected.set(day, (expected.get(day) ?? 0) + mrr)
  }
  // Seven begin and one ends today, or at midnight on two days; four end with their paid period.
  for (const { begun } of made) add(begun, 1000)
  add(ended.ended_at!, -1000)
  for (const one of [unpaid, longUnpaid, paused, paidAndPaused]) add(one!.paid, -1000)
  assert.deepEqual(
    days.map(({ day, mrr }) => [day, Number(mrr)]),
    [...expected].sort(),
  )
})

test('an unpaid subscription is paid until the end of the last period that an invoice was for', async () => {
  const { stripe, simulator } = all
  const monthAndYear = await stripe.prices.create({ ...params, recurring: { interval: 'year' } })
  const single = { type: 'invoice_item_details', invoice_item_details: { invoice_item: 'ii_1', proration: false } }
  const later = (days: number) => ({ start: secondsNow(), end: secondsNow() + days * DAY_S })
  const ALONE = 'nothing but a single thing'
  type Lines = (first: Stripe.InvoiceLineItem, others: Stripe.InvoiceLineItem[]) => object[]
  const cases: Record<string, Lines> = {
    'a single thing that was bought later': (line) => [{ ...line, period: later(9), parent: single }],
    [ALONE]: (line) => [{ ...line, period: later(9), parent: single }],
    'the rest of a year that was given back': (line) => [{ ...line, amount: -9000, period: later(300) }, line],
    'a period behind more than ten changes': (line) => [
      ...Array.from({ length: 11 }, (_, n) => ({ ...line, id: `il_${n}`, period: later(1) })),
      line,
    ],
    'a year of another subscription': (line) => [{ ...line, subscription: 'sub_other', period: later(365) }, line],
    'a month and a year': (line, others) => [line, ...others],
  }
  const made = new Map<string, { what: string; paid: number }>()
  for (const [what, lines] of Object.entries(cases)) {
    const { customer } = await savedCard(stripe)
    const items = what === 'a month and a year' ? [{ price }, { price: monthAndYear.id }] : [{ price }]
    const { id } = await stripe.subscriptions.create({ customer, items })
    const subscription = await stripe.subscriptions.retrieve(id)
    const [invoice] = (await stripe.invoices.list({ subscription: id, expand: ['data.payments'] })).data
    const [line, ...others] = invoice!.lines.data
    const next = { ...invoice, id: `in_next_${id}`, lines: { ...invoice!.lines, data: lines(line!, others) } }
    const first = { ...invoice, status: what === ALONE ? 'void' : 'paid' }
    await simulator.control('/objects', { objects: [{ ...subscription, status: 'past_due' }, first, next] })
    const paid = what === ALONE ? invoice!.created : subscription.items.data[0]!.current_period_end
    made.set(id, { what, paid })
  }
  const project = await all.imports.project()
  await all.run(project)
  const rows = await all.imports.rows(
    'select id, period_ends_at from subscriptions where project_id = $1 and id = any($2)',
    [project.id, [...made.keys()]],
  )
  assert.deepEqual(
    new Map(rows.map(({ id, period_ends_at }) => [made.get(id!)!.what, secondsOf(period_ends_at!)])),
    new Map(Array.from(made.values(), ({ what, paid }) => [what, paid])),
  )
})

test('a subscription that is backdated has not been renewed before its second period', async () => {
  const { stripe, simulator } = all
  const [first, second] = await Promise.all([subscribe(), subscribe()])
  await renew(second!.id)
  for (const { id, begun } of [first!, second!]) {
    const made = await stripe.subscriptions.retrieve(id)
    await simulator.control('/objects', { objects: [{ ...made, start_date: begun - 100 * DAY_S }] })
  }
  const project = await all.imports.project()
  await all.run(project)
  const rows = await all.imports.rows('select id, renewed_at from subscriptions where project_id = $1', [project.id])
  const renewedAt = ({ id }: { id: string }) => secondsOf(rows.find((row) => row.id === id)!.renewed_at!)
  assert.deepEqual([renewedAt(first!), renewedAt(second!)], [null, second!.paid])
})

test('an unpaid subscription whose price changed within its last paid period has the whole of this period', async () => {
  const { stripe, simulator } = all
  const { id, begun, paid } = await subscribe()
  await renew(id)
  const [renewal, first] = (await stripe.invoices.list({ subscription: id, expand: ['data.payments'] })).data
  const [line] = first!.lines.data
  const proration = { type: 'invoice_item_details', invoice_item_details: { invoice_item: 'ii_1', proration: true } }
  // Flexible billing names a proration in the other part of the parent.
  const flexible = {
    ...line!.parent,
    subscription_item_details: { ...line!.parent!.subscription_item_details, proration: true },
  }
  const changed = (n: number, days: number, parent: object) => {
    const period = { start: begun + days * DAY_S, end: paid }
    const data = [
      { ...line, id: `il_less_${n}`, amount: -400, period, parent },
      { ...line, id: `il_more_${n}`, amount: 900, period, parent },
    ]
    return { ...first, id: `in_changed_${n}`, lines: { ...first!.lines, data } }
  }
  const subscription = await stripe.subscriptions.retrieve(id)
  await simulator.control('/objects', {
    objects: [
      { ...subscription, status: 'past_due' },
      { ...renewal, status: 'open' },
      changed(1, 3, proration),
      changed(2, 9, flexible),
    ],
  })
  const project = await all.imports.project()
  await all.run(project)
  const found = await all.imports.row(
    'select status, period_starts_at, period_ends_at, renewed_at from subscriptions where project_id = $1 and id = $2',
    [project.id, id],
  )
  assert.deepEqual(
    [found.status, secondsOf(found.period_starts_at!), secondsOf(found.period_ends_at!), found.renewed_at],
    ['unpaid', begun, paid, null],
  )
})

test('an unpaid subscription is not paid by a yearly item that was removed, or of which more was bought', async () => {
  const { stripe, simulator } = all
  const { id: year } = await stripe.prices.create({ ...params, recurring: { interval: 'year' } })
  const [removed, more] = await Promise.all(
    [0, 1].map(async () => {
      const { customer } = await savedCard(stripe)
      return stripe.subscriptions.create({ customer, items: [{ price }, { price: year }] })
    }),
  )
  for (const made of [removed!, more!]) {
    const subscription = await stripe.subscriptions.retrieve(made.id)
    const [monthly, yearly] = subscription.items.data
    const [invoice] = (await stripe.invoices.list({ subscription: made.id, expand: ['data.payments'] })).data
    const [, ofYear] = invoice!.lines.data
    const period = { start: secondsNow(), end: yearly!.current_period_end }
    const change = {
      ...{ ...ofYear, id: `il_change_${made.id}`, period },
      parent: { type: 'invoice_item_details', invoice_item_details: { invoice_item: 'ii_1', proration: true } },
      pricing: { type: 'price_details', price_details: { price: year, product: id }, unit_amount_decimal: '1000' },
    }
    const objects =
      made === removed
        ? [{ ...subscription, status: 'past_due', items: { ...subscription.items, data: [monthly] } }]
        : [
            { ...subscription, status: 'past_due' },
            { ...invoice, id: `in_change_${made.id}`, lines: { ...invoice!.lines, data: [change] } },
          ]
    await simulator.control('/objects', { objects })
  }
  const project = await all.imports.project()
  await all.run(project)
  const rows = await all.imports.rows(
    'select id, period_ends_at from subscriptions where project_id = $1 and id = any($2)',
    [project.id, [removed!.id, more!.id]],
  )
  for (const { id, items } of [removed!, more!]) {
    const row = rows.find((one) => one.id === id)!
    assert.equal(
      secondsOf(row.period_ends_at!),
      items.data[0]!.current_period_end,
      id === more!.id ? 'more' : 'removed',
    )
  }
})

test('a subscription that is to end within its period has this end', async () => {
  const { stripe, simulator } = all
  const [within, later] = await Promise.all([subscribe(), subscribe()])
  const ends = async ({ id }: { id: string }, cancel_at: number) =>
    simulator.control('/objects', { objects: [{ ...(await stripe.subscriptions.retrieve(id)), cancel_at }] })
  await ends(within!, within!.paid - 9 * DAY_S)
  await ends(later!, later!.paid + 9 * DAY_S)
  const project = await all.imports.project()
  await all.run(project)
  const rows = await all.imports.rows(
    'select id, renews, period_ends_at from subscriptions where project_id = $1 and id = any($2)',
    [project.id, [within!.id, later!.id]],
  )
  const found = ({ id }: { id: string }) => {
    const { renews, period_ends_at } = rows.find((row) => row.id === id)!
    return [renews === 't', secondsOf(period_ends_at!)]
  }
  assert.deepEqual(
    [found(within!), found(later!)],
    [
      [false, within!.paid - 9 * DAY_S],
      [true, later!.paid],
    ],
  )
})
