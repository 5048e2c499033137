// The adapter for Stripe: one merchant account and its traits. Every call goes through the account's guard.
import type { Fee } from '../fees.ts'
import { type GuardedOptions, GuardedProvider } from '../guarded.ts'
import type { Notification } from '../notification.ts'
import type { NotBegun, Sum } from '../outcomes.ts'
import type { Card, Dispute, Movement, Provider, ProviderError, Reference, Span, Traits } from '../provider.ts'
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

export interface StripeOptions extends GuardedOptions {
  secretKey: string
  /** Another address than Stripe's, for tests and the demo. */
  apiUrl?: string | (() => string)
  /** Stripe's id of the account that the key has to belong to; null: any. */
  accountId?: string | null
}

const TRAITS: Traits = {
  prepares: true,
  lookUp: 'handle',
  keyLifeMs: 24 * 3_600_000,
  refuse: 'cancel',
  refunds: 'may_fail_later',
  refuseRefund: 'wait_out',
}

export class StripeProvider extends GuardedProvider<StripeApi> implements Provider {
  readonly name = 'stripe'
  readonly traits = TRAITS
  readonly accountId: string | null
  readonly prepare = this.beginning(prepare, causeOf)
  readonly confirm = this.moving(confirm)
  readonly lookUp = this.finding(lookUp)
  readonly refuse = this.finding(refuse)
  readonly refund = this.beginning(refund, causeOf)
  readonly lookUpRefund = this.finding(lookUpRefund)
  readonly refundsOf = this.reading(refundsOf)
  readonly disputesOf = this.reading(disputesOf)
  /** The saved card with this id; undefined if the account has no such card. */
  readonly savedCard = this.reading(savedCard)
  /** The customer of a charge or PaymentIntent; undefined if the account has no such payment. */
  readonly payerOf = this.reading(payerOf)
  readonly feeOf = this.reading(feeOf)

  constructor({ secretKey, apiUrl = STRIPE_API_URL, accountId = null, ...options }: StripeOptions) {
    super(options, (maxInFlight) => new StripeApi(secretKey, apiUrl, maxInFlight, accountId))
    this.accountId = accountId
  }

  accepts({ amountMinor, currencyCode }: Sum): string | undefined {
    return this.refusesCurrency(currencyCode) ?? refusal(amountMinor, currencyCode)
  }

  acceptsRefund({ amountMinor, currencyCode }: Sum): string | undefined {
    return refundRefusal(amountMinor, currencyCode)
  }

  isReachable(): Promise<boolean> {
    return this.canRead('/v1/balance', {})
  }

  findByKey(request: Reference & { cards: readonly Card[] }, span: Span, signal?: AbortSignal) {
    return this.guard.find((deadline) => findByKey(this.api, request, span, deadline), signal)
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
      this.guard.list((deadline) => this.api.page(path, { ...params, starting_after }, deadline)),
    )
  }

  /** Reads one page of any of the account's lists, newest first. Throws a `ProviderError`. */
  page(path: string, params: Params, signal?: AbortSignal): Promise<Page> {
    return this.orThrow((deadline) => this.api.page(path, params, deadline), signal)
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
    return this.guard.read((deadline) => describeAccount(this.api, deadline), signal)
  }

  async *feesSince(since: string): AsyncGenerator<Fee[]> {
    let after: string | undefined
    do {
      const page = await this.guard.list((deadline) => feesPage(this.api, since, after, deadline))
      yield page.fees
      after = page.next
    } while (after !== undefined)
  }

  /** Erases a customer's personal data at Stripe. After `unknown` it must be repeated. */
  eraseCustomer(customer: string, how: 'empty' | 'delete', signal?: AbortSignal, card?: string) {
    return this.guard.read((deadline) => eraseCustomer(this.api, customer, how, deadline, card), signal)
  }
}

/** Why a charge or refund was certainly not begun: no connection was made, or the key belongs to another account. */
function causeOf(error: ProviderError): NotBegun['cause'] | undefined {
  return error instanceof WrongAccount ? 'credentials' : causeOfError(error)
}
