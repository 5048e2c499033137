// The cards of a seed: customers pay elsewhere with new cards and remove old ones, a follower hears of it late and out of order, and
// an independent model says which card a charge may use.
import { Readable } from 'node:stream'
import { importRecords } from '../../src/data/ingest/load.ts'
import type { Provider } from '../../src/payments/providers/provider.ts'
import { updateSavedCard } from '../../src/server/notifications/saved-card.ts'
import type { Clients, Server } from './clients.ts'
import type { Database } from './database.ts'
import { TWO_STEP_ACCOUNTS, TWO_STEPS } from './provider.ts'
import { type Broken, first } from './rules.ts'
import { type Customer, FIRST_CARD, payAt } from './shops.ts'
import { onServer, type Stage } from './stage.ts'
import type { OrderState } from './state.ts'
import { instantOf } from './virtual-clock.ts'

/** When Tundish was told of something: it can be visible from `begunMs` on, and is from `doneMs` on. */
interface Told {
  begunMs: number
  doneMs: number
}

/** A payment at the provider that Tundish did not make. */
interface Payment extends Told {
  id: string
  customer: Customer
  merchant: string
  token: string
  paidMs: number
  detached: Told
}

const untold = (): Told => ({ begunMs: Number.POSITIVE_INFINITY, doneMs: Number.POSITIVE_INFINITY })

export class Cards {
  readonly #payments: Payment[] = []
  /** By order: when its success was first seen to be committed. */
  readonly #settledMs = new Map<string, number>()
  /** Not where the clock of the database differs from the provider's. */
  isJudged = true

  /** A customer pays with a new card. */
  pay(customer: Customer, merchant: string, paidMs: number, told = untold()): Payment {
    const n = String(this.#payments.length + 1).padStart(12, '0')
    const id = `00000000-0000-4000-9000-${n}`
    const payment = { id, customer, merchant, token: `card-${n}`, paidMs, detached: untold(), ...told }
    this.#payments.push(payment)
    return payment
  }

  paymentsOf({ externalId }: Customer): Payment[] {
    return this.#payments.filter(({ customer }) => customer.externalId === externalId)
  }

  /** Call it with each state that is read, before the rule. */
  saw(orders: readonly OrderState[], nowMs: number): void {
    for (const { order_id, paid_ms } of orders)
      if (paid_ms !== null && !this.#settledMs.has(order_id)) this.#settledMs.set(order_id, nowMs)
  }

  /** What a restored backup does not know, Tundish was never told of. */
  restored(nowMs: number, kept: { payments: string[]; detached: string[] }): void {
    this.#settledMs.clear()
    for (const payment of this.#payments) {
      Object.assign(payment, kept.payments.includes(payment.id) ? { begunMs: 0, doneMs: nowMs } : untold())
      Object.assign(payment.detached, kept.detached.includes(payment.token) ? { begunMs: 0, doneMs: nowMs } : untold())
    }
  }

  /** Each charge uses the card of the customer's latest payment, by the time of the payment, of those that were known. */
  rule(orders: readonly OrderState[]): Broken {
    if (!this.isJudged) return undefined
    return first(orders.filter(({ token }) => token !== '').map((order) => () => this.#isLatest(order, orders)))
  }

  #isLatest(order: OrderState, orders: readonly OrderState[]): Broken {
    const own = orders
      .filter((one) => one.external_id === order.external_id && one.token !== '' && one.created_ms < order.created_ms)
      .flatMap(({ order_id, token, merchant, paid_ms }) => {
        // A claim that began before the other charge was settled may wait for that, and uses what was known when it began.
        const doneMs = this.#settledMs.get(order_id) ?? Number.POSITIVE_INFINITY
        return paid_ms === null ? [] : [{ token, merchant, paidMs: paid_ms, begunMs: 0, doneMs }]
      })
    const elsewhere = this.#payments.filter(({ customer }) => customer.externalId === order.external_id)
    const detachedOf = (token: string) => elsewhere.find((one) => one.token === token)?.detached ?? untold()
    const known = [...elsewhere, ...own].filter(({ begunMs }) => begunMs <= order.created_ms)
    const used = known.filter(({ token, merchant }) => token === order.token && merchant === order.merchant)
    const usedMs = Math.max(...used.map(({ paidMs }) => paidMs), order.token === FIRST_CARD ? 0 : -1)
    if (usedMs < 0) return `a charge of ${order.external_id} used the card ${order.token}, which is not known`
    if (detachedOf(order.token).doneMs < order.created_ms)
      return `a charge of ${order.external_id} used the card ${order.token}, which was detached`
    const later = known.find(
      ({ token, paidMs, doneMs }) =>
        doneMs < order.created_ms && paidMs > usedMs && detachedOf(token).begunMs > order.created_ms,
    )
    return (
      later && `a charge of ${order.external_id} used the card ${order.token}, and ${later.token} was the latest one`
    )
  }
}

/** A customer pays with a new card at an account of the two-step provider, and the payment is imported; within a step. */
export async function payElsewhere({ scheduler, database, shop, cards }: Stage): Promise<void> {
  const customers = inTwoSteps(shop.customers)
  if (customers.length === 0) return
  const [customer, account] = [scheduler.random.pick(customers), scheduler.random.pick([...TWO_STEP_ACCOUNTS])]
  scheduler.tell(`${customer.externalId} pays at ${account}`)
  const { nowMs } = scheduler
  const { id, token } = cards.pay(customer, account, nowMs, { begunMs: nowMs, doneMs: nowMs })
  await payAt(database, nowMs, shop.organization, customer, account, { id, token })
}

/** A customer replaces cards again and again, buys in between, and a follower of the accounts hears of it at some time. */
export async function replaceCards(stage: Stage, clients: Clients): Promise<void> {
  const { scheduler, shop, cards } = stage
  const { random } = scheduler
  const customers = inTwoSteps(shop.customers)
  if (customers.length === 0) return
  const customer = random.pick(customers)
  for (let n = random.between(3, 6); n > 0; n--) {
    await scheduler.sleep(random.between(1, 8_000))
    const chance = random.next()
    if (chance < 0.45) {
      const { merchant, token } = cards.pay(customer, random.pick([...TWO_STEP_ACCOUNTS]), scheduler.nowMs)
      scheduler.tell(`${customer.externalId} pays at ${merchant} with ${token}`)
    }
    if (chance < 0.65) void scheduler.sleep(random.between(1, 6_000)).then(() => followCustomer(stage, customer))
    else if (chance < 0.85) void detach(stage, customer)
    else void clients.shop(customer.externalId, `replaced-${n}`)
  }
  await clients.shop(customer.externalId, 'replaced-0')
}

/** Reads payments of a customer again, as an event of the account makes a follower do, and stores some of them or all. */
export async function followCustomer(stage: Stage, customer: Customer): Promise<void> {
  const { scheduler, database, shop, cards } = stage
  const { random } = scheduler
  const all = cards.paymentsOf(customer)
  if (all.length === 0) return
  const payments = random.chance(0.5) ? [random.pick(all)] : random.chance(0.5) ? all : all.toReversed()
  const { organization } = shop
  await scheduler.asStep(async () => {
    for (const { merchant } of payments) await database.ask(scheduler.nowMs, CONNECTED, [organization, merchant])
  })
  await onServer(stage, `follow ${payments.map(({ token }) => token)}`, async (server) => {
    for (const payment of payments) payment.begunMs = Math.min(payment.begunMs, scheduler.nowMs)
    const lines = payments.map((payment) => `${JSON.stringify({ record: 'payment', data: dataOf(payment) })}\n`)
    const source = { name: 'account', stream: () => Readable.from([Buffer.from(lines.join(''))]) }
    const { db, log } = server.context
    await importRecords({ db, log: log as never }, { projectId: customer.project, live: true }, [source])
    for (const payment of payments) payment.doneMs = Math.min(payment.doneMs, scheduler.nowMs)
  })
}

const dataOf = ({ id, customer, merchant, token, paidMs }: Payment) => ({
  external_id: customer.externalId,
  order_id: id,
  trx_id: id,
  amount: 5,
  currency_code: 'EUR',
  status: 'succeeded',
  psp: TWO_STEPS,
  psp_merchant_id: merchant,
  psp_transaction_type: 'sale',
  psp_transaction_id: id,
  payment_method_token: token,
  trx_created_at: instantOf(paidMs),
  psp_date: instantOf(paidMs),
})

/** A customer detaches a card that Tundish knows, and keeps at least one other. */
async function detach(stage: Stage, customer: Customer): Promise<void> {
  const { scheduler, shop, cards } = stage
  const known = cards
    .paymentsOf(customer)
    .filter(({ doneMs, detached }) => doneMs <= scheduler.nowMs && !isTold(detached))
  if (known.length < 2) return
  const { merchant, token, detached } = scheduler.random.pick(known)
  const provider = { savedCard: async () => undefined } as unknown as Provider
  await onServer(stage, `detach ${token}`, async ({ context }: Server) => {
    detached.begunMs = scheduler.nowMs
    await updateSavedCard(
      context,
      { organizationId: shop.organization, psp: TWO_STEPS, merchantId: merchant },
      provider,
      token,
    )
    detached.doneMs = scheduler.nowMs
  })
}

const isTold = ({ begunMs }: Told) => begunMs !== Number.POSITIVE_INFINITY

export const inTwoSteps = (customers: readonly Customer[]) => customers.filter(({ merchant }) => merchant === 'm2')

/** What the database knows of payments and detached cards. */
export async function readKept(database: Database, nowMs: number, organization: string) {
  const [row] = await database.ask(nowMs, KEPT, [organization])
  return JSON.parse(row!.kept!) as { payments: string[]; detached: string[] }
}

const KEPT = {
  name: 'kept cards',
  text: `
    select json_build_object(
      'payments', (select coalesce(json_agg(trx_id), '[]') from report_transactions where organization_id = $1 and imported),
      'detached', (select coalesce(json_agg(token), '[]') from detached_cards where organization_id = $1)) as kept`,
}

const CONNECTED = {
  name: 'connected account',
  text: `
    insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, created_at, updated_at)
    values ($1, '${TWO_STEPS}', $2, true, db_clock(), db_clock()) on conflict do nothing`,
}
