// One organization with accounts at Stripe, at Primer and at the simulator, through their adapters: customers whose cards fail in every
// way are charged and refunded at once, and move from one provider to another. SEEDS is how many seeds run, FIRST the first of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openRandom, type Random } from '../../../src/lib/seeded-random.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { addPayment, settled } from '../../support/billing.ts'
import { connectPrimer, PRIMER_MERCHANT } from '../../support/primer-billing.ts'
import type { ApiResponse } from '../../support/server.ts'
import { openPrimerSimulator, type PrimerSimulator, savedCard } from '../../support/simulators.ts'
import { MERCHANT, type StripeBilling, startStripeBilling } from '../../support/stripe-billing.ts'

const SEEDS = Number(process.env['SEEDS'] ?? 1)
const FIRST = Number(process.env['FIRST'] ?? 1)
const CUSTOMERS = 10
const STEPS = 3

const CARDS = {
  simulator: [
    ...['pm_card_visa', 'pm_card_chargeDeclined', 'sim_charge_then_drop', 'sim_drop_no_charge', 'sim_late_300ms'],
    ...['sim_charge_then_500', 'sim_refund_then_drop', 'sim_refund_fails'],
  ],
  stripe: [
    ...['pm_card_visa', 'pm_card_chargeDeclined', 'pm_sim_prepare_drop_after', 'pm_sim_confirm_drop_before'],
    ...[
      'pm_sim_confirm_drop_after',
      'pm_sim_confirm_late_300ms',
      'pm_sim_processing_300ms',
      'pm_sim_refund_drop_after',
    ],
  ],
  primer: [
    ...['tok_visa', 'tok_declined', 'tok_authorized', 'tok_fallback', 'tok_drop_before', 'tok_drop_after'],
    ...['tok_late_300ms', 'tok_timeout', 'tok_refund_drop_after', 'tok_refund_late_300ms'],
  ],
}
type Psp = keyof typeof CARDS
const PSPS = Object.keys(CARDS) as Psp[]
const ACCOUNTS: Record<Psp, string> = { simulator: 'merchant-1', stripe: MERCHANT, primer: PRIMER_MERCHANT }

interface Stand {
  billing: StripeBilling
  primer: PrimerSimulator
  shop: Awaited<ReturnType<StripeBilling['shop']>>
}

for (let seed = FIRST; seed < FIRST + SEEDS; seed++)
  test(`seed ${seed}: each purchase is charged at most once, and the money is equal on both sides`, async () => {
    const primer = await openPrimerSimulator()
    const billing = await startStripeBilling({ PRIMER_API_URL: primer.url, PROVIDER_TIMEOUT_MS: '3000' })
    const ended = new AbortController()
    try {
      const shop = await billing.shop('three')
      await connectPrimer(billing, shop, primer)
      const stand = { billing, primer, shop }
      const time = passTime(stand, ended.signal)
      await Promise.all(Array.from({ length: CUSTOMERS }, (_, n) => live(stand, openRandom(seed * 1000 + n))))
      await compare(stand)
      ended.abort()
      await time
    } finally {
      ended.abort()
      await billing.stop()
      await primer.cleanUp()
    }
  })

let made = 0

/** A customer who pays with one card after another; each request is sent twice at once. */
async function live({ billing, primer, shop }: Stand, random: Random): Promise<void> {
  const user = await shop.customer()
  const outcomes: string[][] = []
  for (let step = 0; step < STEPS; step++) {
    const psp = random.pick(PSPS)
    let token = random.pick(CARDS[psp])
    if (psp === 'stripe') token = (await savedCard(billing.client, token)).payment_method
    if (psp === 'primer') {
      token += `~${user}-${step}`
      await primer.control('/tokens', { token, customer: user })
    }
    // To the microsecond: no two rows of an organization have one time.
    const at = new Date().toISOString().replace('Z', `${String(++made % 1000).padStart(3, '0')}Z`)
    await addPayment(billing.db, shop.id, user, { psp, merchantId: ACCOUNTS[psp], token, at })
    const charge = (key: number) => shop.charge(user, { idempotency_key: `charge ${key}` })
    const { body, text } = await twice(() => charge(step))
    assert.ok(['succeeded', 'failed', 'cancelled'].includes(body.checkout_status), text)
    outcomes.push([body.order_id, body.checkout_status])
    if (body.checkout_status === 'succeeded' && random.chance(0.6))
      await twice(() => shop.refund(user, body.order_id, { idempotency_key: `refund ${step}`, amount: '4' }))
    // Whatever card the customer has now, an earlier key has its first outcome.
    const earlier = random.integer(0, step)
    const { body: again } = await twice(() => charge(earlier))
    assert.deepEqual([again.order_id, again.checkout_status], outcomes[earlier])
  }
}

/** Sends it twice at once, again while the provider is not available, and waits for the outcome, which both have. */
async function twice(send: () => Promise<ApiResponse>): Promise<ApiResponse> {
  const ask = async () => {
    for (;;) {
      const response = await send()
      if (response.status !== 503) return response
      await sleep(100)
    }
  }
  const [one, other] = await Promise.all([settled(ask), settled(ask)])
  assert.deepEqual(
    { ...one.body, idempotent_replay: undefined },
    { ...other.body, idempotent_replay: undefined },
    `${one.text}\n${other.text}`,
  )
  return one
}

/** Lets the minutes pass that billing waits for what a provider does not know, once every request has arrived. */
async function passTime({ billing: { db } }: Stand, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const table of ['orders', 'refunds'])
      await db.query(
        `update ${table} t set next_look_at = db_clock(), not_found_at = t.not_found_at - interval '1 hour',
           begun_at = coalesce(t.begun_at, t.created_at) - interval '10 minutes' * (o.psp = 'primer')::integer
         from orders o where (o.organization_id, o.order_id) = (t.organization_id, t.order_id)
           and t.status = 'processing' and t.lease_until is null
           and coalesce(t.begun_at, t.created_at) < db_clock() - interval '8 seconds'
           and (coalesce(t.begun_at, t.created_at) > db_clock() - interval '5 minutes'
             or t.not_found_at > db_clock() - interval '1 hour')`,
      )
    await sleep(200)
  }
}

/** Each success here is one movement there, of the same amount, and there is no other; a reconciliation finds no difference. */
async function compare({ billing, primer, shop }: Stand): Promise<void> {
  const here = await billing.db.query(
    `select 'charge' as type, order_id as id, psp, amount::text as amount, provider_key as key from orders
     where organization_id = $1 and status = 'succeeded'
     union all select 'refund', r.refund_id, o.psp, r.amount::text, r.provider_key from refunds r
     join orders o using (organization_id, order_id) where r.organization_id = $1 and r.status = 'succeeded'`,
    [shop.id],
  )
  const there = [
    ...(await billing.ledger()).map(({ type, reference, amount }) => `simulator ${type} ${reference} ${amount}`),
    ...(await billing.stripe.ledger())
      .filter(({ status }) => status === undefined || status === 'succeeded')
      .map(({ type, metadata, amount }) => {
        const id = metadata[type === 'charge' ? 'tundish_order' : 'tundish_refund']
        return `stripe ${type} ${id} ${amount / 100}`
      }),
    ...(await primer.ledger()).map(({ type, key, amount }) => `primer ${type} ${key} ${amount / 100}`),
  ]
  const expected = here.map(
    ({ type, id, psp, amount, key }) => `${psp} ${type} ${psp === 'primer' ? key : id} ${Number(amount)}`,
  )
  assert.deepEqual(there.sort(), expected.sort())
  assert.equal(new Set(here.map(({ psp }) => psp)).size, PSPS.length, 'every provider has charged')
  const since = new Date(Date.now() - 3_600_000).toISOString()
  const { findings, match } = await reconcile(billingContext(billing.server.app), since)
  assert.deepEqual([findings, match], [[], here.length])
}
