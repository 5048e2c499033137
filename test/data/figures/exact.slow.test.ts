// Figures stay equal to the records through any sequence of imports, charges, refunds and erasures.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { followAll, rebuildFigures } from '../../../src/data/figures/follow.ts'
import { readLifetime } from '../../../src/data/figures/lifetime.ts'
import { markRates } from '../../../src/data/figures/rate-marks.ts'
import type { Filter } from '../../../src/data/figures/read.ts'
import { readReturns } from '../../../src/data/figures/returns.ts'
import { readExperiments } from '../../../src/data/figures/verdicts.ts'
import { DAY_MS } from '../../../src/lib/days.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { openRandom } from '../../../src/lib/seeded-random.ts'
import { storeRates } from '../../../src/payments/billing/rates/store-rates.ts'
import { startBilling } from '../../support/billing.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Line, line, load, openImports, uuid } from '../../support/imports.ts'
import { ok } from '../../support/server.ts'

const FUNNELS = ['quiz', 'offer', undefined]
const STATUSES = ['created', 'trialing', 'active', 'paused', 'cancelled', 'expired', 'unpaid']
const SEEDS = [
  { seed: 1, zone: 'UTC', currency: 'USD' },
  { seed: 2, zone: 'Pacific/Auckland', currency: 'EUR' },
  { seed: 11, zone: 'America/St_Johns', currency: 'JPY' },
]
const STEPS = 4
const SET = 'update projects set time_zone = $2, reporting_currency = $3 where id = $1'

const imports = await openImports()
after(() => imports.stop())

describe('figures', () => {
  for (const { seed, zone, currency } of SEEDS) {
    test(`equal the records after each of ${STEPS} imports, seed ${seed}, in ${zone} and ${currency}`, async () => {
      const project = await imports.project()
      await imports.db.query(SET, [project.id, zone, currency])
      const world = openWorld(seed)
      await imports.run(project, world.catalogue)
      for (let step = 1; step <= STEPS; step += 1) {
        const { rejected, rejects } = await imports.run(project, world.lines(step), { live: step % 3 === 0 })
        assert.equal(rejected, 0, JSON.stringify(rejects[0]))
        await assertExact(imports.db, project.id, `after import ${step}`)
        if (step !== 2 || seed === 1) continue
        const rates = ['2026-01-02', '2026-01-20', `2026-02-${10 + step}`].flatMap((day) => [
          { day, currencyCode: 'USD', perEuro: `1.${step}` },
          { day, currencyCode: 'JPY', perEuro: `16${step}.5` },
        ])
        await storeRates(imports.db, rates, project.organizationId, markRates)
        await assertExact(imports.db, project.id, `after rates ${step}`)
      }
      if (seed !== 2) return
      await assertCombined(imports.db, project.id)
      // Figures of the old settings are gone after a change.
      await imports.db.query(SET, [project.id, 'Asia/Kathmandu', 'GBP'])
      await assertExact(imports.db, project.id, 'after a change')
    })
  }

  test('equal the records after subscriptions changed their state alone', async () => {
    const project = await imports.project()
    const { subscriptions, transactions } = everyChangeOfState()
    const { rejects } = await imports.run(project, [
      line.product({ id: 'monthly' }),
      ...subscriptions.map(({ data }) => line.profile({ id: data.id })),
      ...transactions,
      ...subscriptions.map(({ from, data }) => line.subscription({ ...data, status: from })),
    ])
    assert.deepEqual(rejects, [])
    await assertExact(imports.db, project.id, 'before')
    await imports.run(
      project,
      subscriptions.map(({ to, data }) => line.subscription({ ...data, status: to })),
      { live: true },
    )
    await assertExact(imports.db, project.id, 'after')
  })

  test('a rebuild gives the same figures', async () => {
    const project = await imports.project()
    const world = openWorld(9)
    await imports.run(project, [...world.catalogue, ...world.lines(1), ...world.lines(2)])
    await followAll(imports.db)
    const kept = await figuresOf(imports.db, project.id, 'revenue sessions mrr attempts', { period: 'day' })
    assert.ok(kept.length > 20)
    await imports.db.query(`update figures_sales set gross = gross + 1 where project_id = $1`, [project.id])
    assert.ok((await rebuildFigures(imports.db, project.id)) > 20)
    assert.deepEqual(await figuresOf(imports.db, project.id, 'revenue sessions mrr attempts', { period: 'day' }), kept)
    await assertExact(imports.db, project.id)
  })

  test('two processes that follow at once compute each day once', async () => {
    const project = await imports.project()
    const world = openWorld(10)
    await imports.run(project, [...world.catalogue, ...world.lines(1)])
    await Promise.all([followAll(imports.db), followAll(imports.db), followAll(imports.db)])
    await assertExact(imports.db, project.id)
  })
})

const SUMS = [
  'sessions people visitors replied paid',
  'revenue refunds chargebacks sales payers customers without_usd',
  'attempts declined',
  'first_declines declined_amount recovered',
  'payments paid_amount refunded_payments refunded_amount',
  'new_subscriptions trials converted ended mrr_change mrr paying over',
]

/** What is computed from the records adds up to what is stored, in families with and without stored pairs. */
async function assertCombined(db: Db, projectId: string) {
  const total = (found: Awaited<ReturnType<typeof figuresOf>>) => {
    const sums: Record<string, number> = {}
    for (const values of found)
      for (const [name, value] of Object.entries(values))
        if (typeof value === 'number' && value !== 0) sums[name] = (sums[name] ?? 0) + value
    return Object.fromEntries(Object.entries(sums).map(([name, value]) => [name, Math.round(value * 1e6)]))
  }
  const values = async (dimension: string) =>
    (await figuresOf(db, projectId, 'revenue', { dimension })).map((one) => (one as { key: string }).key)
  for (const names of SUMS) {
    const of = (more: object) => figuresOf(db, projectId, names, more)
    const all = total(await of({}))
    assert.ok(Object.keys(all).length >= 2, names)
    const pairs = [
      ['country', 'source'] as const,
      ...(names.startsWith('revenue') ? [['variant', 'campaign'] as const] : []),
    ]
    for (const [dimension, other] of pairs) {
      const each = (await values(dimension)).flatMap(async (value) => {
        const filters = [{ dimension, value }]
        const found = await of({ filters })
        const split = await Promise.all(
          (await values(other)).map((one) => of({ filters: [...filters, { dimension: other, value: one }] })),
        )
        const several = await of({
          filters,
          period: 'month',
          dimension: names.startsWith('new') ? 'provider' : undefined,
        })
        if (!names.includes('mrr')) assert.deepEqual(total(several), total(found), `${names} by month, ${dimension}`)
        assert.deepEqual(total(split.flat()), total(found), `${names} of one ${dimension} by ${other}`)
        return found
      })
      assert.deepEqual(total((await Promise.all(each)).flat()), all, `${names} by ${dimension}`)
    }
  }
  await assertWorthCombined(db, projectId)
}

/** Worth, returns and experiments of each country add up to those of all. */
async function assertWorthCombined(db: Db, projectId: string) {
  const days = { from: '2026-01-01', to: '2026-04-01', test: false }
  const sum = (all: number[]) => Math.round(all.reduce((one, other) => one + other, 0) * 100)
  const countries = ['DE', 'US'].map((value) => [{ dimension: 'country', value }])
  const returned = async (by?: 'campaign') => {
    const read = (filters: Filter[]) =>
      readReturns(db, { projects: [projectId], ...days, filters, ...(by !== undefined && { by }) })
    const each = (await Promise.all(countries.map(read))).flat()
    return [await read([]), each].map((rows) => [
      sum(rows.map(({ returned }) => returned.at(-1)!)),
      sum(rows.map(({ people }) => people)),
      sum(rows.map((row) => (row.revenue_per_new_person ?? 0) * row.people)),
    ])
  }
  for (const by of [undefined, 'campaign'] as const) {
    const [all, each] = await returned(by)
    assert.deepEqual(each, all)
  }
  for (const since of ['session', 'payment'] as const) {
    const read = (filters: Filter[]) =>
      readLifetime(db, { projects: [projectId], ...days, since, cohort: 'month', filters, today: '2026-06-01' })
    const moneyOf = (rows: Awaited<ReturnType<typeof read>>) =>
      sum(rows.map(({ worth, people }) => (worth.at(-1) ?? 0) * people))
    const found = await Promise.all(countries.map((one) => read([...one, { dimension: 'source', value: 'google' }])))
    const google = await readLifetime(db, {
      projects: [projectId],
      ...days,
      since,
      cohort: 'month',
      by: 'source',
      value: 'google',
      today: '2026-06-01',
    })
    assert.ok(Math.abs(moneyOf(found.flat()) - moneyOf(google)) <= 1, `worth since ${since}`)
  }
  const people = async (filters: Filter[]) =>
    (await readExperiments(db, projectId, { ...days, filters })).flatMap(({ people, variants }) => [
      people,
      ...variants.map(({ payers }) => payers),
    ])
  const both = (await Promise.all(countries.map(people))).flat()
  assert.equal(sum(both), sum(await people([])))
}

/**
 * Subscriptions for each change of state, each kind of trial and each kind of recorded payment. Every one is of another person, and begins
 * and ends on other days, so that no day is computed again because of another one.
 */
function everyChangeOfState() {
  const offer = { trial_offer: { days: 7 } }
  const trials = [{}, offer, { trial_transaction_id: '' }, { ...offer, trial_transaction_id: '' }]
  const subscriptions: { from: string; to: string; data: { id: string } & Record<string, unknown> }[] = []
  const transactions: Line[] = []
  const day = (first: string, n: number) => new Date(Date.parse(first) + n * DAY_MS).toISOString()
  for (const trial of trials)
    for (const paid of ['nothing', 'the trial', 'a month', 'a month after the end'])
      for (const from of STATUSES)
        for (const to of STATUSES.filter((status) => status !== from)) {
          const n = subscriptions.length
          const id = `sub_${n}`
          const pay = (name: string, created_at: string) =>
            transactions.push(
              line.transaction({ id: name, created_at, profile_id: id, subscription_id: id, price: 100 }),
            )
          const own = {
            ...trial,
            ...('trial_transaction_id' in trial && { trial_transaction_id: paid === 'nothing' ? null : `${id}_trial` }),
            created_at: day('2020-01-01', n),
            period_ends_at: day(paid === 'a month after the end' ? '2022-01-01' : '2024-01-01', n),
          }
          if (paid !== 'nothing') pay(`${id}_trial`, own.created_at)
          if (paid === 'a month') pay(`${id}_month`, day('2022-01-01', n))
          if (paid === 'a month after the end') pay(`${id}_month`, day('2024-01-01', n))
          subscriptions.push({ from, to, data: { id, profile_id: id, product_id: 'monthly', ...own } })
        }
  return { subscriptions, transactions }
}

test('charges and refunds are followed, and an erasure changes no sum', async () => {
  const billing = await startBilling({}, { worker: false })
  try {
    const { db, server } = billing
    const shop = await billing.organization()
    const linked = await shop.customer({ profileId: 'pro_1' })
    const alone = await shop.customer()
    const profile = line.profile({ id: 'pro_1', email: 'ada@example.com', country: 'DE' })
    await load(server.app, shop.projectId, [profile, line.session({ profile_id: 'pro_1' })])
    const first = await shop.charge(linked, { amount: '20.00' })
    await shop.charge(alone, { amount: '7.50' })
    await shop.refund(linked, first.body.order_id, { amount: '5.00', idempotency_key: 'part' })
    await assertExact(db, shop.projectId)
    const seen = () =>
      figuresOf(db, shop.projectId, 'revenue refunds net_revenue sales sessions emails', { test: true })
    const sums = { revenue: 27.5, refunds: 5, net_revenue: 22.5, sales: 2, sessions: 1, emails: 1 }
    assert.deepEqual(await seen(), [sums])
    await ok(
      server.api('/profiles/anonymize', { key: shop.projectKey, method: 'POST', body: { profile_ids: ['pro_1'] } }),
    )
    await assertExact(db, shop.projectId)
    assert.deepEqual(await seen(), [sums])
    await rebuildFigures(db, shop.projectId)
    assert.deepEqual(await seen(), [sums])
  } finally {
    await billing.stop()
  }
})

/** A small world whose records change with each import, within three months. */
function openWorld(seed: number) {
  const random = openRandom(seed)
  // Payments and transactions often have the same time: they are the same money.
  const at = (hour = random.integer(0, 23)) =>
    new Date(Date.UTC(2026, random.integer(0, 2), random.integer(1, 28), hour)).toISOString()
  const moments = Array.from({ length: 12 }, () => at(12))
  const paidAt = () => (random.chance(0.5) ? random.pick(moments) : at())
  const maybe = <T>(value: T) => (random.chance(0.5) ? value : undefined)
  const one = (kind: string, of: number) => `${kind}_${random.integer(1, of)}`
  const known = { pro: new Set<string>(), ses: new Set<string>(), sub: new Set<string>() }
  const pick = (kind: keyof typeof known) => random.pick([...known[kind]])
  const catalogue: Line[] = [
    line.funnel({ id: 'quiz' }),
    line.funnel({ id: 'offer' }),
    line.product({ id: 'monthly' }),
    line.product({ id: 'yearly' }),
    line.experiment({ id: 'price' }),
    line.experiment({ id: 'length' }),
    line.merchant_account({}),
  ]
  function lines(step: number): Line[] {
    const made: Line[] = []
    for (let n = 0; n < 12; n += 1) {
      const id = one('pro', 15)
      known.pro.add(id)
      const email = maybe(`${id}@example.com`)
      made.push(
        line.profile({ id, created_at: at(), email, country: random.pick(['DE', 'US']), preview: random.chance(0.1) }),
      )
    }
    for (let n = 0; n < 15; n += 1) {
      const id = one('ses', 40)
      known.ses.add(id)
      const funnel_id = random.pick(FUNNELS)
      const query_params = {
        utm_source: random.pick(['google', 'meta', '']),
        utm_campaign: random.pick(['spring', 'autumn']),
      }
      const place = {
        country: random.pick(['DE', 'US']),
        variant: maybe(random.pick(['a', 'b'])),
        experiment_id: maybe(random.pick(['price', 'length'])),
      }
      made.push(line.session({ id, created_at: at(), profile_id: pick('pro'), funnel_id, query_params, ...place }))
    }
    for (let n = 0; n < 8; n += 1) {
      const screen = random.integer(0, 3)
      const element = { id: 'element', type: random.pick(['Input', 'Radio']) }
      const value = random.pick(['x', 'y', null])
      made.push(line.reply({ session_id: pick('ses'), screen: { id: `s${screen}`, index: screen }, element, value }))
    }
    for (let n = 0; n < 12; n += 1) {
      const id = one('sub', 20)
      known.sub.add(id)
      made.push(line.subscription(subscription(id)))
    }
    for (let n = 0; n < 20; n += 1) made.push(line.transaction(transaction(one('trn', 60))))
    for (let n = 0; n < 3; n += 1) {
      made.push(line.customer({ external_id: one('cus', 6), profile_id: maybe(pick('pro')) }))
    }
    for (let n = 0; n < 10; n += 1) made.push(line.payment(payment(step * 100 + n)))
    return made
  }
  function subscription(id: string) {
    const created_at = at()
    return {
      id,
      created_at,
      status: random.pick(STATUSES),
      product_id: random.pick(['monthly', 'yearly']),
      price: random.pick([1999, 999]),
      price_usd: maybe(1999),
      profile_id: pick('pro'),
      session_id: maybe(pick('ses')),
      funnel_id: random.pick(FUNNELS),
      payment_provider: maybe('stripe'),
      trial_offer: maybe({ days: 7 }),
      trial_transaction_id: maybe(one('trn', 60)),
      period_ends_at: maybe(at()),
      cancelled_at: maybe(at()),
      paused_at: maybe(at()),
      sandbox: random.chance(0.1),
    }
  }
  function transaction(id: string) {
    return {
      id,
      created_at: paidAt(),
      profile_id: pick('pro'),
      session_id: maybe(pick('ses')),
      subscription_id: maybe(pick('sub')),
      funnel_id: random.pick(FUNNELS),
      price: random.pick([0, 100, 1999]),
      price_usd: maybe(1999),
      currency: random.pick(['USD', 'EUR', 'JPY']),
    }
  }
  function payment(n: number) {
    const type = random.pick(['sale', 'sale', 'sale', 'refund', 'chargeback', 'chargeback_reversal'])
    return {
      external_id: one('cus', 6),
      order_id: uuid(900_000 + random.integer(1, 20)),
      trx_id: uuid(800_000 + (random.chance(0.3) ? random.integer(1, 100) : n + seed * 10_000)),
      psp_transaction_type: type,
      status:
        type === 'refund'
          ? random.pick(['refunded', 'failed'])
          : type === 'sale'
            ? random.pick(['succeeded', 'failed'])
            : 'succeeded',
      psp_transaction_id: maybe('at_provider'),
      trx_created_at: at(),
      psp_date: maybe(paidAt()),
      psp: random.pick(['simulator', 'adyen']),
      meta_subs_id: random.chance(0.2) ? pick('sub') : undefined,
      amount: random.integer(1, 50),
      amount_usd: maybe(random.integer(1, 50)),
      currency_code: random.pick(['USD', 'JPY']),
    }
  }
  return { catalogue, lines }
}
