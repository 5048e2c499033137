// Charges without a server: requests as the billing API reads them, and billing with a scripted provider.
import { after, before, beforeEach } from 'node:test'
import { readAmount } from '../../../src/lib/money.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import type { Query } from '../../../src/lib/pg/types.ts'
import type { ChargeRequest } from '../../../src/payments/billing/charge/request.ts'
import { type Order, ordersInProgress } from '../../../src/payments/billing/charge/row.ts'
import type { BillingContext } from '../../../src/payments/billing/context.ts'
import { CHARGE } from '../../../src/payments/billing/kinds.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import type { RefundRequest } from '../../../src/payments/billing/refund/request.ts'
import type { Provider } from '../../../src/payments/providers/provider.ts'
import { type Billing, type Organization, startBilling } from '../../support/billing.ts'
import { silent } from '../../support/simulators.ts'
import { HandClock } from '../../support/time.ts'
import { fixedProviders, scriptedProvider } from './scripted-provider.ts'

/** A charge of 10.50 USD with the key `k`, unless `more` changes it. */
export const chargeOf = (externalId: string, amount = '10.50', idempotencyKey = 'k'): ChargeRequest => ({
  externalId,
  idempotencyKey,
  amount: readAmount(amount),
  amountSent: amount,
  currencyCode: 'USD',
  clientMetadata: null,
  grants: null,
})

/** A refund of the remaining amount with the key `r`, unless `more` changes it. */
export const refundOf = (
  externalId: string,
  orderId: string,
  { amount, idempotencyKey = 'r' }: { amount?: string | undefined; idempotencyKey?: string | null } = {},
): RefundRequest => ({
  externalId,
  orderId,
  amount: amount === undefined ? undefined : readAmount(amount),
  amountSent: amount,
  isSoft: false,
  reason: '',
  comment: '',
  idempotencyKey,
})

/** Calls to the provider may take a second of a clock that the test moves. */
export function contextOf(db: Db, provider: Provider, more: Partial<BillingContext> = {}): BillingContext {
  const providers = fixedProviders([provider])
  return { db, providers, clock: new HandClock(), log: silent, providerTimeoutMs: 1_000, ...more }
}

/** A database and a clock by which every statement takes as long as the margin of a lease, a claim too. */
export function tooSlow(db: Db) {
  const clock = new HandClock()
  const slow = (query: Query) =>
    ((...given) => {
      clock.advance(1_000)
      return query(...given)
    }) as Query
  const tx: Db['tx'] = (work) => db.tx((query, commit) => work(slow(query), commit))
  return { clock, db: { ...db, query: slow(db.query), tx } }
}

/** The customer's only order; `due_in` are the seconds from its claim, or from the last look, to the next one. */
export async function orderOf(db: Db, organizationId: string, externalId: string) {
  const [row] = await db.query(
    `select order_id, status, lease_until, amount, looks, next_look_at,
       round(extract(epoch from next_look_at - greatest(created_at, begun_at, handed_over_at))) as due_in
     from orders where organization_id = $1 and external_id = $2`,
    [organizationId, externalId],
  )
  return row
}

/** Postpones all charges in progress by a day, so that the next test does not take those of earlier tests. */
const postponeStatusChecks = (db: Db) =>
  db.query(`update orders set next_look_at = db_clock() + interval '1 day' where status = 'processing'`)

// Longer than a test runs on a busy machine.
export const LONG_LEASE_MS = 600_000

/** Takes due charges as a worker does. */
export const takeDue = (db: Db, most: number) =>
  ordersInProgress.takeDue(db, { most, perAccount: most, accounts: [] }, LONG_LEASE_MS)

/** Makes the customer's charge in progress due, even if another process has its lease, and takes it. */
export async function takeNow(db: Db, externalId: string): Promise<Order | undefined> {
  await db.query(
    `update orders set next_look_at = db_clock(), lease_until = null where external_id = $1 and status = 'processing'`,
    [externalId],
  )
  return (await takeDue(db, 1))[0]
}

/** Looks at a charge that was taken. */
export const lookInto = (context: BillingContext, order: Order) => checkStatus(context, CHARGE, order)

/** For a call to the provider that must not be made. */
export const never = async (): Promise<never> => {
  throw new Error('must not be called')
}

/**
 * For the tests of a file or a `describe`: an organization, and a new customer for each test, whose charges are made in this
 * process. There is no background work: only the test looks up unknown outcomes.
 */
export function setUpCharges() {
  let billing: Billing
  let shop: Organization
  let user: string
  const errors: unknown[] = []
  const log = { info() {}, warn() {}, error: (about: unknown) => void errors.push(about) } as BillingContext['log']
  before(async () => {
    billing = await startBilling({}, { worker: false })
    shop = await billing.organization()
  })
  beforeEach(async () => {
    await postponeStatusChecks(billing.db)
    user = await shop.customer()
    errors.length = 0
  })
  after(() => billing.stop())
  return {
    get billing() {
      return billing
    },
    get db() {
      return billing.db
    },
    get shop() {
      return shop
    },
    /** The customer of this test. */
    get user() {
      return user
    },
    /** The errors that this test has logged. */
    errors,
    request: (amount?: string, key?: string) => chargeOf(user, amount, key),
    context: (script: Partial<Provider>, more: Partial<BillingContext> = {}) =>
      contextOf(billing.db, scriptedProvider(script), { log, ...more }),
    order: () => orderOf(billing.db, shop.id, user),
    take: async () => (await takeNow(billing.db, user))!,
  }
}
