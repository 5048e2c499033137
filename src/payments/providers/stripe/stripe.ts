// The adapter for Stripe: one merchant account and its traits. Every call goes through the account's guard.
import type { Fee } from '../fees.ts'
import { Guard, type GuardOptions } from '../guard.ts'
import type { Notification } from '../notification.ts'
import type { NotBegun } from '../outcomes.ts'
import {
  type Card,
  type ChargeRequest,
  type Dispute,
  errorOf,
  type Movement,
  type Provider,
  type ProviderError,
  type Reference,
  type RefundReference,
  type RefundRequest,
  type Span,
  type Traits,
} from '../provider.ts'
import { causeOfError } from '../transport.ts'
import { describeAccount } from './account.ts'
import { eachItem, type Fields, type Page, type Params, STRIPE_API_URL, StripeApi, WrongAccount } from './api.ts'
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
    const response = await this.#guard.read((signal) => this.#api.get('/v1/balance', {}, signal))
    return 'status' in response && response.status === 200
  }

  prepare(request: ChargeRequest, signal?: AbortSignal) {
    return this.#guard.begin((deadline) => prepare(this.#api, request, deadline), signal, causeOf)
  }

  confirm(request: Reference & { handle: string }, signal?: AbortSignal) {
    return this.#guard.run((deadline) => confirm(this.#api, request, deadline), signal)
  }

  lookUp(reference: Reference, signal?: AbortSignal) {
    return this.#guard.find((deadline) => lookUp(this.#api, reference, deadline), signal)
  }

  refuse(reference: Reference, signal?: AbortSignal) {
    return this.#guard.find((deadline) => refuse(this.#api, reference, deadline), signal)
  }

  findByKey(request: Reference & { cards: readonly Card[] }, span: Span, signal?: AbortSignal) {
    return this.#guard.find((deadline) => findByKey(this.#api, request, span, deadline), signal)
  }

  refund(request: RefundRequest, signal?: AbortSignal) {
    return this.#guard.begin((deadline) => refund(this.#api, request, deadline), signal, causeOf)
  }

  lookUpRefund(reference: RefundReference, signal?: AbortSignal) {
    return this.#guard.find((deadline) => lookUpRefund(this.#api, reference, deadline), signal)
  }

  refundsOf({ chargeTransactionId }: { chargeTransactionId: string }, signal?: AbortSignal) {
    return this.#guard.read((deadline) => refundsOf(this.#api, chargeTransactionId, deadline), signal)
  }

  disputesOf({ chargeTransactionId }: { chargeTransactionId: string }, signal?: AbortSignal) {
    return this.#guard.read((deadline) => disputesOf(this.#api, chargeTransactionId, deadline), signal)
  }

  listDisputes(since: string): AsyncGenerator<Dispute> {
    return disputesSince(since, (path, params) => this.#all(path, params))
  }

  list(since: string): AsyncGenerator<Movement> {
    return movementsSince(since, (path, params) => this.#all(path, params))
  }

  /** Every object of a list, newest first. Throws a `ProviderError`. */
  #all(path: string, params: Params): AsyncGenerator<Fields> {
    return eachItem((starting_after) =>
      this.#guard.list((deadline) => this.#api.page(path, { ...params, starting_after }, deadline)),
    )
  }

  /** Reads one page of any of the account's lists, newest first. Throws a `ProviderError`. */
  async page(path: string, params: Params, signal?: AbortSignal): Promise<Page> {
    const page = await this.#guard.read((deadline) => this.#api.page(path, params, deadline), signal)
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
    return this.#guard.read((deadline) => describeAccount(this.#api, deadline), signal)
  }

  /** The saved card with this id; undefined if the account has no such card. */
  savedCard(token: string, signal?: AbortSignal) {
    return this.#guard.read((deadline) => savedCard(this.#api, token, deadline), signal)
  }

  /** The customer of a charge or PaymentIntent; undefined if the account has no such payment. */
  payerOf(transactionId: string, signal?: AbortSignal) {
    return this.#guard.read((deadline) => payerOf(this.#api, transactionId, deadline), signal)
  }

  feeOf(entryId: string, signal?: AbortSignal) {
    return this.#guard.read((deadline) => feeOf(this.#api, entryId, deadline), signal)
  }

  async *feesSince(since: string): AsyncGenerator<Fee[]> {
    let after: string | undefined
    do {
      const page = await this.#guard.list((deadline) => feesPage(this.#api, since, after, deadline))
      yield page.fees
      after = page.next
    } while (after !== undefined)
  }

  /** Erases a customer's personal data at Stripe. After `unknown` it must be repeated. */
  eraseCustomer(customer: string, how: 'empty' | 'delete', signal?: AbortSignal, card?: string) {
    return this.#guard.read((deadline) => eraseCustomer(this.#api, customer, how, deadline, card), signal)
  }

  /** Waits until a reading may be sent that is made outside of this adapter: all calls share the rate of the account. */
  takeTurn(signal: AbortSignal): Promise<void> {
    return this.#guard.takeTurn(signal)
  }

  close(): void {
    this.#api.close()
  }
}

/** Why a charge or refund was certainly not begun: no connection was made, or the key belongs to another account. */
function causeOf(error: ProviderError): NotBegun['cause'] | undefined {
  return error instanceof WrongAccount ? 'credentials' : causeOfError(error)
}
