// Refund and dispute rates over the payments that they belong to, compared with an independent model of the payment report.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openRandom } from '../../../src/lib/seeded-random.ts'
import { startBilling } from '../../support/billing.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Line, line, type Project, uuid } from '../../support/imports.ts'
import { openErasedImports } from '../ingest/erased-imports.ts'

const COUNTS = 'payments refunded_payments disputed_payments'
const MONEY = 'paid_amount refunded_amount disputed_amount'
const DIMENSIONS = ['product', 'funnel', 'country', 'provider', 'cohort']

const imports = await openErasedImports()
after(() => imports.stop())

type Sums = Record<string, number>

/** Walks the rows of each order: what went back of its first payment, and whose payment it was. */
async function modelOf({ organizationId }: Project): Promise<Map<string, Sums>> {
  const rows = await imports.rows(
    `select r.*, coalesce(r.psp_date, r.trx_created_at) as at, to_char(coalesce(r.psp_date, r.trx_created_at) at time zone 'UTC', 'YYYY-MM') as month,
       c.profile_id, coalesce(p.funnel_id, '') as funnel, coalesce(p.country, '') as country from report_transactions r
     join customers c using (organization_id, external_id) left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
     where r.organization_id = $1 order by r.trx_created_at`,
    [organizationId],
  )
  const subscriptions = await imports.rows('select id, product_id from subscriptions')
  const transactions = await imports.rows('select profile_id, created_at, subscription_id from transactions')
  const sales = rows.filter((one) => one.psp_transaction_type === 'sale' && one.status === 'succeeded')
  const found = new Map<string, Sums>()
  for (const own of Map.groupBy(rows, ({ order_id }) => order_id!).values()) {
    const isBack = ({ psp_transaction_type }: (typeof own)[number]) => psp_transaction_type !== 'sale'
    const paid = own.filter((one) => sales.includes(one))
    const groups =
      paid.length > 0
        ? paid.map((one, n) => [one, ...(n === 0 ? own.filter(isBack) : [])])
        : own.filter(isBack).map((one) => [one])
    for (const group of groups) {
      const sums: Record<string, Sums> = {}
      const add = (currency: string, name: string, value: number) => {
        sums[currency] ??= {}
        sums[currency][name] = (sums[currency][name] ?? 0) + value
      }
      let [refunds, disputes] = [0, 0]
      for (const one of group) {
        const amount = Number(one.amount)
        const currency = one.currency_code!
        if (one.psp_transaction_type === 'sale') add(currency, 'paid_amount', amount)
        else if (one.psp_transaction_type === 'chargeback') {
          disputes += 1
          add(currency, 'disputed_amount', amount)
        } else if (one.psp_transaction_type === 'chargeback_reversal') add(currency, 'disputed_amount', -amount)
        else if (one.status === 'refunded') {
          refunds += 1
          add(currency, 'refunded_amount', amount)
        } else if (
          one.psp_transaction_id !== null &&
          own.some(
            (earlier) =>
              earlier.status === 'refunded' &&
              earlier.psp_transaction_type === 'refund' &&
              earlier.psp_transaction_id === one.psp_transaction_id &&
              earlier.trx_created_at! < one.trx_created_at!,
          )
        ) {
          refunds -= 1
          add(currency, 'refunded_amount', -amount)
        }
      }
      const [first] = group as [(typeof own)[number]]
      const isPayment = paid.includes(first)
      add(first.currency_code!, 'payments', Number(isPayment))
      add(first.currency_code!, 'refunded_payments', Number(isPayment && refunds > 0))
      add(first.currency_code!, 'disputed_payments', Number(isPayment && disputes > 0))
      const bought =
        subscriptions.find(({ id }) => id === first.meta_subs_id) ??
        subscriptions.find(({ id }) =>
          transactions.some(
            (t) => t.profile_id === first.profile_id && t.created_at === first.at && t.subscription_id === id,
          ),
        )
      const begun = sales
        .filter(({ external_id }) => external_id === first.external_id)
        .map(({ month }) => month!)
        .sort()[0]
      const keys: Record<string, string> = {
        product: bought?.product_id ?? '',
        funnel: first.funnel!,
        country: first.country!,
        provider: first.psp!,
        cohort: begun ?? '',
      }
      for (const [currency, values] of Object.entries(sums))
        for (const dimension of DIMENSIONS)
          for (const month of [first.month!, 'all']) {
            const place = `${dimension} ${keys[dimension]} ${month} ${currency}`
            const all = found.get(place) ?? {}
            for (const [name, value] of Object.entries(values))
              all[name] = Math.round(((all[name] ?? 0) + value) * 100) / 100
            found.set(place, all)
          }
    }
  }
  return found
}

test('equal a model of the report through late refunds, lost disputes, corrections and erasures', async () => {
  const project = await imports.project()
  const random = openRandom(5)
  const people = ['ada', 'bob', 'eve']
  const at = (n: number) =>
    new Date(Date.UTC(2026, 0, 1 + random.integer(0, 80), random.integer(0, 23), n)).toISOString()
  await imports.run(project, [
    line.merchant_account({}),
    line.funnel({ id: 'quiz' }),
    ...['monthly', 'yearly'].map((id) => line.product({ id })),
    ...people.map((id, n) =>
      line.profile({
        id,
        email: `${id}@example.com`,
        country: n === 0 ? 'DE' : 'US',
        ...(n < 2 && { funnel_id: 'quiz' }),
      }),
    ),
    ...people.map((id) => line.customer({ external_id: id, profile_id: id })),
    line.customer({ external_id: 'alone' }),
  ])
  for (let step = 1; step <= 3; step += 1) {
    const lines: Line[] = []
    for (let n = 0; n < 25; n += 1) {
      const number = random.integer(1, 90)
      const type = random.pick(['sale', 'sale', 'refund', 'refund', 'chargeback', 'chargeback_reversal'])
      const time = at(number % 60)
      const external_id = random.pick([...people, 'alone'])
      // An order is of one customer.
      const order = people.concat('alone').indexOf(external_id) * 10 + random.integer(0, 7)
      lines.push(
        line.payment({
          external_id,
          order_id: uuid(7000 + order),
          trx_id: uuid(500_000 + number),
          trx_created_at: time,
          psp_date: time,
          psp_transaction_type: type,
          psp: random.pick(['stripe', 'primer']),
          psp_transaction_id: random.pick(['r1', 'r2', undefined]),
          status:
            type === 'refund'
              ? random.pick(['refunded', 'refunded', 'failed'])
              : type === 'sale'
                ? random.pick(['succeeded', 'succeeded', 'failed'])
                : 'succeeded',
          amount: random.integer(1, 50),
          currency_code: random.pick(['USD', 'EUR']),
          meta_subs_id: random.pick(['sub_1', 'sub_3', undefined]),
        }),
      )
      if (type === 'sale' && external_id !== 'alone' && step > 1)
        lines.push(
          line.transaction({
            id: `t${number}`,
            profile_id: external_id,
            created_at: time,
            subscription_id: 'sub_2',
            price: 100,
          }),
        )
    }
    if (step > 1)
      lines.unshift(
        ...['sub_1', 'sub_2'].map((id) =>
          line.subscription({ id, profile_id: 'ada', product_id: random.pick(['monthly', 'yearly']) }),
        ),
      )
    const { rejects } = await imports.run(project, lines)
    assert.deepEqual(rejects, [])
    if (step === 2) await imports.erase(project, 'bob')
    await assertExact(imports.db, project.id, `after step ${step}`)
    const model = await modelOf(project)
    for (const dimension of DIMENSIONS)
      for (const period of ['month', undefined] as const) {
        const more = { dimension, money: 'own', ...(period && { period }) } as const
        const shown = new Map<string, Sums>()
        // Counts are in the figure of each currency of their payments.
        for (const one of (await figuresOf(imports.db, project.id, `${COUNTS} ${MONEY}`, more)) as (Sums & {
          key: string
          period?: string
          currency: string
        })[]) {
          const { key, period: start, currency, ...values } = one
          shown.set(`${dimension} ${key} ${start?.slice(0, 7) ?? 'all'} ${currency}`, values)
        }
        const wanted = [...model].filter(
          ([place]) => place.startsWith(`${dimension} `) && place.includes(' all ') === (period === undefined),
        )
        const full = (values: Sums) =>
          Object.fromEntries(`${COUNTS} ${MONEY}`.split(' ').map((name) => [name, values[name] ?? 0]))
        // A refund that failed at once moved no money.
        const given = (all: [string, Sums][]) =>
          Object.fromEntries(
            all
              .map(([place, values]) => [place, full(values)] as const)
              .filter(([, values]) => Object.values(values).some(Boolean))
              .sort(),
          )
        assert.deepEqual(given([...shown]), given(wanted), `step ${step}`)
      }
  }
})

test('a subscription that comes after its payments, or gets another product, is that of their days', async () => {
  const project = await imports.project()
  const bought = (id: string, product_id: string) => line.subscription({ id, profile_id: 'ada', product_id })
  const paid = {
    external_id: 'ada',
    order_id: uuid(1),
    meta_subs_id: 'sub',
    psp_transaction_type: 'sale',
    status: 'succeeded',
  }
  await imports.run(project, [
    line.merchant_account({}),
    ...['monthly', 'yearly'].map((id) => line.product({ id })),
    line.profile({ id: 'ada' }),
    line.customer({ external_id: 'ada', profile_id: 'ada' }),
    line.payment({
      ...paid,
      trx_id: uuid(2),
      amount: 10,
      currency_code: 'USD',
      trx_created_at: '2026-01-05T00:00:00Z',
    }),
  ])
  const products = async () => {
    await assertExact(imports.db, project.id)
    return (await figuresOf(imports.db, project.id, 'payments', { dimension: 'product' })).map(({ key }) => key)
  }
  assert.deepEqual(await products(), [''])
  await imports.run(project, [bought('sub', 'monthly')])
  assert.deepEqual(await products(), ['monthly'])
  await imports.run(project, [bought('sub', 'yearly')])
  assert.deepEqual(await products(), ['yearly'])
})

test('a refund counts on the day of the payment, which is computed again', async () => {
  const billing = await startBilling({}, { worker: false })
  try {
    const { db } = billing
    const shop = await billing.organization()
    const customer = await shop.customer()
    const { body } = await shop.charge(customer, { amount: '20.00' })
    const day = '2026-01-15'
    await db.query(`update report_transactions set psp_date = '${day} 12:00Z' where order_id = $1`, [body.order_id])
    const METRICS = 'payments refund_rate_by_count refund_rate_by_money'
    const seen = async () => {
      await assertExact(db, shop.projectId)
      return (
        await figuresOf(db, shop.projectId, METRICS, { test: true, dimension: 'provider', from: day, to: '2026-01-16' })
      )[0]
    }
    await db.query(`insert into figure_marks (project_id, family, day) values ($1, 'sales', '${day}')`, [
      shop.projectId,
    ])
    assert.deepEqual(await seen(), { key: 'simulator', payments: 1, refund_rate_by_count: 0, refund_rate_by_money: 0 })
    const refund = await shop.refund(customer, body.order_id, { amount: '5.00', idempotency_key: 'part' })
    assert.equal(refund.status, 200)
    assert.deepEqual(await seen(), {
      key: 'simulator',
      payments: 1,
      refund_rate_by_count: 1,
      refund_rate_by_money: 0.25,
    })
  } finally {
    await billing.stop()
  }
})
