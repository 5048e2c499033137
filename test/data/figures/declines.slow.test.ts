// Recovered declines stay equal to the attempts, by an independent model, whatever order they are imported in.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openRandom } from '../../../src/lib/seeded-random.ts'
import { startBilling } from '../../support/billing.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Imports, line, load, type Project, uuid } from '../../support/imports.ts'
import { ok } from '../../support/server.ts'
import { type ErasedImports, openErasedImports } from '../ingest/erased-imports.ts'

const DAYS_30 = 30 * 86_400_000
const METRICS = 'first_declines recovered declined_amount recovered_amount'

/** Walks the attempts at each payment: what is declined first, and whether it was paid in time. */
async function modelOf({ rows }: Imports, { organizationId }: Project) {
  const all = await rows(
    `select concat_ws(' ', external_id, currency_code, amount) as payment, status, currency_code as currency, amount,
       (extract(epoch from coalesce(psp_date, trx_created_at)) * 1000)::bigint as ms
     from report_transactions where organization_id = $1 and psp_transaction_type = 'sale'
     order by coalesce(psp_date, trx_created_at), trx_created_at`,
    [organizationId],
  )
  const sums = new Map<string, number[]>()
  for (const own of Map.groupBy(all, ({ payment }) => payment!).values())
    for (const [n, one] of own.entries()) {
      if (one.status !== 'failed') continue
      const apart = (other: (typeof own)[number]) => Number(other.ms) - Number(one.ms)
      const lastPaid = own.slice(0, n).findLastIndex(({ status }) => status === 'succeeded')
      if (own.slice(lastPaid + 1, n).some((other) => other.status === 'failed' && apart(other) >= -DAYS_30)) continue
      const paid = own.slice(n + 1).find(({ status }) => status === 'succeeded')
      const isPaid = paid !== undefined && apart(paid) <= DAYS_30
      const [declines, recovered, declined, back] = sums.get(one.currency!) ?? [0, 0, 0, 0]
      const amount = Number(one.amount)
      sums.set(one.currency!, [
        declines! + 1,
        recovered! + Number(isPaid),
        declined! + amount,
        back! + (isPaid ? amount : 0),
      ])
    }
  return [...sums].sort()
}

describe('recovered declines', () => {
  let imports: ErasedImports
  before(async () => {
    imports = await openErasedImports()
  })
  after(() => imports.stop())

  test('by hand: thirty days to the millisecond, which attempt, one payment of a subscription at a time, and whose value', async () => {
    const project = await imports.project()
    let made = 0
    const attempt = (status: string, psp_date: string, amount: number, more: object = {}) => {
      made += 1
      const ids = { external_id: 'ada', order_id: uuid(5000 + made), trx_id: uuid(900_000 + made) }
      const how = { psp_transaction_type: 'sale', currency_code: 'USD' }
      return line.payment({ ...ids, ...how, status, psp_date, trx_created_at: psp_date, amount, ...more })
    }
    const euro = { currency_code: 'EUR' }
    await imports.run(project, [
      line.merchant_account({}),
      line.customer({ external_id: 'ada' }),
      attempt('failed', '2026-01-01T00:00:00.000Z', 1),
      attempt('succeeded', '2026-01-31T00:00:00.000Z', 1),
      attempt('failed', '2026-01-02T00:00:00.000Z', 2),
      attempt('succeeded', '2026-02-01T00:00:00.001Z', 2),
      // The second decline is another payment when the first is more than thirty days old.
      attempt('failed', '2026-01-03T00:00:00.000Z', 4),
      attempt('failed', '2026-02-02T00:00:00.000Z', 4),
      attempt('failed', '2026-01-04T00:00:00.000Z', 8),
      attempt('failed', '2026-02-03T00:00:00.001Z', 8),
      // The third attempt pays; then the same amount again.
      attempt('failed', '2026-01-05T00:00:00.000Z', 16),
      attempt('failed', '2026-01-06T00:00:00.000Z', 16),
      attempt('succeeded', '2026-01-07T00:00:00.000Z', 16),
      attempt('failed', '2026-01-07T12:00:00.000Z', 16),
      attempt('succeeded', '2026-01-08T00:00:00.000Z', 16),
      // Another period of the subscription is another payment.
      attempt('failed', '2026-01-08T00:00:00.000Z', 32, { meta_subs_id: 's', meta_subs_iteration: '1' }),
      attempt('succeeded', '2026-01-09T00:00:00.000Z', 32, { meta_subs_id: 's', meta_subs_iteration: '2' }),
      // One has a value in US dollars, and is worth the same as the other; two have none.
      attempt('failed', '2026-01-10T00:00:00.000Z', 64, euro),
      attempt('succeeded', '2026-01-11T00:00:00.000Z', 64, { ...euro, amount_usd: 70 }),
      attempt('failed', '2026-01-12T00:00:00.000Z', 128, { ...euro, amount_usd: 140 }),
      attempt('succeeded', '2026-01-13T00:00:00.000Z', 128, euro),
      attempt('failed', '2026-01-14T00:00:00.000Z', 256, euro),
    ])
    await assertExact(imports.db, project.id)
    const found = await figuresOf(imports.db, project.id, METRICS, { period: 'day', dimension: 'attempt' })
    assert.deepEqual(
      found
        .filter(({ first_declines }) => first_declines)
        .map((one) =>
          [
            one.period,
            one.key || '-',
            one.first_declines,
            one.recovered,
            one.declined_amount,
            one.recovered_amount,
          ].join(' '),
        ),
      [
        '2026-01-01 2 1 1 1 1',
        '2026-01-02 - 1 0 2 0',
        '2026-01-03 - 1 0 4 0',
        '2026-01-04 - 1 0 8 0',
        '2026-01-05 3 1 1 16 16',
        '2026-01-07 2 1 1 16 16',
        '2026-01-08 - 1 0 32 0',
        '2026-01-10 2 1 1 70 70',
        '2026-01-12 2 1 1 140 140',
        '2026-01-14 - 1 0 0 0',
        '2026-02-03 - 1 0 8 0',
      ],
    )
    const [{ declines_without_usd }] = (await figuresOf(imports.db, project.id, 'declines_without_usd')) as [
      { declines_without_usd: number },
    ]
    assert.equal(declines_without_usd, 1)
  })

  for (const seed of [1, 2])
    test(`equal a model of the attempts after late imports, corrections and an erasure, seed ${seed}`, async () => {
      const project = await imports.project()
      const random = openRandom(seed)
      const people = ['ada', 'bob'].flatMap((id) => [
        line.profile({ id }),
        line.customer({ external_id: id, profile_id: id }),
      ])
      await imports.run(project, [line.merchant_account({}), ...people])
      for (let step = 1; step <= 4; step += 1) {
        const attempts = Array.from({ length: 12 }, () => {
          const n = random.integer(1, 60)
          const at = new Date(
            Date.UTC(2026, random.integer(0, 2), random.integer(1, 28), random.integer(0, 23), n),
          ).toISOString()
          return line.payment({
            external_id: random.pick(['ada', 'bob']),
            order_id: uuid(1000 + n),
            trx_id: uuid(seed * 100_000 + n),
            trx_created_at: at,
            psp_date: at,
            psp_transaction_type: 'sale',
            status: random.pick(['succeeded', 'failed', 'failed']),
            amount: random.pick([10, 20]),
            currency_code: random.pick(['USD', 'EUR']),
          })
        })
        await imports.run(project, attempts)
        await assertExact(imports.db, project.id, `after step ${step}`)
        if (step === 2) {
          const before = await figuresOf(imports.db, project.id, METRICS, { period: 'day', dimension: 'reason' })
          await imports.erase(project, 'bob')
          await assertExact(imports.db, project.id, 'after an erasure')
          const own = await figuresOf(imports.db, project.id, METRICS, { period: 'day', dimension: 'reason' })
          assert.deepEqual(own, before)
        }
        const shown = await figuresOf(imports.db, project.id, METRICS, { dimension: 'currency', money: 'own' })
        const counts = await figuresOf(imports.db, project.id, METRICS, { dimension: 'currency' })
        assert.deepEqual(
          counts.map(({ key, first_declines, recovered }) => {
            const own = shown.find(
              (one) =>
                (one as { key?: string; currency?: string }).currency === key && one.declined_amount !== undefined,
            )
            return [key, [first_declines, recovered, own?.declined_amount, own?.recovered_amount]]
          }),
          await modelOf(imports, project),
        )
      }
    })
})

test('a charge pays what was declined before: the day of the decline is computed again', async () => {
  const billing = await startBilling({}, { worker: false })
  try {
    const { db, server } = billing
    const shop = await billing.organization()
    const external_id = await shop.customer()
    const at = new Date(Date.now() - 3 * 86_400_000).toISOString()
    const declined = {
      external_id,
      order_id: uuid(1),
      trx_id: uuid(2),
      trx_created_at: at,
      psp_date: at,
      status: 'failed',
    }
    const more = { psp_transaction_type: 'sale', amount: 20, amount_usd: 20, currency_code: 'USD' }
    await load(server.app, shop.projectId, [line.payment({ ...declined, ...more })])
    const seen = () => figuresOf(db, shop.projectId, METRICS, { test: true })
    await assertExact(db, shop.projectId)
    assert.deepEqual(await seen(), [{ first_declines: 1, recovered: 0, declined_amount: 20, recovered_amount: 0 }])
    await ok(shop.charge(external_id, { amount: '20.00' }))
    await assertExact(db, shop.projectId)
    assert.deepEqual(await seen(), [{ first_declines: 1, recovered: 1, declined_amount: 20, recovered_amount: 20 }])
  } finally {
    await billing.stop()
  }
})
