// What each metric counts, with few records, whose figures can be computed by hand.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { followProject } from '../../../src/data/figures/follow.ts'
import { metricNames, metrics } from '../../../src/data/figures/metrics.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Line, line, openImports, uuid } from '../../support/imports.ts'

const session = (id: string, profile_id: string, day: string, more: object = {}) =>
  line.session({ id, profile_id, created_at: `${day}T12:00:00Z`, funnel_id: 'funnel', country: 'DE', ...more })
const sale = (id: string, day: string, price: number, more: object = {}) =>
  line.transaction({ id, created_at: `${day}T12:00:00Z`, price, price_usd: price, profile_id: 'ada', ...more })

const WORLD: Line[] = [
  line.funnel({}),
  line.product({}),
  line.profile({ id: 'ada', email: 'ada@example.com', country: 'DE' }),
  line.profile({ id: 'bob', country: 'US' }),
  line.profile({ id: 'eve', country: 'US', preview: true }),
  session('s1', 'ada', '2026-01-05'),
  session('s2', 'ada', '2026-01-20', { country: 'AT' }),
  session('s3', 'bob', '2026-02-03', { funnel_id: undefined }),
  session('s4', 'eve', '2026-02-03'),
  line.reply({ session_id: 's1', screen: { id: 'age', index: 0 } }),
  line.reply({ session_id: 's1', screen: { id: 'goal', index: 1 } }),
  line.reply({ session_id: 's2', screen: { id: 'age', index: 0 } }),
  line.subscription({
    id: 'sub',
    profile_id: 'ada',
    session_id: 's1',
    created_at: '2026-01-05T12:01:00Z',
    price: 12000,
    price_usd: 12000,
    billing_interval: 'year',
    status: 'cancelled',
    period_ends_at: '2026-03-10T00:00:00Z',
    trial_offer: { days: 7 },
    trial_transaction_id: 't1',
    payment_provider: 'stripe',
  }),
  line.subscription({
    id: 'sub2',
    profile_id: 'bob',
    created_at: '2026-02-04T00:00:00Z',
    status: 'trialing',
    price: 999,
  }),
  sale('t1', '2026-01-05', 100, { subscription_id: 'sub', session_id: 's1' }),
  sale('t2', '2026-01-12', 12000, { subscription_id: 'sub', session_id: 's1' }),
  sale('t3', '2026-02-12', 12000, { subscription_id: 'sub' }),
  sale('t4', '2026-02-13', 500, { currency: 'JPY', price_usd: null }),
  sale('t5', '2026-02-14', 700, { sandbox: true }),
  line.customer({ external_id: 'ada', profile_id: 'ada' }),
  line.customer({ external_id: 'zoe' }),
  payment(1, '2026-01-12', { amount: 120 }),
  payment(2, '2026-02-01', { external_id: 'zoe', amount: 9.5, psp: 'paypal' }),
  payment(3, '2026-02-02', {
    external_id: 'zoe',
    amount: 9.5,
    status: 'failed',
    psp_reason_code: 'do_not_honor',
    psp_reason_decline_type: 'hard',
  }),
  payment(4, '2026-02-05', { amount: 20, psp_transaction_type: 'refund', status: 'refunded' }),
  payment(5, '2026-02-06', { amount: 30, psp_transaction_type: 'chargeback', psp_reason_code: 'fraudulent' }),
  payment(6, '2026-02-20', { amount: 10, psp_transaction_type: 'chargeback_reversal', psp_reason_code: 'fraudulent' }),
  payment(7, '2026-02-21', { amount: 5, psp_transaction_type: 'refund', status: 'failed' }),
]

function payment(n: number, day: string, more: { amount: number; [field: string]: unknown }) {
  const at = `${day}T10:00:00Z`
  return line.payment({
    external_id: 'ada',
    order_id: uuid(n),
    trx_id: uuid(n),
    trx_created_at: at,
    amount_usd: more.amount,
    ...more,
  })
}

const imports = await openImports()
after(() => imports.stop())
const project = await imports.project()
const { rejects } = await imports.run(project, WORLD)
assert.deepEqual(rejects, [])
await followProject(imports.db, project.id)

describe('the metrics of a small world', () => {
  const figures = (metrics: string, more: object = {}) => figuresOf(imports.db, project.id, metrics, more)

  test('revenue, refunds and chargebacks by month: refunds and chargebacks are subtracted', async () => {
    assert.deepEqual(await figures('revenue refunds chargebacks net_revenue', { period: 'month' }), [
      { period: '2026-01-01', revenue: 121, refunds: 0, chargebacks: 0, net_revenue: 121 },
      { period: '2026-02-01', revenue: 129.5, refunds: 20, chargebacks: 20, net_revenue: 89.5 },
    ])
  })

  test('what went back to a person of a preview is test data, as the payment is, also if the profile becomes one', async () => {
    const other = await imports.project()
    const at = '2026-02-03T00:00:00Z'
    const of = { external_id: 'ida', amount: 7, psp: 'paypal' }
    const back = (n: number, type: string) =>
      payment(n, `2026-02-${n - 27}`, { ...of, psp_transaction_type: type, status: 'refunded' })
    const { rejects } = await imports.run(other, [
      line.profile({ id: 'ida', created_at: at }),
      line.customer({ external_id: 'ida', profile_id: 'ida' }),
      sale('ida', '2026-02-03', 700, { profile_id: 'ida' }),
      payment(41, '2026-02-03', of),
      back(42, 'refund'),
      back(43, 'chargeback'),
    ])
    assert.deepEqual(rejects, [])
    const names = 'revenue refunds chargebacks net_revenue refund_count chargeback_count'
    const all = { revenue: 7, refunds: 7, chargebacks: 7, net_revenue: -7, refund_count: 1, chargeback_count: 1 }
    const none = { revenue: 0, refunds: 0, chargebacks: 0, net_revenue: 0, refund_count: 0, chargeback_count: 0 }
    await assertExact(imports.db, other.id)
    assert.deepEqual(await figuresOf(imports.db, other.id, names), [all])
    await imports.run(other, [line.profile({ id: 'ida', created_at: at, preview: true })])
    await assertExact(imports.db, other.id)
    assert.deepEqual(await figuresOf(imports.db, other.id, names), [none])
    assert.deepEqual(await figuresOf(imports.db, other.id, names, { test: true }), [all])
  })

  test('revenue in each currency, and sales without a value in US dollars', async () => {
    assert.deepEqual(await figures('revenue', { dimension: 'currency', money: 'own' }), [
      { key: 'JPY', currency: 'JPY', revenue: 500 },
      { key: 'USD', currency: 'USD', revenue: 250.5 },
    ])
    assert.deepEqual(await figures('without_usd'), [{ without_usd: 1 }])
  })

  test('amounts in US dollars count without a stored value, and 0 has a value in every currency', async () => {
    const other = await imports.project()
    const at = '2026-02-03T00:00:00Z'
    const plan = { profile_id: 'ada', created_at: at, status: 'active', price: 1000, billing_interval: 'month' }
    const { rejects } = await imports.run(other, [
      line.product({}),
      line.profile({ id: 'ada' }),
      sale('usd', '2026-02-03', 1000, { price_usd: null }),
      sale('free', '2026-02-03', 0, { currency: 'EUR', price_usd: null }),
      sale('eur', '2026-02-03', 900, { currency: 'EUR', price_usd: null }),
      line.subscription({ ...plan, id: 'usd', currency: 'USD' }),
      line.subscription({ ...plan, id: 'eur', currency: 'EUR' }),
      line.customer({ external_id: 'zoe' }),
      payment(21, '2026-02-03', { external_id: 'zoe', amount: 5, amount_usd: null }),
      payment(22, '2026-02-04', {
        external_id: 'zoe',
        amount: 2,
        amount_usd: null,
        psp_transaction_type: 'chargeback',
      }),
    ])
    assert.deepEqual(rejects, [])
    await assertExact(imports.db, other.id)
    assert.deepEqual(await figuresOf(imports.db, other.id, 'revenue chargebacks without_usd mrr'), [
      { revenue: 15, chargebacks: 2, without_usd: 1, mrr: 10 },
    ])
  })

  test('kinds of sales: trial, new, renewal, one-off', async () => {
    const found = await figures('revenue sales', { dimension: 'kind' })
    assert.deepEqual(
      found.filter(({ sales }) => sales !== 0),
      [
        { key: 'new', revenue: 120, sales: 1 },
        { key: 'one_off', revenue: 9.5, sales: 2 },
        { key: 'renewal', revenue: 120, sales: 1 },
        { key: 'trial', revenue: 1, sales: 1 },
      ],
    )
  })

  test('refunds and chargebacks by the reason of the provider', async () => {
    const found = await figures('refunds refund_count chargebacks chargeback_count', { dimension: 'reason' })
    assert.deepEqual(found, [
      { key: '', refunds: 20, refund_count: 1, chargebacks: 0, chargeback_count: 0 },
      { key: 'fraudulent', refunds: 0, refund_count: 0, chargebacks: 20, chargeback_count: 1 },
    ])
  })

  test('net revenue by provider and by product: what goes back has those of its payment', async () => {
    const other = await imports.project()
    const paid = (n: number, more: { amount: number; order_id: string; [field: string]: unknown }) =>
      payment(n, `2026-02-0${n - 40}`, { psp: 'adyen', amount_usd: null, currency_code: 'EUR', ...more })
    const euros = (id: string, created_at: string, price: number, more: object) =>
      sale(id, '', price, { currency: 'EUR', price_usd: null, created_at, ...more })
    const made = async (...lines: Line[]) => {
      const { rejects } = await imports.run(other, lines)
      assert.deepEqual(rejects, [])
      await followProject(imports.db, other.id)
      await assertExact(imports.db, other.id)
    }
    const [plan, pack, named] = [uuid(41), uuid(43), uuid(45)]
    await made(
      line.product({ id: 'monthly' }),
      line.profile({ id: 'ada' }),
      line.profile({ id: 'bob' }),
      line.customer({ external_id: 'ada', profile_id: 'ada' }),
      line.customer({ external_id: 'bob', profile_id: 'bob' }),
      line.customer({ external_id: 'zoe' }),
      euros('before', '2026-01-01T00:00:00Z', 100, {}),
      paid(41, { order_id: plan, amount: 30 }),
      paid(42, { order_id: plan, amount: 10, psp_transaction_type: 'refund', status: 'refunded' }),
      // A credit pack: no subscription.
      paid(43, { order_id: pack, external_id: 'bob', amount: 8 }),
      paid(44, { order_id: pack, external_id: 'bob', amount: 3, psp_transaction_type: 'chargeback' }),
      paid(45, { order_id: named, external_id: 'zoe', amount: 9, meta_subs_id: 'named' }),
      paid(46, { order_id: named, external_id: 'zoe', amount: 9, psp_transaction_type: 'refund', status: 'refunded' }),
    )
    // What tells the products comes later, each apart.
    await made(line.subscription({ id: 'named', profile_id: 'bob', product_id: 'monthly' }))
    await made(line.subscription({ id: 'sub', profile_id: 'ada', product_id: 'monthly', payment_provider: 'adyen' }))
    await made(euros('plan', '2026-02-01T10:00:00Z', 3000, { subscription_id: 'sub' }))
    await made(euros('pack', '2026-02-03T10:00:00Z', 800, { profile_id: 'bob' }))
    const by = (dimension: string) =>
      figuresOf(imports.db, other.id, 'revenue net_revenue', { dimension, money: 'own' })
    assert.deepEqual(await by('provider'), [
      { key: '', currency: 'EUR', revenue: 1, net_revenue: 1 },
      { key: 'adyen', currency: 'EUR', revenue: 47, net_revenue: 25 },
    ])
    assert.deepEqual(await by('product'), [
      { key: '', currency: 'EUR', revenue: 9, net_revenue: 6 },
      { key: 'monthly', currency: 'EUR', revenue: 39, net_revenue: 20 },
    ])
  })

  test('a payer counts once in a month; sandbox data counts only with test', async () => {
    assert.deepEqual(await figures('payers', { period: 'month' }), [
      { period: '2026-01-01', payers: 1 },
      { period: '2026-02-01', payers: 2 },
    ])
    assert.deepEqual(await figures('revenue', { test: true }), [{ revenue: 257.5 }])
  })

  test('the steps that sessions reach, by funnel', async () => {
    const steps = 'sessions people replied emails subscribed paid conversion_rate'
    assert.deepEqual(await figures(steps, { dimension: 'funnel' }), [
      { key: '', sessions: 1, people: 1, replied: 0, emails: 0, subscribed: 0, paid: 0, conversion_rate: 0 },
      { key: 'funnel', sessions: 2, people: 1, replied: 2, emails: 2, subscribed: 1, paid: 1, conversion_rate: 0.5 },
    ])
    assert.deepEqual(
      await figures('sessions', { dimension: 'country', filters: [{ dimension: 'funnel', value: 'funnel' }] }),
      [
        { key: 'AT', sessions: 1 },
        { key: 'DE', sessions: 1 },
      ],
    )
  })

  test('the screens of a funnel, and the drop-off at each', async () => {
    assert.deepEqual(
      await figures('answered stopped', { dimension: 'screen', filters: [{ dimension: 'funnel', value: 'funnel' }] }),
      [
        { key: '00000 age', answered: 2, stopped: 1 },
        { key: '00001 goal', answered: 1, stopped: 1 },
      ],
    )
  })

  test('MRR begins with the first full payment and ends with the paid period', async () => {
    assert.deepEqual(await figures('mrr paying', { period: 'month', from: '2026-01-01', to: '2026-05-01' }), [
      { period: '2026-01-01', mrr: 10, paying: 1 },
      { period: '2026-02-01', mrr: 10, paying: 1 },
      { period: '2026-03-01', mrr: 0, paying: 0 },
      { period: '2026-04-01', mrr: 0, paying: 0 },
    ])
    assert.deepEqual(await figures('new_subscriptions trials converted trial_conversion began_paying ended'), [
      { new_subscriptions: 2, trials: 2, converted: 1, trial_conversion: 0.5, began_paying: 1, ended: 1 },
    ])
  })

  describe('a subscription that is first paid for after its end, such as a debt that was paid late', () => {
    const plan = {
      id: 'sub',
      profile_id: 'ada',
      product_id: 'product',
      created_at: '2026-01-05T00:00:00Z',
      price: 1000,
    }
    const more = { price_usd: 1000, trial_offer: { days: 7 } }
    const began = line.subscription({ ...plan, ...more, status: 'active' })
    const ends = (day: string, as: object = {}) =>
      line.subscription({ ...plan, ...more, status: 'cancelled', period_ends_at: `${day}T00:00:00Z`, ...as })
    const ended = ends('2026-02-05')
    const paid = sale('late', '2026-03-20', 1000, { subscription_id: 'sub' })
    const BEFORE = '2026-01-20T00:00:00Z'
    const none = { mrr: 0, paying: 0 }
    const BY_MONTH = [
      { period: '2026-01-01', ...none, without_payment: 1, over: 0, began_paying: 0, ended: 0 },
      { period: '2026-02-01', ...none, without_payment: 1, over: 0 },
      { period: '2026-03-01', ...none, without_payment: 0, over: 1, began_paying: 1, ended: 1 },
    ]

    async function worldOf(...imported: Line[]) {
      const other = await imports.project()
      const at = { created_at: '2026-01-05T00:00:00Z' }
      await made(other, line.product({}), line.profile({ id: 'ada', ...at }))
      for (const one of imported) await made(other, one)
      // Figures that followed one import after the other are those that are computed from all records.
      await assertExact(imports.db, other.id)
      return other
    }
    async function made(other: Awaited<ReturnType<typeof worldOf>>, ...lines: Line[]) {
      const { rejects } = await imports.run(other, lines, { live: true })
      assert.deepEqual(rejects, [])
      await followProject(imports.db, other.id)
    }
    const of = (other: { id: string }, names: string, by: object = { period: 'month' }) =>
      figuresOf(imports.db, other.id, names, { from: '2026-01-01', to: '2026-04-01', ...by })
    const MOVED = [
      { period: '2026-03-20', key: 'churn', mrr_change: -10 },
      { period: '2026-03-20', key: 'new', mrr_change: 10 },
    ]

    const orders: [name: string, imported: Line[]][] = [
      ['the payment comes first', [began, paid, ended]],
      ['the end comes first', [began, ended, paid]],
      ['it is imported after its end', [ended, paid]],
      ['the end was after the payment at first', [began, paid, ends('2026-05-01'), ended]],
      ['it was paused at first', [began, paid, ends('2026-02-05', { status: 'paused' }), ended]],
      [
        'the payment was before the end at first',
        [ended, { ...paid, data: { ...paid.data, created_at: BEFORE } }, paid],
      ],
    ]
    for (const [name, imported] of orders)
      test(`begins and ends on the day of the payment, and the MRR is never below zero: ${name}`, async () => {
        const other = await worldOf(...imported)
        assert.deepEqual(await of(other, 'mrr paying without_payment over began_paying ended'), BY_MONTH)
        const days = await of(other, 'mrr', { period: 'day' })
        assert.deepEqual(new Set(days.map(({ mrr }) => mrr)), new Set([0]))
        const moved = await of(other, 'mrr_change', { period: 'day', dimension: 'movement' })
        assert.deepEqual(
          moved.filter(({ mrr_change }) => mrr_change !== 0),
          MOVED,
        )
      })

    test('has the reason that is known later', async () => {
      const other = await worldOf(ended, paid, ends('2026-02-05', { cancellation_reason: 'price' }))
      const by = await of(other, 'ended', { dimension: 'reason' })
      assert.deepEqual(
        by.filter((one) => one.ended !== 0),
        [{ key: 'price', ended: 1 }],
      )
    })

    test('one that ends before it was created ends when it was', async () => {
      const other = await worldOf(line.subscription({ ...plan, price_usd: 1000, status: 'active' }))
      assert.deepEqual(await of(other, 'mrr', {}), [{ mrr: 10 }])
      await made(
        other,
        line.subscription({ ...plan, price_usd: 1000, status: 'expired', period_ends_at: '2026-01-01T00:00:00Z' }),
      )
      const days = await of(other, 'mrr ended', { period: 'day' })
      assert.deepEqual(
        days.filter(({ mrr, ended }) => mrr !== 0 || ended),
        [{ period: '2026-01-05', mrr: 0, ended: 1 }],
      )
    })
  })

  test('payment attempts and decline reasons', async () => {
    assert.deepEqual(await figures('attempts accepted declined acceptance_rate'), [
      { attempts: 3, accepted: 2, declined: 1, acceptance_rate: 0.666667 },
    ])
    const reasons = await figures('declined', { dimension: 'reason' })
    assert.deepEqual(
      reasons.filter(({ declined }) => declined),
      [{ key: 'do_not_honor', declined: 1 }],
    )
  })

  test('a renewal that changes nothing but its period marks no day', async () => {
    const sub = WORLD.find((one) => typeof one !== 'string' && one.record === 'subscription') as { data: object }
    const renewed = line.subscription({ ...sub.data, renewed_at: '2026-02-12T00:00:00Z', psp_id: 'other' })
    await imports.run(project, [renewed], { live: true })
    assert.deepEqual(await imports.rows('select * from figure_marks'), [])
  })

  test('a subscription without a trial that is cancelled marks the day of its end alone', async () => {
    const made = { id: 'sub_no_trial', profile_id: 'ada', created_at: '2025-03-04T00:00:00Z' }
    await imports.run(project, [line.subscription({ ...made, status: 'active' })], { live: true })
    await followProject(imports.db, project.id)
    const end = { status: 'cancelled', period_ends_at: '2026-05-06T00:00:00Z' }
    await imports.run(project, [line.subscription({ ...made, ...end })], { live: true })
    const marks = await imports.rows('select family, day::text from figure_marks')
    assert.deepEqual(marks, [{ family: 'subscriptions', day: '2026-05-06' }])
    await assertExact(imports.db, project.id)
  })
})

test('docs/figures.md defines each metric, and no other', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/figures.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `([a-z_]+)` \| [a-z, ]+ \| (.+) \|$/gm)].map(([, name, text]) => [name, text])
  assert.deepEqual(
    rows,
    metricNames.map((name) => [name, metrics[name].definition]),
  )
})
