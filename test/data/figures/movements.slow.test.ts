// Movements of the MRR: by hand, by an independent model on random histories, and that they add up to its change.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openRandom } from '../../../src/lib/seeded-random.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Imports, type Line, line, type Project } from '../../support/imports.ts'
import { type ErasedImports, openErasedImports } from '../ingest/erased-imports.ts'

const at = (day: string) => `${day}T12:00:00Z`
const sub = (
  id: string,
  profile_id: string,
  from: string,
  price: number,
  end?: [status: string, day: string],
  more = {},
) =>
  line.subscription({
    id,
    profile_id,
    product_id: 'monthly',
    created_at: at(from),
    price,
    price_usd: price,
    status: end?.[0] ?? 'active',
    ...(end && (end[0] === 'paused' ? { paused_at: at(end[1]) } : { period_ends_at: at(end[1]) })),
    ...more,
  })

interface Fact {
  status?: string | null
  currency?: string | null
  worth?: string | null
  usd?: string | null
  sign: number
}

/** What the movements add up to on each day, in US cents: independent of the statements that compute figures. */
async function modelOf({ rows }: Imports, { id }: Project): Promise<Map<string, number>> {
  const all = await rows(
    `select u.id, u.profile_id, u.sandbox::text, u.status, u.currency, monthly_worth(u.price, billing_interval, billing_interval_count) as worth,
       coalesce(monthly_worth(coalesce(u.price_usd, case when u.currency = 'USD' or u.price = 0 then u.price end), billing_interval, billing_interval_count), 0) as usd,
       to_char(coalesce((select min(t.created_at) from transactions t where t.project_id = u.project_id and t.subscription_id = u.id
         and t.price > 0 and t.id is distinct from u.trial_transaction_id), case when u.status = 'active' or u.status not in ('created', 'trialing')
         and u.trial_offer is null and u.trial_transaction_id is null then u.created_at end) at time zone 'UTC', 'YYYY-MM-DD') as began,
       to_char(case u.status when 'paused' then coalesce(u.paused_at, u.period_ends_at, u.created_at)
         when 'cancelled' then coalesce(u.period_ends_at, u.cancelled_at, u.created_at)
         when 'expired' then coalesce(u.period_ends_at, u.cancelled_at, u.created_at)
         when 'unpaid' then coalesce(u.period_ends_at, u.cancelled_at, u.created_at) end at time zone 'UTC', 'YYYY-MM-DD') as ended
     from subscriptions u join profiles p on p.project_id = u.project_id and p.id = u.profile_id
     where u.project_id = $1 and not p.preview and not u.sandbox`,
    [id],
  )
  // One that is first paid for after its end ends with this payment.
  for (const one of all) if (one.began && one.ended && one.ended < one.began) one.ended = one.began
  const sums = new Map<string, number>()
  for (const own of Map.groupBy(all, (one) => one.profile_id!).values()) {
    const paying = own.filter(({ began, worth }) => began !== null && Number(worth) > 0)
    const days = new Set(
      own.flatMap(({ began, ended }) => (began === null ? [] : [began!, ...(ended === null ? [] : [ended!])])),
    )
    for (const day of days) {
      const before = paying.some(({ began, ended }) => began! < day && (ended === null || ended! >= day))
      const after = paying.some(({ began, ended }) => began! <= day && (ended === null || ended! > day))
      const ever = paying.some(({ began }) => began! < day)
      const began: Fact[] = own.filter((one) => one.began === day).map((one) => ({ ...one, sign: 1 }))
      const ended: Fact[] = own
        .filter((one) => one.began !== null && one.ended === day)
        .map((one) => ({ ...one, sign: -1 }))
      const paused = ended.filter(({ status }) => status === 'paused')
      const others = [...began, ...ended.filter(({ status }) => status !== 'paused')]
      const add = (movement: string, { usd, sign }: Fact) => {
        const key = `${day} ${movement}`
        sums.set(key, (sums.get(key) ?? 0) + sign * Number(usd))
      }
      for (const one of paused) add('paused', one)
      for (const one of others) {
        const net = others
          .filter(({ currency }) => currency === one.currency)
          .reduce((sum, { worth, sign }) => sum + sign * Number(worth), 0)
        const first = ever ? 'reactivation' : 'new'
        if (before && after) add(net < 0 ? 'contraction' : 'expansion', one)
        else if (before) add('churn', one)
        else if (after) add(first, one)
        else add(one.sign > 0 ? first : 'churn', one)
      }
    }
  }
  return sums
}

async function stored(imports: Imports, project: Project) {
  const by = { period: 'day', dimension: 'movement' } as const
  return figuresOf(imports.db, project.id, 'mrr_change', by)
}

const changed = (rows: { period?: string; key?: string; mrr_change?: number | null }[]) =>
  rows
    .filter(({ key, mrr_change }) => key !== '' && mrr_change)
    .map(({ period, key, mrr_change }) => `${period} ${key} ${mrr_change}`)

describe('movements of the MRR', () => {
  let imports: ErasedImports
  before(async () => {
    imports = await openErasedImports()
  })
  after(() => imports.stop())

  test('by hand: a person who comes, buys more, less, pauses, leaves and comes back', async () => {
    const project = await imports.project()
    await imports.run(project, [
      line.product({ id: 'monthly' }),
      line.profile({ id: 'ada' }),
      line.profile({ id: 'bob' }),
      line.profile({ id: 'cid' }),
      sub('a1', 'ada', '2026-01-01', 1000, ['expired', '2026-01-20']),
      sub('a2', 'ada', '2026-01-10', 500, ['cancelled', '2026-01-25']),
      sub('a3', 'ada', '2026-02-05', 2000, ['cancelled', '2026-02-10']),
      sub('a4', 'ada', '2026-02-10', 3000, ['paused', '2026-03-01']),
      sub('b1', 'bob', '2026-01-10', 700, ['cancelled', '2026-01-10']),
      // A subscription without a price is not a paying one, before this one or at the same time.
      sub('c0', 'cid', '2025-12-20', 0),
      sub('c1', 'cid', '2026-03-05', 400, ['cancelled', '2026-03-06']),
    ])
    await assertExact(imports.db, project.id)
    const expected = [
      '2026-01-01 new 10',
      '2026-01-10 churn -7',
      '2026-01-10 expansion 5',
      '2026-01-10 new 7',
      '2026-01-20 contraction -10',
      '2026-01-25 churn -5',
      '2026-02-05 reactivation 20',
      '2026-02-10 expansion 10',
      '2026-03-01 paused -30',
      '2026-03-05 new 4',
      '2026-03-06 churn -4',
    ]
    assert.deepEqual(changed(await stored(imports, project)), expected)
    // A late import of an earlier subscription: Ada was there before.
    await imports.run(project, [sub('a0', 'ada', '2025-12-01', 100, ['expired', '2025-12-20'])])
    await assertExact(imports.db, project.id)
    assert.deepEqual(changed(await stored(imports, project)), [
      '2025-12-01 new 1',
      '2025-12-20 churn -1',
      ...expected.map((one) => one.replace('2026-01-01 new', '2026-01-01 reactivation')),
    ])
  })

  for (const seed of [3, 4])
    test(`equal an independent model after late imports and erasures and in several currencies, seed ${seed}`, async () => {
      const project = await imports.project()
      const random = openRandom(seed)
      const day = () => `2026-0${random.integer(1, 2)}-${String(random.integer(1, 28)).padStart(2, '0')}`
      const person = () => `pro_${random.integer(1, 5)}`
      const people = [1, 2, 3, 4, 5].map((n) => line.profile({ id: `pro_${n}`, preview: false }))
      await imports.run(project, [line.product({ id: 'monthly' }), ...people])
      for (let step = 1; step <= 3; step += 1) {
        const lines: Line[] = []
        for (let n = 0; n < 8; n += 1) {
          const end = random.chance(0.3)
            ? undefined
            : ([random.pick(['paused', 'cancelled', 'expired']), day()] as [string, string])
          lines.push(
            sub(`sub_${random.integer(1, 14)}`, person(), day(), random.pick([500, 1000]), end, {
              currency: random.pick(['USD', 'EUR', 'EUR']),
              price_usd: random.pick([null, 900]),
              trial_offer: random.chance(0.3) ? { days: 7 } : undefined,
              sandbox: random.chance(0.1),
            }),
          )
        }
        await imports.run(project, lines)
        const known = (await imports.rows('select id from subscriptions where project_id = $1', [project.id])).map(
          ({ id }) => id!,
        )
        const paid = Array.from({ length: 5 }, () =>
          line.transaction({
            id: `trn_${random.integer(1, 12)}`,
            profile_id: person(),
            created_at: at(day()),
            subscription_id: random.pick(known),
            price: random.pick([0, 500]),
          }),
        )
        await imports.run(project, paid, { live: step === 2 })
        await assertExact(imports.db, project.id, `after step ${step}`)
        if (step === 2) {
          // An erasure changes no figure. What is imported about the person later is stripped.
          const before = await stored(imports, project)
          await imports.erase(project, random.pick(['pro_1', 'pro_2', 'pro_3', 'pro_4', 'pro_5']))
          await assertExact(imports.db, project.id, 'after an erasure')
          assert.deepEqual(await stored(imports, project), before)
        }
        const model = [...(await modelOf(imports, project))]
          .filter(([, cents]) => Math.abs(cents) > 1e-6)
          .map(([key, cents]) => `${key} ${Math.round(cents * 1e4) / 1e6}`)
        assert.deepEqual(changed(await stored(imports, project)).sort(), model.sort())
        for (const money of ['usd', 'own'] as const) {
          const own = { period: 'day', money } as const
          const all = await figuresOf(imports.db, project.id, 'mrr_change', own)
          const parts = await figuresOf(imports.db, project.id, 'mrr_change', { ...own, dimension: 'movement' })
          for (const { period, mrr_change, ...one } of all as {
            period: string
            mrr_change: number
            currency?: string
          }[]) {
            const sum = (parts as typeof all)
              .filter((part) => part.period === period && (part as { currency?: string }).currency === one.currency)
              .reduce((total, part) => total + (part.mrr_change ?? 0), 0)
            assert.ok(Math.abs(sum - mrr_change) < 1e-5, `${period} ${sum} ${mrr_change}`)
          }
        }
      }
    })
})
