// Stripe's API as the simulator speaks it: keys, routes, idempotency, faults, and work that becomes due.
import { type Form, FormError } from '../../lib/http/form.ts'
import { ProviderDialect, type Reply, type SimulatedResponse } from '../dialect.ts'
import { accountOf, accountRoutes } from './account.ts'
import { balanceTransactionRoutes, postWaitingCharge } from './balance-transactions.ts'
import { type Call, checkNames, type Dialect, match, type Route } from './call.ts'
import { chargeRoutes } from './charges.ts'
import { checkoutRoutes } from './checkout.ts'
import { couponRoutes } from './coupons.ts'
import { customerRoutes } from './customers.ts'
import { disputeRoutes, openDispute } from './disputes.ts'
import { type ErrorBody, forbidden, invalid, StripeError, unavailable } from './errors.ts'
import { type Delivery, eventRoutes, formEvent, recordEvent } from './events.ts'
import { expand } from './expand.ts'
import { Faults } from './faults.ts'
import { hide } from './hidden.ts'
import { invoiceRoutes } from './invoices.ts'
import { responseOfEmptyAccount } from './other-accounts.ts'
import { paymentIntentRoutes, settlePayment } from './payment-intents.ts'
import { paymentMethodRoutes } from './payment-methods.ts'
import { payoutRoutes } from './payouts.ts'
import { productRoutes } from './products.ts'
import { failRefund, refundRoutes, settleRefund } from './refunds.ts'
import type { EventType, State, Task } from './state.ts'
import { subscriptionItemRoutes } from './subscription-items.ts'
import { subscriptionRoutes } from './subscriptions.ts'

const ROUTES: readonly Route[] = [
  ...accountRoutes,
  ...balanceTransactionRoutes,
  ...chargeRoutes,
  ...checkoutRoutes,
  ...couponRoutes,
  ...customerRoutes,
  ...disputeRoutes,
  ...eventRoutes,
  ...invoiceRoutes,
  ...paymentIntentRoutes,
  ...paymentMethodRoutes,
  ...payoutRoutes,
  ...productRoutes,
  ...refundRoutes,
  ...subscriptionItemRoutes,
  ...subscriptionRoutes,
]

export interface Asked {
  method: string
  path: string
  params: Form
  secretKey: string | undefined
  idempotencyKey: string | undefined
}

export class StripeDialect extends ProviderDialect<State, Asked, Delivery> implements Dialect {
  readonly livemode: boolean
  readonly faults = new Faults()
  /** Keys of other accounts, and the ids of these: the keys are valid, and none of the objects of this account exist there. */
  readonly others = new Map<string, string>()

  constructor(state: State, livemode: boolean) {
    super(state, formEvent)
    this.livemode = livemode
  }

  emit<T extends object>(type: EventType, object: T, previous?: object): T {
    const { event, endpoints } = recordEvent(this, type, object, previous)
    for (const endpoint of endpoints) this.deliveries.add({ event, endpoint })
    return object
  }

  protected async perform(asked: Asked): Promise<Reply> {
    const key = asked.method === 'POST' && asked.idempotencyKey ? asked.idempotencyKey : undefined
    try {
      this.#authenticate(asked.secretKey)
      const other = this.others.get(asked.secretKey ?? '')
      const empty = other === undefined ? undefined : responseOfEmptyAccount(asked)
      if (empty) return { status: 200, body: empty }
      const { call, route } = routeOf(asked)
      if (other !== undefined && call.path === '/v1/account') return { status: 200, body: accountOf(other) }
      const fault = this.faults.of(this, call, key)
      if (fault?.kind === 'drop_before') return 'dropped'
      if (fault?.kind === 'forbidden') throw forbidden(fault.permission)
      if (fault?.kind === 'busy') throw unavailable(429)
      if (fault?.kind === 'locked') throw unavailable(429, 'lock_timeout')
      if (fault?.kind === 'in_use' || (key && this.running.has(key))) throw unavailable(409)
      if (fault?.kind === 'late') return this.postpone(asked, fault.ms, key)
      const reply = this.#performOnce(call, route, key, fault?.kind)
      if (fault?.kind === 'drop_after') return 'dropped'
      if (fault?.kind === 'slow') await this.delay(fault.ms, key)
      return reply
    } catch (error) {
      return responseOf(error)
    }
  }

  /** Runs the call, or repeats the outcome of the first call with this key. */
  #performOnce(call: Call, route: Route, key: string | undefined, fault?: string): SimulatedResponse {
    const purpose = JSON.stringify([call.method, call.path, call.params])
    const kept = key === undefined ? undefined : this.state.keptOutcome(key)
    if (kept && kept.purpose !== purpose) {
      const message = `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`
      throw new StripeError(400, { type: 'idempotency_error', message })
    }
    if (kept) return { status: kept.status, body: kept.body as object, isReplay: true }
    const response = fault === 'error_before' ? responseOf(unavailable(500)) : this.#run(call, route)
    const told = fault === 'error_after' ? responseOf(unavailable(500)) : response
    if (key !== undefined && told.isOutcome) this.state.keep({ key, purpose, status: told.status, body: told.body })
    return { status: told.status, body: told.body }
  }

  #run(call: Call, route: Route): SimulatedResponse & { isOutcome: boolean } {
    try {
      checkNames(call, route)
      return { status: 200, body: hide(call, expand(this.state, call, route.handler(this, call))), isOutcome: true }
    } catch (error) {
      return responseOf(error)
    }
  }

  #authenticate(secretKey: string | undefined): void {
    const mode = this.livemode ? 'live' : 'test'
    if (secretKey && new RegExp(`^[sr]k_${mode}_[A-Za-z0-9]{4,250}$`).test(secretKey) && !this.revoked.has(secretKey))
      return
    const shown = secretKey ? `${secretKey.slice(0, 8)}****${secretKey.slice(-4)}` : undefined
    const message = shown ? `Invalid API Key provided: ${shown}` : 'You did not provide an API key.'
    throw new StripeError(401, { type: 'invalid_request_error', message })
  }

  protected runJob(task: Task, target: string): void {
    if (task === 'settle_payment') settlePayment(this, target)
    else if (task === 'settle_refund') settleRefund(this, target)
    else if (task === 'fail_refund') failRefund(this, target)
    else if (task === 'dispute') openDispute(this, target)
    else if (task === 'post_charge') postWaitingCharge(this, target)
  }

  protected runLate(asked: Asked): void {
    const { call, route } = routeOf(asked)
    this.#performOnce(call, route, asked.idempotencyKey)
  }
}

function routeOf({ method, path, params }: Asked): { call: Call; route: Route } {
  const found = match(ROUTES, method, path, params)
  if (found) return found
  const message = `Unrecognized request URL (${method}: ${path}).`
  throw new StripeError(404, { type: 'invalid_request_error', message })
}

/** Any exception of another kind is a bug of the dialect. */
function responseOf(error: unknown): SimulatedResponse & { isOutcome: boolean } {
  if (error instanceof FormError) return responseOf(invalid(`The form ${error.message}.`))
  if (!(error instanceof StripeError)) throw error
  const body: { error: ErrorBody } = { error: error.body }
  return { status: error.status, body, isOutcome: error.isOutcome }
}
