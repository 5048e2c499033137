// Stripe's notifications late, twice, out of order or never: whatever arrives, and when, the end is what happened at Stripe.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { signature } from '../../../src/simulators/stripe/events.ts'
import { until } from '../../support/time.ts'
import { openWorld, type Purchase, STEPS } from './purchase.ts'
import { setUpStripeShop } from './stripe-shop.ts'

const RUNS = 5
const PURCHASES = 12

const setup = setUpStripeShop()

/** What happens to a purchase at Stripe, and which of its events arrive after each step: by number, as often as it comes. */
const story = fc.array(
  fc.record({
    step: fc.constantFrom(...STEPS),
    arrives: fc.array(fc.nat(50), { maxLength: 5 }),
    together: fc.boolean(),
  }),
  { maxLength: 6 },
)

test('every order of notifications, with copies and gaps, ends as it is at Stripe', { timeout: 600_000 }, async () => {
  // The test delivers by itself.
  await setup.stripe.control('/events', { isOff: true })
  const world = openWorld(setup.stripe, setup.shop, setup.account)
  await fc.assert(
    fc.asyncProperty(fc.array(story, { minLength: PURCHASES, maxLength: PURCHASES }), async (stories) => {
      const purchases: Purchase[] = []
      for (const story of stories) {
        const purchase = await world.begin()
        purchases.push(purchase)
        for (const { step, arrives, together } of [
          { step: 'settle', arrives: [], together: false } as const,
          ...story,
        ]) {
          await world.take(purchase, step)
          const bodies = arrives.map((n) => purchase.events[n % purchase.events.length]!)
          if (together) await Promise.all(bodies.map(deliver))
          else for (const body of bodies) await deliver(body)
        }
      }
      await readMissed()
      for (const purchase of purchases) {
        assert.deepEqual(await stateOf(purchase), world.expected(purchase), purchase.told.join(', '))
      }
    }),
    { numRuns: RUNS, endOnFailure: true },
  )
})

/** As Stripe does: what was refused is sent again later, which here is the reading of the list. */
async function deliver(body: string): Promise<void> {
  const header = signature(body, [setup.account.secret], Math.floor(Date.now() / 1000))
  const headers = { 'content-type': 'application/json', 'stripe-signature': header }
  const { status } = await fetch(setup.account.eventsUrl, { method: 'POST', headers, body })
  assert.ok(status === 200 || status === 503, String(status))
}

/** Has the server read Stripe's list of events, in which what never arrived is found. */
async function readMissed(): Promise<void> {
  // A reading that is under way may have passed the newest events.
  await until('no reading to be under way', async () => {
    const free =
      'update merchant_accounts set notifications_due_at = null where notifications_lease_until is null returning 1'
    return (await setup.billing.db.query(free)).length > 0
  })
  await until('the list of events to be read', async () => {
    const rows = await setup.billing.db.query(
      "select from merchant_accounts where notifications_due_at > db_clock() + interval '2 minutes'",
    )
    return rows.length > 0
  })
}

async function stateOf({ orderId, user }: Purchase): Promise<object> {
  const { db } = setup.billing
  const [order] = await db.query(
    `select o.status, trim_scale(amount_refunded)::text as refunded, (select d.status from disputes d where d.order_id = o.order_id) as dispute,
       (select (e.data ->> 'is_active')::text from events e where e.data ->> 'order_id' = o.order_id::text
        and e.type like 'consumable.%' order by sequence desc limit 1) as told_active,
       (select count(*) from events e where e.object_id = o.order_id::text and e.type = 'charge.disputed') as told_disputed,
       (select count(*) from events e where e.object_id = o.order_id::text and e.type = 'charge.dispute_won') as told_won
     from orders o where o.order_id = $1`,
    [orderId],
  )
  const rows = await setup.shop.report({ order_id: orderId })
  const count = (type: string, status: string) =>
    rows.filter((row) => row.psp_transaction_type === type && row.status === status).length
  return {
    ...order,
    active: (await setup.shop.consumables(user))[0]?.is_active,
    sales: count('sale', 'succeeded'),
    // A refund that failed later has both rows, one that had failed before it was known has none.
    refunds: count('refund', 'refunded') - count('refund', 'failed'),
    chargebacks: count('chargeback', 'refunded'),
    reversals: count('chargeback_reversal', 'succeeded'),
  }
}
