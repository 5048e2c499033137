// The adapter for Stripe: one merchant account and its traits. Every call goes through the account's guard.
import type { Fee } from '../fees.ts'
import { Guard, type GuardOptions } from '../guard.ts'
import type { Notification } from '../notification.ts'
import type { NotBegun, Unknown } from '../outcomes.ts'
import {
  type Card,
  type ChargeRequest,
  type Dispute,
  errorOf,
  type Movement,
  type Provider,
  type Reference,
  type RefundReference,
  type RefundRequest,
  type Span,
  type Traits,
} from '../provider.ts'
import { NotSent } from '../transport.ts'
import { describeAccount } from './account.ts'
import { eachItem, type Page, type Params, STRIPE_API_URL, StripeApi, WrongAccount } from './api.ts'
import { confirm, findByKey, lookUp, refuse } from './charges.ts'
import { eraseCustomer, payerOf, savedCard } from './customers.ts'
import { disputesOf, disputesSince } from './disputes.ts'
import { feeOf, feesPage } from './fees.ts'
import { refundRefusal, refusal } from './money.ts'
import { movementsSince } from './movements.ts'
import { readStripeEvent } from './notifications.ts'
import { prepare } from './prepare.ts'
import { lookUpRefund, refund, refundsOf } from './refunds.ts'

export interface StripeOptions extends GuardOptions {
  secretKey: string
  /** Another address than Stripe's, for tests and the demo. */
  apiUrl?: string | (() => string)
  merchantId: string
  isSandbox: boolean
  /** ISO 4217 codes in capitals. An empty list allows every currency that Stripe can charge. */
  currencies?: readonly string[]
  /** Stripe's id of the account that the key has to belong to; null: any. */
  accountId?: string | null
}

// Stripe allows about 100 calls a second, which is 40 concurrent calls of 400 ms.
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
  readonly accountId: string | null
  readonly #currencies: ReadonlySet<string>
  readonly #guard: Guard
  readonly #api: StripeApi

  constructor(options: StripeOptions) {
    const {
      secretKey,
      apiUrl = STRIPE_API_URL,
      merchantId,
      isSandbox,
      currencies = [],
      accountId = null,
      ...limits
    } = options
    const maxInFlight = limits.maxInFlight ?? MAX_IN_FLIGHT
    this.merchantId = merchantId
    this.isSandbox = isSandbox
    this.accountId = accountId
    this.#currencies = new Set(currencies)
    this.#guard = new Guard({ ...limits, maxInFlight })
    this.#api = new StripeApi(secretKey, apiUrl, maxInFlight, accountId)
  }

  accepts({ amountMinor, currencyCode }: { amountMinor: bigint; currencyCode: string }): string | undefined {
    if (this.#currencies.size > 0 && !this.#currencies.has(currencyCode)) {
      return `currency_code ${currencyCode} is not offered by the merchant account.`
    }
    return refusal(amountMinor, currencyCode)
  }

  acceptsRefund({ amountMinor, currencyCode }: { amountMinor: bigint; currencyCode: string }): string | undefined {
    return refundRefusal(amountMinor, currencyCode)
  }

  admits(): boolean {
    return this.#guard.admits()
  }

  circuitIsOpen(): boolean {
    return this.#guard.circuit.isOpen()
  }

  async isReachable(): Promise<boolean> {
    const response = await this.#read(undefined, (signal) => this.#api.get('/v1/balance', {}, signal))
    return 'status' in response && response.status === 200
  }

  prepare(request: ChargeRequest, signal?: AbortSignal) {
    return this.#begin(signal, (deadline) => prepare(this.#api, request, deadline))
  }

  confirm(request: Reference & { handle: string }, signal?: AbortSignal) {
    return this.#guard.run((deadline) => confirm(this.#api, request, deadline), signal)
  }

  lookUp(reference: Reference, signal?: AbortSignal) {
    return this.#find(signal, (deadline) => lookUp(this.#api, reference, deadline))
  }

  refuse(reference: Reference, signal?: AbortSignal) {
    return this.#find(signal, (deadline) => refuse(this.#api, reference, deadline))
  }

  findByKey(request: Reference & { cards: readonly Card[] }, span: Span, signal?: AbortSignal) {
    return this.#find(signal, (deadline) => findByKey(this.#api, request, span, deadline))
  }

  refund(request: RefundRequest, signal?: AbortSignal) {
    return this.#begin(signal, (deadline) => refund(this.#api, request, deadline))
  }

  lookUpRefund(reference: RefundReference, signal?: AbortSignal) {
    return this.#find(signal, (deadline) => lookUpRefund(this.#api, reference, deadline))
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

  /** Reads one page of any of the account's lists, newest first. Throws a `ProviderError`. */
  async page(path: string, params: Params, signal?: AbortSignal): Promise<Page> {
    const page = await this.#read(signal, (deadline) => this.#api.page(path, params, deadline))
    if ('outcome' in page) throw errorOf(page)
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

  /** The saved card with this id; undefined if the account has no such card. */
  savedCard(token: string, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => savedCard(this.#api, token, deadline))
  }

  /** The customer of a charge or PaymentIntent; undefined if the account has no such payment. */
  payerOf(transactionId: string, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => payerOf(this.#api, transactionId, deadline))
  }

  feeOf(entryId: string, signal?: AbortSignal) {
    return this.#read(signal, (deadline) => feeOf(this.#api, entryId, deadline))
  }

  async *feesSince(since: string): AsyncGenerator<Fee[]> {
    let after: string | undefined
    do {
      const page = await this.#read(undefined, (deadline) => feesPage(this.#api, since, after, deadline))
      if ('outcome' in page) throw errorOf(page)
      yield page.fees
      after = page.next
    } while (after !== undefined)
  }

  /** Erases a customer's personal data at Stripe. After `unknown` it must be repeated. */
  eraseCustomer(customer: string, how: 'empty' | 'delete', signal?: AbortSignal, card?: string) {
    return this.#read(signal, (deadline) => eraseCustomer(this.#api, customer, how, deadline, card))
  }

  /** Waits until a reading may be sent that is made outside of this adapter: all calls share the rate of the account. */
  takeTurn(signal: AbortSignal): Promise<void> {
    return this.#guard.takeTurn(signal)
  }

  close(): void {
    this.#api.close()
  }

  /**
   * Runs the first call of a charge or refund. If no connection was made, or the key belongs to another account, the outcome is
   * `not_begun`, and the circuit counts a failure.
   */
  async #begin<T>(signal: AbortSignal | undefined, call: (deadline: AbortSignal) => Promise<T>) {
    let notSent: NotBegun | undefined
    const outcome = await this.#guard.begin(async (deadline) => {
      try {
        return await call(deadline)
      } catch (error) {
        if (error instanceof NotSent) notSent = { outcome: 'not_begun', why: error.message, cause: 'unreachable' }
        if (error instanceof WrongAccount) notSent = { outcome: 'not_begun', why: error.message, cause: 'credentials' }
        throw error
      }
    }, signal)
    return notSent ?? outcome
  }

  /** Runs a call that moves no money, so its failures do not open the circuit, and which lets charges go first. */
  #read<T>(signal: AbortSignal | undefined, call: (deadline: AbortSignal) => Promise<T>): Promise<T | Unknown> {
    return this.#guard.run(call, signal, { purpose: 'reading' })
  }

  /** The same for a call that finds the outcome of a charge or refund. */
  #find<T>(signal: AbortSignal | undefined, call: (deadline: AbortSignal) => Promise<T>): Promise<T | Unknown> {
    return this.#guard.run(call, signal, { purpose: 'look_up' })
  }
}
