// Caps of charges: refused before any rule about cards, exact under concurrency, also on two processes.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openDb } from '../../../src/lib/pg/db.ts'
import { readChargeRequest } from '../../../src/payments/billing/charge/request.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { type Organization, refused, settled, startBilling } from '../../support/billing.ts'
import { setNoon } from '../../support/time.ts'

const billing = await startBilling()
after(() => billing.stop())
const { db, server } = billing
await setNoon(server.app.databaseUrl)

async function cap(shop: Organization, scope: string, per: string, currency: string, most: number): Promise<void> {
  const { status, text } = await server.admin(`/organizations/${shop.id}/credits/caps`, {
    method: 'PUT',
    body: { scope, per, ...(currency && { currency_code: currency }), most },
  })
  assert.equal(status, 200, text)
}
const reached = (what: string) => new RegExp(`^The ${what}\\.$`)
const usedOf = async (shop: Organization) =>
  (
    await db.query('select external_id, used from charge_counters where organization_id = $1 order by 1', [shop.id])
  ).map(({ external_id, used }) => [external_id, Number(used)])

test('a customer has so many charges a day, and a declined one counts', async () => {
  const shop = await billing.organization()
  await cap(shop, 'customer', 'day', '', 2)
  const user = await shop.customer()
  const first = await shop.charge(user, { idempotency_key: 'a' })
  assert.equal(first.body.checkout_status, 'succeeded')
  await shop.charge(user)
  refused(await shop.charge(user), reached('customer would exceed the cap of 2 charges a day'))
  const again = await shop.charge(user, { idempotency_key: 'a' })
  assert.deepEqual([again.status, again.body.idempotent_replay], [200, true], 'a known key is no new charge')
  const other = await shop.customer({ token: 'pm_card_chargeDeclined' })
  for (let n = 0; n < 2; n++) assert.equal((await shop.charge(other)).body.checkout_status, 'failed')
  refused(await shop.charge(other), reached('customer would exceed the cap of 2 charges a day'))
})

test('money is capped by currency, and what was declined is not money', async () => {
  const shop = await billing.organization()
  await cap(shop, 'customer', 'month', 'USD', 20)
  const user = await shop.customer()
  await shop.charge(user, { amount: '15' })
  refused(await shop.charge(user, { amount: '5.01' }), reached('customer would exceed the cap of 20.00 USD a month'))
  assert.equal((await shop.charge(user, { amount: '100', currency_code: 'EUR' })).status, 200)
  assert.equal((await shop.charge(user, { amount: '5' })).status, 200)
  const declined = await shop.customer({ token: 'pm_card_chargeDeclined' })
  for (let n = 0; n < 3; n++)
    assert.equal((await shop.charge(declined, { amount: '20' })).body.checkout_status, 'failed')
})

test('a cap is judged before the rules about cards, and after the maximum', async () => {
  const shop = await billing.organization()
  await cap(shop, 'organization', 'week', 'USD', 10)
  const user = await shop.customer({ token: null })
  refused(
    await shop.charge(user, { amount: '10.01' }),
    reached('organization would exceed the cap of 10.00 USD a week'),
  )
  refused(await shop.charge(user, { amount: '10' }), /no saved card/)
  refused(await shop.charge(user, { amount: '1000.01' }), /the organization's maximum/)
  assert.deepEqual(await usedOf(shop), [['', 0]])
})

test('a period that has passed does not count', async () => {
  const shop = await billing.organization()
  await cap(shop, 'organization', 'day', '', 1)
  const user = await shop.customer()
  await shop.charge(user)
  refused(await shop.charge(user), reached('organization would exceed the cap of 1 charges a day'))
  await db.query(`update charge_counters set since = since - interval '1 day' where organization_id = $1`, [shop.id])
  assert.equal((await shop.charge(user)).body.checkout_status, 'succeeded')
  assert.deepEqual(await usedOf(shop), [['', 1]])
})

test('a period that a clock far ahead began does not count; the next one does, because the clock may have been set back', async () => {
  const shop = await billing.organization()
  for (const [per, next, far] of [
    ['day', '1 day', '40 days'],
    ['week', '7 days', '40 days'],
    ['month', '1 month', '3 months'],
  ]) {
    await cap(shop, 'customer', per!, '', 1)
    const user = await shop.customer()
    await shop.charge(user)
    // What charges leave that are made by a clock so far ahead.
    const setAhead = (interval: string) =>
      db.query(
        `update charge_counters set since = (since at time zone 'UTC' + $3::interval) at time zone 'UTC'
         where organization_id = $1 and external_id = $2 and per = $4`,
        [shop.id, user, interval, per!],
      )
    await setAhead(next!)
    refused(await shop.charge(user), reached(`customer would exceed the cap of 1 charges a ${per}`))
    await setAhead(far!)
    assert.equal((await shop.charge(user)).body.checkout_status, 'succeeded')
    refused(await shop.charge(user), reached(`customer would exceed the cap of 1 charges a ${per}`))
    await db.query('delete from charge_caps where organization_id = $1', [shop.id])
  }
})

test('a cap counts what was charged in its period before it was set, and money that was in progress then', async () => {
  const shop = await billing.organization()
  const user = await shop.customer()
  const declined = await shop.customer({ token: 'pm_card_chargeDeclined' })
  const pending = await shop.customer({ token: 'sim_drop_no_charge' })
  await shop.charge(user, { amount: '15' })
  await shop.charge(user, { amount: '30', currency_code: 'EUR' })
  await shop.charge(declined, { amount: '15' })
  // No look can end it until then.
  await billing.simulator.stop()
  try {
    const began = await shop.charge(pending, { amount: '4', idempotency_key: 'p' })
    assert.equal(began.body.checkout_status, 'processing')
    await cap(shop, 'organization', 'month', 'USD', 20)
    assert.deepEqual(await usedOf(shop), [['', 19]])
    refused(
      await shop.charge(user, { amount: '1.01' }),
      reached('organization would exceed the cap of 20.00 USD a month'),
    )
  } finally {
    await billing.simulator.start()
  }
  const ended = await settled(() => shop.charge(pending, { amount: '4', idempotency_key: 'p' }))
  assert.notEqual(ended.body.checkout_status, 'succeeded')
  assert.equal((await shop.charge(user, { amount: '5' })).status, 200, 'the declined charge took no money')
  await cap(shop, 'customer', 'day', '', 3)
  refused(await shop.charge(user), reached('customer would exceed the cap of 3 charges a day'))
})

test('no charge is said to be in progress when none is, and the one with a card succeeds', async () => {
  const shop = await billing.organization()
  await cap(shop, 'organization', 'day', '', 1)
  const cardless = await shop.customer({ token: null })
  const user = await shop.customer()
  const refusals = Array.from({ length: 100 }, () => shop.charge(cardless))
  const charged = await shop.charge(user)
  assert.equal(charged.body.checkout_status, 'succeeded', charged.text)
  for (const { headers } of await Promise.all(refusals))
    assert.match(String(headers['x-error-code']), /^(no_saved_card|charge_cap_reached)$/)
})

test('concurrent charges of many customers on two processes reach the cap exactly', async () => {
  const shop = await billing.organization()
  await cap(shop, 'organization', 'day', 'USD', 100)
  await cap(shop, 'organization', 'day', '', 9)
  const users = await Promise.all(Array.from({ length: 40 }, () => shop.customer()))
  const other = openDb({ url: server.app.databaseUrl, applicationName: 'second process', connections: 4 })
  const context = { ...billingContext(server.app), db: other }
  const elsewhere = async (external_id: string) => {
    const body = { external_id, amount: '10.50', currency_code: 'USD', idempotency_key: 'k' }
    return oneOffCharge(context, shop.id, readChargeRequest(body)).then(
      ({ checkout_status }) => checkout_status as string,
      (error) => error.code as string,
    )
  }
  const here = async (user: string) => {
    const { headers, body } = await shop.charge(user, { idempotency_key: 'k' })
    return (body.checkout_status ?? headers['x-error-code']) as string
  }
  const outcomes = await Promise.all(users.map((user, n) => (n % 2 ? here(user) : elsewhere(user))))
  await other.close()
  const counts = Object.fromEntries(
    Array.from(
      Map.groupBy(outcomes, (one) => one),
      ([name, all]) => [name, all.length],
    ),
  )
  assert.deepEqual(counts, { succeeded: 9, charge_cap_reached: 31 })
  const [row] = await db.query(`select count(*) as n from orders where organization_id = $1`, [shop.id])
  assert.equal(row!.n, '9')
})
