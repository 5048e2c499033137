// The adapter for Primer: one merchant account and its traits. Every call goes through the account's guard.
import { type GuardedOptions, GuardedProvider } from '../guarded.ts'
import type { Sum } from '../outcomes.ts'
import type { Movement, Provider, Traits } from '../provider.ts'
import { describeAccount } from './account.ts'
import { PRIMER_API_URL, PrimerApi } from './api.ts'
import { capture, charge, lookUp, refuse, retrieve } from './charges.ts'
import { eraseCard, eraseCustomer, payerOf, tokensOf } from './customers.ts'
import { refundRefusal, refusal } from './money.ts'
import { movementsSince } from './movements.ts'
import type { Payment } from './objects.ts'
import { lookUpRefund, refund, refundsOf } from './refunds.ts'

export interface PrimerOptions extends GuardedOptions {
  apiKey: string
  /** Another address than Primer's, for tests and the demo. */
  apiUrl?: string | (() => string)
}

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

export class PrimerProvider extends GuardedProvider<PrimerApi> implements Provider {
  readonly name = 'primer'
  readonly traits = TRAITS
  readonly charge = this.beginning(charge)
  readonly capture = this.moving(capture)
  readonly lookUp = this.finding(lookUp)
  readonly refuse = this.finding(refuse)
  readonly refund = this.beginning(refund)
  readonly lookUpRefund = this.finding(lookUpRefund)
  readonly refundsOf = this.reading(refundsOf)
  /** The customer of a payment; undefined if the account has no such payment. */
  readonly payerOf = this.reading(payerOf)
  readonly eraseCard = this.reading(eraseCard)

  constructor({ apiKey, apiUrl, ...options }: PrimerOptions) {
    const url = apiUrl ?? PRIMER_API_URL[options.isSandbox ? 'sandbox' : 'live']
    super(options, (maxInFlight) => new PrimerApi(apiKey, url, maxInFlight))
  }

  accepts({ amountMinor, currencyCode }: Sum): string | undefined {
    return this.refusesCurrency(currencyCode) ?? refusal(amountMinor, currencyCode)
  }

  acceptsRefund({ amountMinor, currencyCode }: Sum): string | undefined {
    return refundRefusal(amountMinor, currencyCode)
  }

  isReachable(): Promise<boolean> {
    return this.canRead('/payments', { limit: '1' })
  }

  list(since: string): AsyncGenerator<Movement> {
    return movementsSince(since, {
      page: (params) => this.guard.list((deadline) => this.api.page(params, deadline)),
      payment: (id) => this.guard.list((deadline) => retrieve(this.api, id, deadline)),
    })
  }

  /** One page of payments as summaries, for imports. Throws a `ProviderError`. */
  page(params: Record<string, string | undefined>, signal?: AbortSignal) {
    return this.orThrow((deadline) => this.api.page(params, deadline), signal)
  }

  payment(id: string, signal?: AbortSignal): Promise<Payment> {
    return this.orThrow((deadline) => retrieve(this.api, id, deadline), signal)
  }

  /** The tokens of the payment methods that are saved for a customer. */
  async savedTokens(customer: string, signal?: AbortSignal): Promise<ReadonlySet<string>> {
    const read = async (deadline: AbortSignal) => ({ tokens: await tokensOf(this.api, customer, deadline) })
    return new Set((await this.orThrow(read, signal)).tokens)
  }

  describeAccount(signal?: AbortSignal): ReturnType<typeof describeAccount> {
    return this.guard.read((deadline) => describeAccount(this.api, this.isSandbox, deadline), signal)
  }

  referenceOf(transactionId: string, signal?: AbortSignal) {
    const read = async (deadline: AbortSignal) => ({
      reference: (await retrieve(this.api, transactionId, deadline)).reference,
    })
    return this.guard.read(read, signal)
  }

  /** Deletes the customer's saved cards. After `unknown` it must be repeated. */
  eraseCustomer(customer: string, _how: 'empty' | 'delete', signal?: AbortSignal, card?: string) {
    return this.guard.read((deadline) => eraseCustomer(this.api, customer, deadline, card), signal)
  }
}
