// The adapter for Primer: one merchant account and its traits. Every call goes through the account's guard.
import { Guard, type GuardOptions } from '../guard.ts'
import {
  type ChargeRequest,
  errorOf,
  type Movement,
  type Provider,
  type Reference,
  type RefundReference,
  type RefundRequest,
  type Traits,
} from '../provider.ts'
import { causeOfError } from '../transport.ts'
import { describeAccount } from './account.ts'
import { PRIMER_API_URL, PrimerApi } from './api.ts'
import { capture, charge, lookUp, refuse, retrieve } from './charges.ts'
import { eraseCard, eraseCustomer, payerOf, tokensOf } from './customers.ts'
import { refundRefusal, refusal } from './money.ts'
import { movementsSince } from './movements.ts'
import type { Payment } from './objects.ts'
import { lookUpRefund, refund, refundsOf } from './refunds.ts'

export interface PrimerOptions extends GuardOptions {
  apiKey: string
  /** Another address than Primer's, for tests and the demo. */
  apiUrl?: string | (() => string)
  merchantId: string
  isSandbox: boolean
  /** ISO 4217 codes in capitals. An empty list allows every currency whose amounts can be exchanged. */
  currencies?: readonly string[]
}

// Primer publishes no limit.
const MAX_IN_FLIGHT = 40

// Primer lists a payment within a minute of its creation, and works on a request for up to 90 seconds.
const LISTED_AFTER_MS = 60_000
const WORKED_ON_MS = 90_000

const TRAITS: Traits = {
  prepares: false,
  lookUp: 'reference',
  keyLifeMs: 'unknown',
  lookUpLagMs: WORKED_ON_MS + LISTED_AFTER_MS,
  refuse: 'wait_out',
  refunds: 'may_fail_later',
  refuseRefund: 'wait_out',
}

export class PrimerProvider implements Provider {
  readonly name = 'primer'
  readonly traits = TRAITS
  readonly merchantId: string
  readonly isSandbox: boolean
  readonly #currencies: ReadonlySet<string>
  readonly #guard: Guard
  readonly #api: PrimerApi

  constructor(options: PrimerOptions) {
    const { apiKey, apiUrl, merchantId, isSandbox, currencies = [], ...limits } = options
    const maxInFlight = limits.maxInFlight ?? MAX_IN_FLIGHT
    this.merchantId = merchantId
    this.isSandbox = isSandbox
    this.#currencies = new Set(currencies)
    this.#guard = new Guard({ ...limits, maxInFlight })
    this.#api = new PrimerApi(apiKey, apiUrl ?? PRIMER_API_URL[isSandbox ? 'sandbox' : 'live'], maxInFlight)
  }

  accepts({ amountMinor, currencyCode }: { amountMinor: bigint; currencyCode: string }): string | undefined {
    if (this.#currencies.size > 0 && !this.#currencies.has(currencyCode))
      return `currency_code ${currencyCode} is not offered by the merchant account.`
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
    const response = await this.#guard.read((signal) => this.#api.get('/payments', { limit: '1' }, signal))
    return 'status' in response && response.status === 200
  }

  charge(request: ChargeRequest, signal?: AbortSignal) {
    return this.#guard.begin((deadline) => charge(this.#api, request, deadline), signal, causeOfError)
  }

  capture(request: Reference & { handle: string }, signal?: AbortSignal) {
    return this.#guard.run((deadline) => capture(this.#api, request, deadline), signal)
  }

  lookUp(reference: Reference, signal?: AbortSignal) {
    return this.#guard.find((deadline) => lookUp(this.#api, reference, deadline), signal)
  }

  refuse(reference: Reference, signal?: AbortSignal) {
    return this.#guard.find((deadline) => refuse(this.#api, reference, deadline), signal)
  }

  refund(request: RefundRequest, signal?: AbortSignal) {
    return this.#guard.begin((deadline) => refund(this.#api, request, deadline), signal, causeOfError)
  }

  lookUpRefund(reference: RefundReference, signal?: AbortSignal) {
    return this.#guard.find((deadline) => lookUpRefund(this.#api, reference, deadline), signal)
  }

  refundsOf({ chargeTransactionId }: { chargeTransactionId: string }, signal?: AbortSignal) {
    return this.#guard.read((deadline) => refundsOf(this.#api, chargeTransactionId, deadline), signal)
  }

  list(since: string): AsyncGenerator<Movement> {
    return movementsSince(since, {
      page: (params) => this.#guard.list((deadline) => this.#api.page(params, deadline)),
      payment: (id) => this.#guard.list((deadline) => retrieve(this.#api, id, deadline)),
    })
  }

  /** One page of payments as summaries, for imports. Throws a `ProviderError`. */
  page(params: Record<string, string | undefined>, signal?: AbortSignal) {
    return this.#orThrow((deadline) => this.#api.page(params, deadline), signal)
  }

  payment(id: string, signal?: AbortSignal): Promise<Payment> {
    return this.#orThrow((deadline) => retrieve(this.#api, id, deadline), signal)
  }

  /** The tokens of the payment methods that are saved for a customer. */
  async savedTokens(customer: string, signal?: AbortSignal): Promise<ReadonlySet<string>> {
    const read = async (deadline: AbortSignal) => ({ tokens: await tokensOf(this.#api, customer, deadline) })
    return new Set((await this.#orThrow(read, signal)).tokens)
  }

  describeAccount(signal?: AbortSignal): ReturnType<typeof describeAccount> {
    return this.#guard.read((deadline) => describeAccount(this.#api, this.isSandbox, deadline), signal)
  }

  referenceOf(transactionId: string, signal?: AbortSignal) {
    const read = async (deadline: AbortSignal) => ({
      reference: (await retrieve(this.#api, transactionId, deadline)).reference,
    })
    return this.#guard.read(read, signal)
  }

  /** The customer of a payment; undefined if the account has no such payment. */
  payerOf(transactionId: string, signal?: AbortSignal) {
    return this.#guard.read((deadline) => payerOf(this.#api, transactionId, deadline), signal)
  }

  /** Deletes the customer's saved cards. After `unknown` it must be repeated. */
  eraseCustomer(customer: string, _how: 'empty' | 'delete', signal?: AbortSignal, card?: string) {
    return this.#guard.read((deadline) => eraseCustomer(this.#api, customer, deadline, card), signal)
  }

  eraseCard(token: string, signal?: AbortSignal) {
    return this.#guard.read((deadline) => eraseCard(this.#api, token, deadline), signal)
  }

  takeTurn(signal: AbortSignal): Promise<void> {
    return this.#guard.takeTurn(signal)
  }

  close(): void {
    this.#api.close()
  }

  async #orThrow<T extends object>(call: (deadline: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const read = await this.#guard.read(call, signal)
    if ('outcome' in read) throw errorOf(read)
    return read
  }
}
