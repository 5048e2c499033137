// Recovered declines stay equal to the attempts, by an independent model, whatever order they are imported in.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { importRecords } from '../../../src/data/ingest/load.ts'
import { openRandom } from '../../../src/lib/seeded-random.ts'
import { startBilling } from '../../support/billing.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Imports, line, openImports, type Project, textOf, uuid } from '../../support/imports.ts'

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
  let imports: Imports
  before(async () => {
    imports = await openImports()
  })
  after(() => imports.stop())

  for (const seed of [1, 2])
    test(`equal a model of the attempts after late imports and corrections, seed ${seed}`, async () => {
      const project = await imports.project()
      const random = openRandom(seed)
      const customers = ['ada', 'bob'].map((external_id) => line.customer({ external_id }))
      await imports.run(project, [line.merchant_account({}), ...customers])
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
    const stream = () => Readable.from([textOf([line.payment({ ...declined, ...more })])])
    await importRecords(server.app, { projectId: shop.projectId }, [{ name: 'file', stream }])
    const seen = () => figuresOf(db, shop.projectId, METRICS, { test: true })
    await assertExact(db, shop.projectId)
    assert.deepEqual(await seen(), [{ first_declines: 1, recovered: 0, declined_amount: 20, recovered_amount: 0 }])
    const { status } = await shop.charge(external_id, { amount: '20.00' })
    assert.equal(status, 200)
    await assertExact(db, shop.projectId)
    assert.deepEqual(await seen(), [{ first_declines: 1, recovered: 1, declined_amount: 20, recovered_amount: 20 }])
  } finally {
    await billing.stop()
  }
})
