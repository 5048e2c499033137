// The saved card, the finance report and figures go by the time of the payment, however late its row was stored.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { settled, startBilling } from '../../support/billing.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Line, line, load } from '../../support/imports.ts'
import { columns } from '../../support/rows.ts'
import { type Json, ok } from '../../support/server.ts'
import { setDatabaseClock } from '../../support/time.ts'

const billing = await startBilling({}, { worker: false })
after(() => billing.stop())
const { db, server } = billing

/** Imports lines as a feed: each new row of the report is stamped now. */
const feed = (projectId: string, ...lines: Line[]) => load(server.app, projectId, lines, { live: true })

const paid = (external_id: string, psp_date: string | null, more: object = {}) =>
  line.payment({
    ...{ external_id, order_id: randomUUID(), trx_id: randomUUID(), psp: 'simulator', psp_merchant_id: 'merchant-1' },
    ...{ trx_created_at: '2026-03-01T00:00:00Z', psp_date, amount: 10, payment_method_token: 'pm_card_visa', ...more },
  })

describe('a payment that is stored after later ones', () => {
  test('does not replace the saved card', async () => {
    const shop = await billing.organization()
    await feed(shop.projectId, paid('ada', '2026-05-01T00:00:00Z', { payment_method_token: 'pm_card_mastercard' }))
    await feed(shop.projectId, paid('ada', '2024-05-01T00:00:00Z', { payment_method_token: 'pm_card_visa' }))
    const { order_id } = (await shop.charge('ada')).body
    const [row] = await shop.report({ order_id })
    assert.equal(row!.network, 'mastercard')
  })

  test('belongs to the month of the payment in the finance report and in figures', async () => {
    const shop = await billing.organization()
    const today = new Date().toISOString().slice(0, 7)
    const year = Number(today.slice(0, 4))
    await feed(
      shop.projectId,
      paid('ada', `${year - 1}-02-28T23:59:59Z`, { amount: 7 }),
      paid('ada', null, { amount: 2 }),
    )
    const { body } = await server.admin(`/organizations/${shop.id}/finance?from=${year - 1}-01-01&to=${year}-12-31`)
    assert.deepEqual(columns(body.totals, 'month', 'gross'), [
      [`${year - 1}-02`, 7],
      [today, 2],
    ])
    await assertExact(db, shop.projectId)
    const months = await figuresOf(db, shop.projectId, 'revenue payers', { period: 'month' })
    assert.deepEqual(months, [
      { period: `${year - 1}-02-01`, revenue: 7, payers: 1 },
      { period: `${today}-01`, revenue: 2, payers: 1 },
    ])
  })

  test('counts no payer twice in a month, whichever of the payments was stored first', async () => {
    const shop = await billing.organization()
    for (const day of ['20', '05', '12'])
      await feed(shop.projectId, paid('ada', `2025-02-${day}T00:00:00Z`), paid('ada', `2025-02-${day}T00:00:00Z`))
    await assertExact(db, shop.projectId)
    const days = await figuresOf(db, shop.projectId, 'payers', { period: 'day' })
    assert.deepEqual(
      days.filter(({ payers }) => payers),
      [{ period: '2025-02-05', payers: 1 }],
    )
  })

  test('is on one page of the list of movements, also if others have the same time', async () => {
    const shop = await billing.organization()
    await feed(shop.projectId, ...Array.from({ length: 7 }, () => paid('ada', '2025-02-05T00:00:00Z')))
    const seen: string[] = []
    let after = ''
    do {
      const path = `/organizations/${shop.id}/finance/rows?month=2025-02&limit=2${after && `&after=${after}`}`
      const body = await ok(server.admin(path))
      seen.push(...body.rows.map(({ trx_id, paid_at }: Json) => `${trx_id} ${paid_at}`))
      after = body.next_after
    } while (after)
    assert.equal(new Set(seen).size, 7)
    assert.equal(seen.length, 7)
    assert.ok(seen.every((row) => row.endsWith(' 2025-02-05T00:00:00.000000Z')))
  })
})

test('a charge that is settled days after it was paid belongs to the day of the payment, in finance and in figures', async () => {
  const shop = await billing.organization()
  const ada = await shop.customer({ profileId: 'pro_ada' })
  const bob = await shop.customer()
  const day = new Date().toISOString().slice(0, 10)
  // As if the look-ups had failed for three days: the provider's time of the payment is that long ago.
  await setDatabaseClock(server.env.DATABASE_URL!, '3 days')
  try {
    for (const customer of [ada, bob])
      await settled(() => shop.charge(customer, { amount: '20.00', idempotency_key: 'one' }))
    const row = (await shop.report({})).at(-1)
    assert.ok(row!.trx_created_at > `${day}T23:59:59.999999Z`)
    await assertExact(db, shop.projectId)
    const days = await figuresOf(db, shop.projectId, 'sales attempts payers', { test: true, period: 'day' })
    assert.deepEqual(days, [{ period: day, sales: 2, attempts: 2, payers: 2 }])
    const rows = await server.admin(`/organizations/${shop.id}/finance/rows?month=${day.slice(0, 7)}&test=true`)
    assert.deepEqual(
      rows.body.rows.map(({ paid_at }: Json) => paid_at.slice(0, 10)),
      [day, day],
    )
  } finally {
    await setDatabaseClock(server.env.DATABASE_URL!, undefined)
  }
})
