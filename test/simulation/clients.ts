// Clients that follow our guide: one key for each purchase, the same request again until its response is final.

import { ApiError } from '../../src/lib/errors.ts'
import { readAmount } from '../../src/lib/money.ts'
import type { ChargeRequest } from '../../src/payments/billing/charge/request.ts'
import type { ChargeResponse } from '../../src/payments/billing/charge/response.ts'
import type { BillingContext } from '../../src/payments/billing/context.ts'
import { readGrants } from '../../src/payments/billing/credits/grants.ts'
import { oneOffCharge } from '../../src/payments/billing/kinds.ts'
import { refund } from '../../src/payments/billing/refund/refund.ts'
import type { RefundRequest } from '../../src/payments/billing/refund/request.ts'
import { ask } from './ask.ts'
import type { Random } from './random.ts'
import type { Process, Scheduler } from './scheduler.ts'

/** A process that serves requests. */
export interface Server {
  process: Process
  context: BillingContext
}

const LONGEST_PAUSE_MS = 300_000

const grantsOf = (amount: number, expires: boolean) =>
  readGrants([{ unit: 'tokens', amount: String(amount), expires_after: expires ? '1h' : null }])

interface Purchase {
  customer: string
  key: string
  minor: number
  /** The credits that it grants, in the form of the order. */
  grants: string | null
  refunds: RefundRequest[]
}

export class Clients {
  readonly #purchases: Purchase[] = []
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #organization: string
  readonly #running: () => ReadonlySet<Server>
  readonly #violated: (text: string) => void
  /** The number of restored backups. */
  #restores = 0

  constructor(
    scheduler: Scheduler,
    organization: string,
    running: () => ReadonlySet<Server>,
    violated: (text: string) => void,
  ) {
    this.#scheduler = scheduler
    this.#random = scheduler.random
    this.#organization = organization
    this.#running = running
    this.#violated = violated
  }

  /** Repeats all purchases and refunds with their keys: after a restored backup, no customer may be charged or refunded twice. */
  async repeat(): Promise<void> {
    this.#restores += 1
    const again = async ({ customer, key, minor, grants, refunds }: Purchase) => {
      await this.#scheduler.sleep(this.#random.between(1, LONGEST_PAUSE_MS))
      const { checkout_status, order_id } = await this.#buy(customer, key, minor, grants)
      if (checkout_status !== 'succeeded') return
      for (const request of refunds) await this.#repay({ ...request, orderId: order_id })
    }
    await Promise.all(this.#purchases.map(again))
  }

  /** Makes a customer's purchase, and perhaps refunds it; the client retries until it knows the outcome. */
  async shop(customer: string, key: string): Promise<void> {
    const minor = this.#random.between(1, 9)
    const refunds: RefundRequest[] = []
    const grants = this.#random.chance(0.6) ? grantsOf(this.#random.between(1, 20), this.#random.chance(0.2)) : null
    this.#purchases.push({ customer, key, minor, grants, refunds })
    const isImpatient = this.#random.chance(0.3)
    const attempts = isImpatient
      ? [this.#buy(customer, key, minor, grants), this.#buy(customer, key, minor, grants)]
      : [this.#buy(customer, key, minor, grants)]
    // A backup that is restored between two responses may lack the order of the first.
    const noted = attempts.map(async (attempt) => ({ response: await attempt, restores: this.#restores }))
    const [first, other] = await Promise.all(noted)
    const { response } = first!
    const isSame =
      other?.response.checkout_status === response.checkout_status && other.response.order_id === response.order_id
    if (other && other.restores === first!.restores && !isSame)
      this.#violated(`two responses to one key: ${JSON.stringify([response, other.response])}`)
    if (response.checkout_status === 'succeeded') {
      for (let n = this.#random.between(0, 3); n > 0; n--)
        refunds.push(this.#refundOf(customer, response.order_id, `${key}-${n}`, minor))
      await Promise.all(refunds.map((request) => this.#repay(request)))
    }
  }

  /** Repeats the request until the response is final; then it must not change. */
  async #buy(customer: string, key: string, minor: number, grants: string | null): Promise<ChargeResponse> {
    const request: ChargeRequest = {
      externalId: customer,
      idempotencyKey: key,
      amount: readAmount(`0.0${minor}`),
      amountSent: `0.0${minor}`,
      currencyCode: 'EUR',
      clientMetadata: this.#random.chance(0.5) ? '{"n":1}' : null,
      grants,
    }
    for (let pauseMs = 1_000; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const response = await this.#ask(`charge ${customer} ${key}`, (context) =>
        oneOffCharge(context, this.#organization, request),
      )
      if (response && response.checkout_status !== 'processing') return response
      await this.#scheduler.sleep(this.#random.between(1, pauseMs))
    }
  }

  #refundOf(customer: string, orderId: string, key: string, minor: number): RefundRequest {
    const isWhole = this.#random.chance(0.3)
    const amountSent = isWhole ? undefined : `0.0${this.#random.between(1, minor)}`
    return {
      externalId: customer,
      orderId,
      amount: amountSent === undefined ? undefined : readAmount(amountSent),
      amountSent,
      isSoft: this.#random.chance(0.2),
      reason: '',
      comment: '',
      idempotencyKey: isWhole && this.#random.chance(0.5) ? null : key,
    }
  }

  async #repay(request: RefundRequest): Promise<void> {
    // A refund may be refused permanently, so the client does not retry forever.
    for (let tries = 0; tries < 6; tries++) {
      const response = await this.#ask(`refund ${request.idempotencyKey ?? 'of all'}`, (context) =>
        refund(context, this.#organization, request),
      )
      if (response && response.refund_status !== 'processing') return
      await this.#scheduler.sleep(this.#random.between(1, 5_000))
    }
  }

  /** Sends one request to one process; undefined without a response. */
  async #ask<T>(what: string, call: (context: BillingContext) => Promise<T>): Promise<T | undefined> {
    const asking = { scheduler: this.#scheduler, running: this.#running, violated: this.#violated }
    const response = await ask(asking, what, ({ context }) => call(context))
    return response instanceof ApiError ? undefined : response
  }
}
