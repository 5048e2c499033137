// Charges at a provider that prepares and confirms: a process dies at a statement, and another one takes over its order.
import { beforeEach } from 'node:test'
import type { Db } from '../../../src/lib/pg/db.ts'
import { type Order, ordersInProgress } from '../../../src/payments/billing/charge/row.ts'
import type { BillingContext } from '../../../src/payments/billing/context.ts'
import { CHARGE, oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { chargeOf, contextOf, setUpCharges } from './in-process.ts'
import { twoStepProvider } from './two-step-provider.ts'

/** For the tests of a file: charges as by `setUpCharges`, and a provider in two steps for each test. */
export function setUpTwoSteps() {
  const charges = setUpCharges()
  let there: ReturnType<typeof twoStepProvider>
  beforeEach(() => {
    there = twoStepProvider()
  })
  const request = (key?: string) => chargeOf(charges.user, '10.50', key)
  const context = (more: Partial<BillingContext> = {}) => contextOf(charges.db, there.provider, more)
  const order = async () => {
    const [row] = await charges.db.query(
      `select order_id, status, provider_handle, provider_customer, prepared_at, not_found_at, charge_transaction_id, pending_since,
         round(extract(epoch from next_look_at - greatest(created_at, begun_at, handed_over_at))) as due_in
       from orders where organization_id = $1 and external_id = $2`,
      [charges.shop.id, charges.user],
    )
    return row
  }
  /** Takes the user's order, as another process does once its lease has passed. */
  const takeOrder = async (): Promise<Order> => {
    await charges.db.query('update orders set lease_until = null where external_id = $1', [charges.user])
    const found = await ordersInProgress.find(charges.db.query, (await order())!.order_id!)
    return (await ordersInProgress.take(charges.db, found!, 5_000))!
  }
  return {
    get db() {
      return charges.db
    },
    get shop() {
      return charges.shop
    },
    get user() {
      return charges.user
    },
    get there() {
      return there
    },
    set there(other: ReturnType<typeof twoStepProvider>) {
      there = other
    },
    request,
    context,
    order,
    takeOrder,
    charge: (more: Partial<BillingContext> = {}, asked = request()) =>
      oneOffCharge(context(more), charges.shop.id, asked),
    /** Looks at the user's order once its lease has passed. */
    lookAgain: async (more: Partial<BillingContext> = {}) => checkStatus(context(more), CHARGE, await takeOrder()),
    /** A database that fails at statements of this name, once the statement is done or before it. */
    dying(name: string, when: 'before' | 'after'): Db {
      const query = (async (statement, params) => {
        const isIt = typeof statement !== 'string' && statement.name === name
        if (isIt && when === 'before') throw new Error('Connection terminated')
        const rows = await charges.db.query(statement, params)
        // A first claim may only learn which account must be ready.
        if (isIt && rows.some((row) => row['order_id'] !== null)) throw new Error('Connection terminated')
        return rows
      }) as Db['query']
      return { ...charges.db, query }
    },
  }
}
