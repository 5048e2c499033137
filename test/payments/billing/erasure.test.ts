// Erasure and charges: what a charge brings about an erased person is not kept, whichever of the two comes first.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockOutErasure } from '../../../src/payments/billing/lock-out-erasure.ts'
import { type Billing, type Organization, startBilling, startShop } from '../../support/billing.ts'
import { addUnit } from '../../support/credits.ts'
import { untilLocked } from '../../support/database.ts'
import { importLines, line } from '../../support/imports.ts'
import { type ApiResponse, ok } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const MARKER = 'marker-of-a-person'
const metadata = { client_metadata: { name: MARKER } }

const { billing, shop } = await startShop()

let people = 0

async function person(token = 'pm_card_visa'): Promise<{ user: string; erase(): Promise<void> }> {
  const profileId = `pro_${++people}`
  const user = await shop.customer({ profileId, token })
  return {
    user,
    async erase() {
      const call = { key: shop.projectKey, method: 'POST', body: { profile_ids: [profileId] } }
      assert.equal((await billing.server.api('/profiles/anonymize', call)).status, 200)
    },
  }
}

/** Where the marker stands of all that charges write. */
async function findMarker(): Promise<string[]> {
  const rows = await billing.db.query(
    `select 'order ' || order_id as place from orders where client_metadata::text like $1
     union all select 'event ' || type from events where data::text like $1`,
    [`%${MARKER}%`],
  )
  return rows.map(({ place }) => place!)
}

test('erased after the charge: the order and its event lose it, history stays', async () => {
  const { user, erase } = await person()
  const { order_id } = (await shop.charge(user, { idempotency_key: 'k', ...metadata })).body
  assert.equal((await findMarker()).length, 2)
  await erase()
  assert.deepEqual(await findMarker(), [])
  assert.equal((await shop.charge(user, { idempotency_key: 'k' })).body.order_id, order_id)
  assert.equal((await shop.consumables(user)).length, 1)
})

test('erased before the charge: it is never stored, and the charge goes on', async () => {
  const { user, erase } = await person()
  await erase()
  const { checkout_status, order_id } = (await shop.charge(user, metadata)).body
  assert.equal(checkout_status, 'succeeded')
  assert.deepEqual(await findMarker(), [])
  const [event] = await billing.db.query('select data from events where object_id = $1', [order_id])
  assert.equal(JSON.parse(event!.data!).client_metadata, null)
})

test('erased before a charge without an outcome: the order in progress does not hold it', async () => {
  const { user, erase } = await person('sim_charge_then_drop')
  await erase()
  const { body } = await shop.charge(user, { idempotency_key: 'k', ...metadata })
  assert.equal(body.checkout_status, 'processing')
  assert.deepEqual(await findMarker(), [])
})

test('erased while the provider is charging: the event that follows does not hold it', async () => {
  const { user, erase } = await person('sim_slow_300ms')
  const charging = shop.charge(user, metadata)
  await sleep(120)
  await erase()
  assert.equal((await charging).body.checkout_status, 'succeeded')
  assert.deepEqual(await findMarker(), [])
})

test('an erasure and many charges of the person at once', async () => {
  for (let round = 0; round < 15; round++) {
    const { user, erase } = await person(round % 2 === 0 ? 'pm_card_visa' : 'sim_slow_5ms')
    const charges = Array.from({ length: 6 }, async (_, n) => {
      await sleep(n * 3)
      return shop.charge(user, { idempotency_key: `k${n}`, ...metadata })
    })
    await sleep(round % 12)
    await erase()
    for (const { status } of await Promise.all(charges)) assert.ok(status === 200 || status === 400)
    assert.deepEqual(await findMarker(), [], `round ${round}`)
  }
})

describe('an import that links the customer to an erased profile', () => {
  /** Links somebody who is nobody's yet to a profile that is erased. */
  async function link(user: string) {
    const { erase } = await person()
    await erase()
    const lines = [line.customer({ external_id: user, profile_id: `pro_${people}` })]
    return () => importLines(billing.server.app, shop.projectId, lines, { live: true })
  }

  test('takes the metadata of a concurrent charge, which saw the old link', async () => {
    const user = await shop.customer()
    const run = await link(user)
    let importing: ReturnType<typeof run>
    await billing.db.tx(async (query) => {
      // Stands for all that an import may still have to do when it has wiped.
      await query('select from erasure_marks where project_id = $1 for update', [shop.projectId])
      importing = run()
      await untilLocked(billing.db.query, 'erasure_marks')
      assert.equal((await shop.charge(user, metadata)).body.checkout_status, 'succeeded')
    })
    assert.equal((await importing!).erased, 1)
    assert.deepEqual(await findMarker(), [])
  })

  test('waits for a charge that is being claimed when it commits', async () => {
    const user = await shop.customer()
    assert.equal((await shop.charge(user)).body.checkout_status, 'succeeded')
    const run = await link(user)
    let importing: ReturnType<typeof run>
    await billing.db.tx(async (query) => {
      await lockOutErasure(query, [{ organizationId: shop.id, externalId: user }])
      importing = run()
      await untilLocked(billing.db.query, 'customers')
      await query(`insert into orders select (json_populate_record(o, $2)).* from orders o where external_id = $1`, [
        user,
        JSON.stringify({ order_id: randomUUID(), idempotency_key: 'claimed', ...metadata }),
      ])
    })
    assert.equal((await importing!).erased, 1)
    assert.deepEqual(await findMarker(), [])
  })
})

test('an import that links the customer to a profile which is erased while a charge is claimed', async () => {
  const { user } = await person()
  await shop.charge(user)
  const { erase } = await person()
  const profileId = `pro_${people}`
  let erasing: Promise<unknown>
  await billing.db.tx(async (query) => {
    await lockOutErasure(query, [{ organizationId: shop.id, externalId: user }])
    await query(`insert into orders select (json_populate_record(o, $2)).* from orders o where external_id = $1`, [
      user,
      JSON.stringify({ order_id: randomUUID(), idempotency_key: 'beside', ...metadata }),
    ])
    await billing.db.query('update customers set profile_id = $2 where external_id = $1', [user, profileId])
    erasing = erase()
    await untilLocked(billing.db.query, 'customers')
  })
  await erasing!
  assert.deepEqual(await findMarker(), [])
})

describe('reason and comment of a refund', () => {
  const notes = { reason: MARKER, comment: MARKER }
  const kept = async (user: string) =>
    (await billing.db.query('select reason, comment from refunds where external_id = $1', [user]))[0]

  test('are wiped by an erasure', async () => {
    const { user, erase } = await person()
    const { order_id } = (await shop.charge(user)).body
    await shop.refund(user, order_id, notes)
    assert.deepEqual(await kept(user), notes)
    await erase()
    assert.deepEqual(await kept(user), { reason: '', comment: '' })
  })

  test('are not stored of a person who is erased already', async () => {
    const { user, erase } = await person()
    const { order_id } = (await shop.charge(user)).body
    await erase()
    assert.equal((await shop.refund(user, order_id, notes)).body.refund_status, 'succeeded')
    assert.deepEqual(await kept(user), { reason: '', comment: '' })
  })
})

test('an import that holds the profile does not hold up a charge', async () => {
  const { user } = await person()
  const profileId = `pro_${people}`
  let charged: string | undefined
  await billing.db.tx(async (query) => {
    await query(`update profiles set country = 'DE' where id = $1`, [profileId])
    charged = (await shop.charge(user, metadata)).body.checkout_status
  })
  assert.equal(charged, 'succeeded')
  await billing.db.query(`update orders set client_metadata = null where external_id = $1`, [user])
})

describe('an erasure that takes too long', () => {
  let billing: Billing
  let shop: Organization
  before(async () => {
    billing = await startBilling({ STATEMENT_TIMEOUT_MS: '1500' }, { worker: false })
    shop = await billing.organization()
  })
  after(() => billing.stop())

  /** The response to a charge while the profile is locked. */
  const chargeBeside = (profileId: string, charge: () => Promise<ApiResponse>) =>
    billing.db.tx(async (query) => {
      await query('select 1 from profiles where id = $1 for update', [profileId])
      return charge()
    })

  test('503 for a charge that may hold personal data, and nothing is begun', async () => {
    const user = await shop.customer({ profileId: 'first' })
    const { status, headers } = await chargeBeside('first', () => shop.charge(user, metadata))
    assert.deepEqual([status, headers['retry-after']], [503, '1'])
    assert.deepEqual(await billing.db.query('select 1 from orders where external_id = $1', [user]), [])
    assert.equal((await shop.charge(user, metadata)).body.checkout_status, 'succeeded')
  })

  test('left to settling when it was charged by then', async () => {
    for (let slowMs = 500; ; slowMs *= 4) {
      const user = await shop.customer({ profileId: `slow-${slowMs}`, token: `sim_slow_${slowMs}ms` })
      const charging = shop.charge(user, metadata)
      const orders = () => billing.db.query('select status from orders where external_id = $1', [user])
      await until('the charge to be begun', async () => (await orders()).length === 1)
      let isLate = false
      const { body } = await chargeBeside(`slow-${slowMs}`, async () => {
        isLate = (await orders())[0]!.status !== 'processing'
        return charging
      })
      // On a busy machine the charge was settled before the lock: once more, with a slower one.
      if (isLate) continue
      assert.equal(body.checkout_status, 'processing')
      assert.equal((await billing.ledger(body.order_id)).length, 1)
      return
    }
  })
})

test('credits: metadata and reasons go, entries stay, none are stored later, and no card is charged automatically', async () => {
  const { user, erase } = await person()
  await addUnit(billing.db, shop.id, 'tokens')
  const credits = (path: string, more: object) =>
    ok(shop.post(`/credits/${path}`, { external_id: user, unit: 'tokens', ...more }))
  const metadata = { name: MARKER }
  await credits('grant', { amount: 100, idempotency_key: 'g', metadata })
  await credits('adjust', { amount: -10, reason: MARKER, idempotency_key: 'a' })
  const most = { most_per_day: 1, most_per_month: 1 }
  await credits('top_up/set', { below: 50, amount: '5', currency_code: 'USD', grants: 100, ...most })
  await erase()
  await credits('spend', { amount: 60, idempotency_key: 's', metadata })
  const { entries } = (await shop.post('/credits/entries', { external_id: user })).body
  assert.deepEqual(
    entries.map(({ amount, reason, metadata }: Record<string, unknown>) => [amount, reason, metadata]),
    [100, -10, -60].map((amount) => [amount, null, null]),
  )
  const { top_ups } = (await shop.post('/credits/top_up/list', { external_id: user })).body
  assert.deepEqual([top_ups[0].status, top_ups[0].off_reason], ['off', 'erased'])
  const marked = await billing.db.query(
    `select type from events where data ->> 'external_id' = $1 and data::text like $2`,
    [user, `%${MARKER}%`],
  )
  assert.deepEqual(marked, [])
})
