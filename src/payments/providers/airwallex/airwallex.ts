// An adapter for Airwallex as far as the contract of charges and refunds: not registered in `adapters.ts`, so it cannot be connected.
import { Guard, type GuardOptions } from '../guard.ts'
import type {
  ChargeRequest,
  Movement,
  Provider,
  Reference,
  RefundReference,
  RefundRequest,
  Span,
  Traits,
} from '../provider.ts'
import { causeOfError } from '../transport.ts'
import { AIRWALLEX_API_URL, AirwallexApi, type Fields } from './api.ts'
import { confirm, findByKey, lookUp, prepare, refuse } from './charges.ts'
import { ownIds, readIntent, sumIn, timeOf } from './objects.ts'
import { lookUpRefund, readRefund, refund, refundsOf } from './refunds.ts'

export interface AirwallexOptions extends GuardOptions {
  /** The client id and the API key, with a colon between them. */
  secretKey: string
  apiUrl?: string
  merchantId: string
  isSandbox: boolean
}

// Airwallex publishes no limit for it.
const MAX_IN_FLIGHT = 40

const TRAITS: Traits = {
  prepares: true,
  lookUp: 'handle',
  keyLifeMs: 'unknown',
  refuse: 'cancel',
  refunds: 'may_fail_later',
  refuseRefund: 'wait_out',
}

export class AirwallexProvider implements Provider {
  readonly name = 'airwallex'
  readonly traits = TRAITS
  readonly merchantId: string
  readonly isSandbox: boolean
  readonly #guard: Guard
  readonly #api: AirwallexApi

  constructor({ secretKey, apiUrl, merchantId, isSandbox, ...limits }: AirwallexOptions) {
    const maxInFlight = limits.maxInFlight ?? MAX_IN_FLIGHT
    this.merchantId = merchantId
    this.isSandbox = isSandbox
    this.#guard = new Guard({ ...limits, maxInFlight })
    this.#api = new AirwallexApi(secretKey, apiUrl ?? AIRWALLEX_API_URL[isSandbox ? 'sandbox' : 'live'], maxInFlight)
  }

  /** Amounts are JSON numbers, which other programs read as doubles: more digits than these are not exact. */
  accepts({ amountMinor }: { amountMinor: bigint }): string | undefined {
    return amountMinor > LARGEST ? 'amount is more than can be charged through Airwallex.' : undefined
  }

  admits(): boolean {
    return this.#guard.admits()
  }

  circuitIsOpen(): boolean {
    return this.#guard.circuit.isOpen()
  }

  async isReachable(): Promise<boolean> {
    const response = await this.#guard.read((signal) => this.#api.get('/payment_intents', { page_size: '10' }, signal))
    return 'status' in response && response.status === 200
  }

  prepare(request: ChargeRequest, signal?: AbortSignal) {
    return this.#guard.begin((deadline) => prepare(this.#api, request, deadline), signal, causeOfError)
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

  findByKey(request: Reference, _span: Span, signal?: AbortSignal) {
    return this.#guard.find((deadline) => findByKey(this.#api, request, deadline), signal)
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

  async *list(since: string): AsyncGenerator<Movement> {
    const from = { from_created_at: since }
    const charges = (await this.#all('/payment_intents', from)).flatMap(chargeIn)
    const refunds = (await this.#all('/refunds', from)).flatMap(refundIn)
    yield* [...charges, ...refunds].sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0))
  }

  close(): void {
    this.#api.close()
  }

  async #all(path: string, params: Record<string, string>): Promise<Fields[]> {
    const read = async (deadline: AbortSignal) => ({
      items: await Array.fromAsync(this.#api.all(path, params, deadline)),
    })
    return (await this.#guard.list(read)).items
  }
}

const LARGEST = 999_999_999_999n

function chargeIn(item: Fields): Movement[] {
  const { key, reference } = ownIds(item)
  if (key === null) return []
  const { id, status, captured, asked, attempt, at } = readIntent(item)
  const about = { type: 'charge' as const, key, reference, transactionId: id, at }
  if (status === 'SUCCEEDED') return [{ ...about, ...captured }]
  // Without an attempt it was cancelled before it was confirmed.
  const hasFailed = status === 'CANCELLED' && Object.keys(attempt).length > 0
  return hasFailed ? [{ ...about, ...asked, hasFailed }] : []
}

function refundIn(item: Fields): Movement[] {
  const { key, reference, status, transactionId } = readRefund(item)
  if (key === null || status === 'failed') return []
  const about = { type: 'refund' as const, key, reference, transactionId, at: timeOf(item['created_at']) }
  const isPending = status === 'pending' && { isPending: true }
  return [{ ...about, ...sumIn(item, 'amount'), ...isPending, chargeTransactionId: String(item['payment_intent_id']) }]
}
