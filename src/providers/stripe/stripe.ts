// The adapter of Stripe: one merchant account, its traits, and every call under one guard.
import type { Fee } from '../fees.ts'
import { Guard, type GuardOptions } from '../guard.ts'
import type { Notification } from '../notification.ts'
import {
  type ChargeRequest,
  type Dispute,
  type Movement,
  type NotBegun,
  type Provider,
  ProviderTrouble,
  type Reference,
  type RefundReference,
  type RefundRequest,
  type Traits,
  type Unknown,
} from '../provider.ts'
import { NotSent } from '../transport.ts'
import { type AccountDescription, describeAccount } from './account.ts'
import { eachItem, type Page, type Params, STRIPE_API_URL, StripeApi } from './api.ts'
import { confirm, findByKey, lookUp, refuse } from './charges.ts'
import { eraseCustomer, savedCard } from './customers.ts'
import { disputesOf, disputesSince } from './disputes.ts'
import { feeOf, feesPage } from './fees.ts'
import { refusal } from './money.ts'
import { movementsSince } from './movements.ts'
import { readStripeEvent } from './notifications.ts'
import { prepare } from './prepare.ts'
import { lookUpRefund, refund, refundsOf } from './refunds.ts'

export interface StripeOptions extends GuardOptions {
  secretKey: string
  /** Another address only for tests and the demo. */
  apiUrl?: string | (() => string)
  merchantId: string
  isSandbox: boolean
  /** In capitals; empty: all that Stripe can charge. */
  currencies?: readonly string[]
}

// Stripe allows about 100 calls a second; at some 400 ms a call that is 40 at a time.
const MAX_IN_FLIGHT = 40

const TRAITS: Traits = {
  prepares: true,
  lookUp: 'handle',
  keyLifeMs: 24 * 3_600_000,
  refuse: 'cancel',
  refunds: 'may_fail_later',
  refuseRefund: 'wait_out',
}

export class StripeProvider implements Provider {
  readonly name = 'stripe'
  readonly traits = TRAITS
  readonly merchantId: string
  readonly isSandbox: boolean
  readonly #currencies: ReadonlySet<string>
  readonly #guard: Guard
  readonly #api: StripeApi

  constructor(options: StripeOptions) {
    const { secretKey, apiUrl = STRIPE_API_URL, merchantId, isSandbox, currencies = [], ...limits } = options
    const maxInFlight = limits.maxInFlight ?? MAX_IN_FLIGHT
    this.merchantId = merchantId
    this.isSandbox = isSandbox
    this.#currencies = new Set(currencies)
    this.#guard = new Guard({ ...limits, maxInFlight })
    this.#api = new StripeApi(secretKey, apiUrl, maxInFlight)
  }

  accepts({ amountMinor, currencyCode }: { amountMinor: bigint; currencyCode: string }): string | undefined {
    if (this.#currencies.size > 0 && !this.#currencies.has(currencyCode)) {
      return `currency_code ${currencyCode} is not offered by the merchant account.`
    }
    return refusal(amountMinor, currencyCode)
  }

  admits(): boolean {
    return this.#guard.admits()
  }

  circuitIsOpen(): boolean {
    return this.#guard.circuit.isOpen()
  }

  async isReachable(): Promise<boolean> {
    const answer = await this.#read(undefined, (signal) => this.#api.get('/v1/balance', {}, signal))
    return 'status' in answer && answer.status === 200
  }

  prepare(request: ChargeRequest, signal?: AbortSignal) {
    return this.#begin(signal, (deadline) => prepare(this.#api, request, deadline))
  }

  confirm(request: Reference & { handle: string }, signal?: AbortSignal) {
    return this.#guard.run((deadline) => confirm(this.#api, request, deadline), signal)
  }

  lookUp(reference: Reference, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => lookUp(this.#api, reference, deadline))
  }

  refuse(reference: Reference, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => refuse(this.#api, reference, deadline))
  }

  findByKey(
    request: Reference & { token: string; providerCustomer: string | null },
    since: string,
    signal?: AbortSignal,
  ) {
    return this.#read(signal, (deadline) => findByKey(this.#api, request, since, deadline))
  }

  refund(request: RefundRequest, signal?: AbortSignal) {
    return this.#begin(signal, (deadline) => refund(this.#api, request, deadline))
  }

  lookUpRefund(reference: RefundReference, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => lookUpRefund(this.#api, reference, deadline))
  }

  refundsOf({ chargeTransactionId }: { chargeTransactionId: string }, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => refundsOf(this.#api, chargeTransactionId, deadline))
  }

  disputesOf({ chargeTransactionId }: { chargeTransactionId: string }, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => disputesOf(this.#api, chargeTransactionId, deadline))
  }

  listDisputes(since: string): AsyncGenerator<Dispute> {
    return disputesSince(since, (path, params) =>
      eachItem((starting_after) => this.page(path, { ...params, starting_after })),
    )
  }

  list(since: string): AsyncGenerator<Movement> {
    return movementsSince(since, (path, params) =>
      eachItem((starting_after) => this.page(path, { ...params, starting_after })),
    )
  }

  /** One page of any list of the account, newest first. Throws `ProviderTrouble`. */
  async page(path: string, params: Params, signal?: AbortSignal): Promise<Page> {
    const page = await this.#read(signal, (deadline) => this.#api.page(path, params, deadline))
    if ('outcome' in page) throw new ProviderTrouble(page.why)
    return page
  }

  async *notificationsSince(sinceS: number, signal?: AbortSignal): AsyncGenerator<Notification[]> {
    let after: string | undefined
    do {
      const { items, hasMore } = await this.page(
        '/v1/events',
        { created: { gte: sinceS }, starting_after: after },
        signal,
      )
      yield items.map(readStripeEvent).filter((one) => one !== undefined)
      after = hasMore ? String(items.at(-1)?.['id']) : undefined
    } while (after !== undefined)
  }

  describeAccount(signal?: AbortSignal): ReturnType<typeof describeAccount> {
    return this.#read(signal, (deadline) => describeAccount(this.#api, deadline))
  }

  /** The saved card that a token names; undefined where the account has none. */
  savedCard(token: string, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => savedCard(this.#api, token, deadline))
  }

  feeOf(entryId: string, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => feeOf(this.#api, entryId, deadline))
  }

  async *feesSince(since: string): AsyncGenerator<Fee[] | NotBegun> {
    let after: string | undefined
    do {
      const page = await this.#read(undefined, (deadline) => feesPage(this.#api, since, after, deadline))
      if ('outcome' in page) {
        if (page.outcome === 'unknown') throw new ProviderTrouble(page.why)
        return yield page
      }
      yield page.fees
      after = page.next
    } while (after !== undefined)
  }

  /** Erases what Stripe holds of a customer. `unknown`: to be repeated. */
  eraseCustomer(customer: string, how: 'empty' | 'delete', signal?: AbortSignal) {
    return this.#read(signal, (deadline) => eraseCustomer(this.#api, customer, how, deadline))
  }

  close(): void {
    this.#api.close()
  }

  /** A first call: where no connection was made, nothing was begun, which the circuit counts as a failure all the same. */
  async #begin<T>(signal: AbortSignal | undefined, call: (deadline: AbortSignal) => Promise<T>) {
    let notSent: NotBegun | undefined
    const outcome = await this.#guard.begin(async (deadline) => {
      try {
        return await call(deadline)
      } catch (error) {
        if (error instanceof NotSent) notSent = { outcome: 'not_begun', why: error.message, cause: 'unreachable' }
        throw error
      }
    }, signal)
    return notSent ?? outcome
  }

  /** A call that moves no money, so that its failures do not open the circuit. */
  #read<T>(signal: AbortSignal | undefined, call: (deadline: AbortSignal) => Promise<T>): Promise<T | Unknown> {
    return this.#guard.run(call, signal, { moves: false })
  }
}

export type { AccountDescription }
