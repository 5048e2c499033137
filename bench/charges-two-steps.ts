// The case "charges-two-steps": charges through the Stripe adapter, two calls of 50 ms each, compared with the simulator's one call.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { systemClock } from '../src/lib/clock.ts'
import { encodeForm } from '../src/lib/http/form.ts'
import { readAmount } from '../src/lib/money.ts'
import type { BillingContext } from '../src/payments/billing/context.ts'
import { oneOffCharge } from '../src/payments/billing/kinds.ts'
import type { Provider } from '../src/payments/providers/provider.ts'
import { SimulatorProvider } from '../src/payments/providers/simulator.ts'
import { StripeProvider } from '../src/payments/providers/stripe/stripe.ts'
import { fixedProviders } from '../test/payments/billing/scripted-provider.ts'
import { startHelper } from './charges-rig.ts'
import { ORGANIZATION, PROJECT } from './generate.ts'
import { percentiles, type Result } from './measure.ts'
import type { Options } from './options.ts'
import { openRig, type Rig } from './rig.ts'

const CUSTOMERS = 5000
// "few" leaves the machine idle half of the time and shows the latency; "many" keeps it busy and shows the throughput.
// The adapter's limit of 40 concurrent calls to Stripe is raised here.
const LOADS = { few: 4, many: 128 }
const IN_FLIGHT = 256
const SECRET_KEY = 'sk_test_bench0000'
const AMOUNT = '10.50'
const CALL_MS = 50

interface Card {
  psp: 'stripe' | 'simulator'
  token: string
  customer: string | null
  calls: number
}

/**
 * Charges in this process, without HTTP and without Stripe's rate limit. The cost of the second step is the time that remains
 * after subtracting the provider's 50 ms for each call.
 */
export async function measureTwoSteps(options: Options, say: (text: string) => void): Promise<Result> {
  const rig = await openRig({ say, durable: true })
  try {
    const stripe = await startHelper<{ url: string }, never>(
      'stripe-simulator.ts',
      join(rig.folder, 'stripe'),
      rig.closers,
    )
    const simulator = await startHelper<{ url: string }, never>(
      'timed-simulator.ts',
      join(rig.folder, 'one'),
      rig.closers,
    )
    const cards: Card[] = [
      { psp: 'stripe', ...(await saveCard(stripe.first.url)), calls: 2 },
      { psp: 'simulator', token: 'sim_slow_50ms', customer: null, calls: 1 },
    ]
    const context = contextOf(rig, [
      new StripeProvider({
        secretKey: SECRET_KEY,
        apiUrl: stripe.first.url,
        merchantId: 'main',
        isSandbox: true,
        clock: systemClock,
        maxInFlight: IN_FLIGHT,
      }),
      new SimulatorProvider({ url: simulator.first.url, clock: systemClock, maxInFlight: IN_FLIGHT }),
    ])
    const figures: Record<string, unknown> = {}
    for (const card of cards) {
      await makeCustomers(rig, card)
      await chargeFor(context, card, LOADS.many, Math.min(options.seconds, 5))
    }
    for (const [load, clients] of Object.entries(LOADS)) {
      for (const card of cards) {
        figures[`${card.psp}, ${load}`] = await measureCard(rig, context, card, clients, options.seconds)
      }
    }
    return { name: 'charges-two-steps', unit: 'charges', contenders: {}, ratios: {}, figures }
  } finally {
    await rig.close()
  }
}

function contextOf({ app }: Rig, providers: Provider[]): BillingContext {
  const { db, log } = app
  return { db, log, clock: systemClock, providers: fixedProviders(providers), providerTimeoutMs: 30_000 }
}

async function measureCard(rig: Rig, context: BillingContext, card: Card, clients: number, seconds: number) {
  const cpu = process.cpuUsage()
  const postgres = await rig.postgresSeconds()
  const begun = performance.now()
  const times = await chargeFor(context, card, clients, seconds)
  const perSecond = (times.length * 1000) / (performance.now() - begun)
  const { user, system } = process.cpuUsage(cpu)
  const per1000 = (cpuSeconds: number) => (cpuSeconds * 1000) / times.length
  const { p50Ms, p99Ms } = percentiles(times)
  return {
    perSecond,
    p50Ms,
    p99Ms,
    ownP50Ms: p50Ms! - card.calls * CALL_MS,
    cpuPer1000: { server: per1000((user + system) / 1e6), postgres: per1000((await rig.postgresSeconds()) - postgres) },
  }
}

let made = 0

/** The milliseconds of each charge. Throws if one does not succeed. */
async function chargeFor(context: BillingContext, { psp }: Card, clients: number, seconds: number): Promise<number[]> {
  const until = performance.now() + seconds * 1000
  const times: number[] = []
  const client = async () => {
    while (performance.now() < until) {
      const begun = performance.now()
      const answer = await oneOffCharge(context, ORGANIZATION, {
        externalId: `${psp} ${(made++ % CUSTOMERS) + 1}`,
        idempotencyKey: randomUUID(),
        amount: readAmount(AMOUNT),
        amountSent: AMOUNT,
        currencyCode: 'USD',
        clientMetadata: null,
        grants: null,
      })
      if (answer.checkout_status !== 'succeeded') throw new Error(`A charge is ${answer.checkout_status}.`)
      times.push(performance.now() - begun)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return times
}

async function saveCard(url: string): Promise<{ customer: string; token: string }> {
  const post = async (path: string, fields: Record<string, string>) => {
    const headers = { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/x-www-form-urlencoded' }
    const response = await fetch(url + path, { method: 'POST', headers, body: encodeForm(fields) })
    return ((await response.json()) as { id: string }).id
  }
  const customer = await post('/v1/customers', { name: 'Bench' })
  return { customer, token: await post('/v1/payment_methods/pm_card_visa/attach', { customer }) }
}

async function makeCustomers({ app }: Rig, { psp, token, customer }: Card): Promise<void> {
  await app.db.query('update organizations set one_off_charge_enabled = true')
  await app.db.query(
    `insert into customers (organization_id, external_id, project_id, created_at, updated_at)
     select $1, $2 || ' ' || n, $3, db_clock(), db_clock() from generate_series(1, ${CUSTOMERS}) n`,
    [ORGANIZATION, psp, PROJECT],
  )
  await app.db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
       amount, currency_code, status, psp, psp_merchant_id, psp_transaction_type, payment_method_token, psp_customer_id)
     select $1, $2 || ' ' || n, true, db_clock(), gen_random_uuid(), gen_random_uuid(),
       timestamptz '2026-01-01' + n * interval '1 second' + $5 * interval '1 millisecond', 10, 'USD', 'succeeded', $2, 'main',
       'sale', $3, $4
     from generate_series(1, ${CUSTOMERS}) n`,
    [ORGANIZATION, psp, token, customer, psp === 'stripe' ? 1 : 2],
  )
  await app.db.query('vacuum analyze')
}
